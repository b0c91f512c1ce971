//! Constants from times that are known to follow from some.

use roundelay_simulate::cost::{Costs, Counts, Origin, Sample, Work, fit};

fn costs(cores: Option<u32>) -> Costs {
    let name = "known".to_owned();
    Costs {
        name,
        origin: Origin::Measured,
        latency: 3e-6,
        message: 4e-7,
        bandwidth: 8e9,
        reduce: 2e10,
        copy: 1.2e10,
        cores,
    }
}

/// Counts that differ in every way, and sizes from little to much.
fn samples(costs: &Costs, noise: impl Fn(usize) -> f64) -> Vec<Sample> {
    let work = |busiest: f64, ranks: f64| Work { busiest, total: busiest * ranks };
    let mut samples = Vec::new();
    for (i, n) in [2.0, 4.0, 7.0, 8.0].into_iter().enumerate() {
        let all = [
            Counts {
                steps: 2 * i as u32 + 1,
                messages: work(0.0, n),
                pieces: work(n, n),
                volume: work(1.75, n),
                reduced: work(0.875, n),
                copied: work(1.0, n),
            },
            Counts {
                steps: 14,
                messages: work(0.0, n),
                pieces: work(3.0, n),
                volume: work(n, 1.0),
                reduced: work(0.0, n),
                copied: work(2.0, n),
            },
            Counts {
                steps: 1,
                messages: work(0.0, n),
                pieces: work(2.0 * n, n),
                volume: work(0.5, n),
                reduced: work(n, n),
                copied: work(0.1, n),
            },
        ];
        for counts in all {
            for bytes in [64, 1 << 12, 1 << 18, 1 << 24] {
                let seconds = costs.time(&counts, bytes).seconds() * noise(samples.len());
                samples.push(Sample { name: "made up".to_owned(), counts, bytes, seconds });
            }
        }
    }
    samples
}

fn close(a: f64, b: f64, share: f64) -> bool {
    (a / b - 1.0).abs() < share
}

#[test]
fn exact_times_give_the_constants_back() {
    for cores in [None, Some(2)] {
        let known = costs(cores);
        let found = fit("known", cores, &samples(&known, |_| 1.0)).expect("enough samples");
        let constants = |c: &Costs| [c.latency, c.message, c.bandwidth, c.reduce, c.copy];
        for (found, known) in constants(&found.costs).into_iter().zip(constants(&known)) {
            assert!(close(found, known, 1e-6), "{found}, not {known}");
        }
        assert!(found.r2 > 1.0 - 1e-9 && found.errors.iter().all(|e| e.abs() < 1e-6));
    }
}

#[test]
fn noise_shows_in_the_errors_and_makes_no_constant_negative() {
    let free = Costs { message: 0.0, copy: 1e15, ..costs(None) };
    let noise = |i: usize| if i.is_multiple_of(2) { 1.2 } else { 0.8 };
    let found = fit("noisy", None, &samples(&free, noise)).expect("enough samples");
    let Costs { latency, message, bandwidth, reduce, copy, .. } = found.costs;
    assert!(message >= 0.0 && copy > 0.0 && close(latency, 3e-6, 0.3), "{:?}", found.costs);
    assert!(close(bandwidth, 8e9, 0.4) && reduce > 5e9, "{:?}", found.costs);
    let worst = found.errors.iter().fold(0.0_f64, |most, e| most.max(e.abs()));
    assert!((0.1..0.5).contains(&worst) && found.r2 > 0.9 && found.r2 < 1.0, "{worst}");
}

#[test]
fn too_little_to_go_by_is_no_fit() {
    let all = samples(&costs(None), |_| 1.0);
    assert!(fit("few", None, &all[..4]).is_none());
    let mut still = all.clone();
    still[3].seconds = 0.0;
    assert!(fit("still", None, &still).is_none());
}

#[test]
fn constants_are_read_as_they_are_written() {
    for cores in [None, Some(64)] {
        let known = costs(cores);
        let read = Costs::parse("known", &known.lines()).expect("what was written");
        assert!((read.latency - known.latency).abs() < 1e-12, "{read:?}");
        assert!(close(read.bandwidth, known.bandwidth, 1e-9) && read.cores == cores, "{read:?}");
    }
}
