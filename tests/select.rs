//! `roundelay::select`: compared with an evaluation of all algorithms, and its errors where it cannot choose.

use std::sync::Arc;

use roundelay::select::{Numbers, Row, library};
use roundelay::{
    Algorithm as _, Choice, Collective, Costs, DType, ReduceOp, Topology, select, select_with,
};
use roundelay_core::diagnostics::Code;
use roundelay_core::layout::Configured;
use roundelay_core::optimize::join;
use roundelay_simulate::cost::{self, Counts, FORMS, Term, Work};
use roundelay_simulate::{Machine, simulate};

const NETWORK: &str =
    "latency = 4us\nmessage = 250ns\nbandwidth = 12GB/s\nreduce = 60GB/s\ncopy = 90GB/s";

fn of(collective: Collective) -> impl Iterator<Item = &'static Configured> {
    library().iter().filter(move |algorithm| algorithm.collective() == collective)
}

/// The model, written out once more: a port of B for each rank, L away from every other; none for moves of a switch.
fn seconds(algorithm: &Configured, nranks: u32, bytes: u64, c: &Costs) -> Option<f64> {
    let schedule = algorithm.schedule(nranks).ok().filter(|schedule| !schedule.has_switch())?;
    let schedule = join(&schedule);
    let port: Topology = format!("crossbar({nranks})").parse().expect("a switch");
    let machine = Machine {
        bandwidth: c.bandwidth,
        latency: c.latency / 2.0,
        reduce: Some(c.reduce),
        copy: Some(c.copy),
        piece: c.message,
        ..Machine::new(Arc::new(port))
    };
    let count = bytes / schedule.collective.max_units(nranks);
    let done = simulate(&schedule, &machine, count, DType::U8, false).expect("it ends");
    let Some(cores) = c.cores.filter(|cores| *cores < nranks) else { return Some(done.seconds) };
    let Counts { steps, pieces, volume, reduced, copied, .. } =
        Counts::from_schedule(&schedule).expect("no deadlock");
    let share = |work: Work| work.busiest.max(work.total / f64::from(cores));
    let per_byte = share(volume) / c.bandwidth + share(reduced) / c.reduce + share(copied) / c.copy;
    let by_cores =
        f64::from(steps) * c.latency + share(pieces) * c.message + bytes as f64 * per_byte;
    Some(done.seconds.max(by_cores))
}

fn names(choice: &Choice) -> Vec<&str> {
    let refused = choice.refused.iter().map(|refused| refused.algorithm.as_str());
    let mut all: Vec<_> =
        choice.ranked.iter().map(|row| row.algorithm.as_str()).chain(refused).collect();
    all.sort_unstable();
    all
}

#[test]
fn the_best_is_the_best_of_all() {
    let network = Costs::parse("network", NETWORK).expect("constants");
    for costs in [&network, Costs::host()] {
        for collective in Collective::ALL {
            for nranks in [1, 3, 6, 8] {
                for bytes in [0, 1 << 16, 1 << 26] {
                    let choice = select_with(costs, collective, nranks, bytes, None);
                    let mut all: Vec<_> = of(collective).map(roundelay::Algorithm::name).collect();
                    all.sort_unstable();
                    assert_eq!(names(&choice), all);
                    let mut least = f64::INFINITY;
                    for algorithm in of(collective) {
                        let row = choice.ranked.iter().find(|r| r.algorithm == algorithm.name());
                        let time = seconds(algorithm, nranks, bytes, costs);
                        let given = row.map(|row| row.time.seconds());
                        let near = |(a, b): (f64, f64)| (a - b).abs() < 1e-12;
                        let same = given.is_none() == time.is_none();
                        let name = algorithm.name();
                        assert!(same && given.zip(time).is_none_or(near), "{name} at {nranks}");
                        least = least.min(time.unwrap_or(f64::INFINITY));
                    }
                    let best = choice.best().map_or(f64::INFINITY, |row| row.time.seconds());
                    assert!(best <= least + 1e-12, "{collective} on {nranks}: {best}, {least}");
                }
            }
        }
    }
}

#[test]
fn equal_times_are_in_the_order_of_names() {
    // A rank alone sends nothing, and everything costs nothing where nothing is copied.
    let free = Costs { latency: 0.0, message: 0.0, ..Costs::host().clone() };
    let choice = select_with(&free, Collective::AllReduce, 8, 0, None);
    let ranked: Vec<_> = choice.ranked.iter().map(|row| &row.algorithm).collect();
    assert!(ranked.len() > 8 && ranked.is_sorted(), "{ranked:?}");
    assert!(choice.to_string().ends_with("equal times are in the order of names"));
}

#[test]
fn what_is_too_large_to_count_has_its_closed_form() {
    let numbers = |choice: &Choice, name: &str| {
        let row = choice.ranked.iter().find(|row| row.algorithm == name);
        row.map(|Row { numbers, counts, .. }| (*numbers, *counts))
    };
    let choice = select(Collective::AllReduce, 1000, 1 << 20, None);
    let form = cost::of_algorithm("RingAllReduce", 1000).expect("a form");
    let by_form = (Numbers::Form(form), form.counts(1000).expect("it holds"));
    assert_eq!(numbers(&choice, "RingAllReduce"), Some(by_form));
    let folded = numbers(&choice, "RecursiveHalvingDoublingAllReduce").expect("it has few ops");
    assert_eq!(folded.0, Numbers::Cores);
    assert!(choice.to_string().contains("form\n"), "{choice}");
}

#[test]
fn no_form_knows_the_links_of_a_topology() {
    let switch: Topology = "crossbar(2200)".parse().expect("a switch");
    let on = select(Collective::Broadcast, 2200, 1 << 20, Some(&switch));
    let refused: Vec<_> = on.refused.iter().map(|r| (r.algorithm.as_str(), r.code)).collect();
    assert_eq!(refused, [("NhrBroadcast", Code::StepLimit)]);
    assert!(on.ranked.iter().any(|row| row.algorithm == "RingBroadcast"));
}

#[test]
fn a_topology_decides() {
    // Slow links between fast pairs: the traffic across them counts.
    let islands = "islands(2, 4, 100GB/s, 1us, 5GB/s, 10us)".parse::<Topology>();
    let topology = islands.unwrap_or_else(|problem| panic!("{problem:?}"));
    let choice = select(Collective::AllGather, 8, 1 << 24, Some(&topology));
    assert_eq!(names(&choice).len(), of(Collective::AllGather).count());
    for row in &choice.ranked {
        assert!(row.time.steps >= 10e-6, "every algorithm crosses once: {row:?}");
        let crossed = (1 << 24) as f64 / 2.0;
        assert!(row.time.volume > 0.0 && row.time.volume < crossed / 5e9 * 8.0, "{row:?}");
    }
    let relative: Topology = "full_mesh(8)".parse().expect("a mesh");
    let (on, off) = (
        select(Collective::AllReduce, 8, 1 << 20, Some(&relative)),
        select_with(
            &Costs { cores: None, ..Costs::host().clone() },
            Collective::AllReduce,
            8,
            1 << 20,
            None,
        ),
    );
    let time = |choice: &Choice, name: &str| {
        choice.ranked.iter().find(|row| row.algorithm == name).expect("ranked").time
    };
    // One ring uses one link of a rank, as it uses one port; two ways use two.
    let near = |a: f64, b: f64| (a / b - 1.0).abs() < 1e-9;
    let (mesh, port) = (time(&on, "RingAllReduce"), time(&off, "RingAllReduce"));
    assert!(near(mesh.seconds(), port.seconds()), "{mesh:?} {port:?}");
    let (ways, port) = (time(&on, "TwistedRingAllReduce"), time(&off, "TwistedRingAllReduce"));
    assert!(ways.volume < 0.6 * port.volume, "{ways:?} {port:?}");
    assert!(near(ways.steps, port.steps), "{ways:?} {port:?}");
}

/// Forms stand where no schedule is laid out, so they are compared with the simulator on as many ranks as a test can
/// lay out: equal where they are exact, and nowhere do they promise a time that is not reached.
#[test]
fn forms_are_near_what_is_simulated() {
    let costs = Costs::parse("network", NETWORK).expect("constants");
    let mut compared = 0;
    for form in FORMS {
        let Some(name) = form.algorithm.filter(|name| !name.starts_with("MultiRing")) else {
            continue;
        };
        let algorithm = library().iter().find(|a| a.name() == name).expect("it is in the library");
        for nranks in [64, 100] {
            if cost::of_algorithm(name, nranks) != Some(form) {
                continue;
            }
            for bytes in [1 << 10, 1 << 20, 1 << 26] {
                let simulated =
                    seconds(algorithm, nranks, bytes, &costs).expect("it can be laid out");
                let counts = form.counts(nranks).expect("the form holds");
                let by_form = costs.time(&counts, bytes).seconds();
                let off = by_form / simulated - 1.0;
                // Two streams of a rank fold at once, slices fold while others flow, and pieces of some families are fewer
                // than a form has.
                let what = format!("{name} at {nranks}, {bytes} bytes: {by_form} s, {simulated} s");
                // Where a form is not exact, messages that find their data early slow others down.
                let least = if form.exact(nranks) { -0.005 } else { -0.3 };
                assert!((least..0.2).contains(&off), "{what}");
                let exact = form.exact(nranks) && form.pieces == form.messages;
                assert!(!exact || form.streams != Term::Int(1) || off.abs() < 0.02, "{what}");
                compared += 1;
            }
        }
    }
    assert!(compared > 100, "{compared} runs");
}

#[test]
fn refusals_come_with_reason_and_advice() {
    for (nranks, code) in [(0, Code::NoRanks), (u32::MAX, Code::NoRanks)] {
        let choice = select(Collective::AllReduce, nranks, 1, None);
        assert!(choice.best().is_none() && choice.refused.iter().all(|r| r.code == code));
    }
    let choice = select(Collective::AllReduce, 12, 1 << 20, None);
    let halving = choice.refused.iter().find(|r| r.algorithm == "HalvingDoublingAllReduce");
    let halving = halving.expect("no power of two");
    assert_eq!(halving.code, Code::RankCountRefused);
    assert!(halving.reason.contains("or RingAllReduce for other counts"), "{}", halving.reason);
}

/// Runs a test in a process whose `ROUNDELAY_SELECTION` names this file, and returns its output.
fn under(selection: &str, test: &str) -> String {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("choices");
    std::fs::write(&file, selection).expect("written");
    let mut command = std::process::Command::new(std::env::current_exe().expect("a program"));
    command.args(["--ignored", "--exact", test]).env("ROUNDELAY_SELECTION", file);
    let ran = command.output().expect("it starts");
    let said = String::from_utf8_lossy(&ran.stdout).into_owned();
    assert!(ran.status.success() && said.contains("1 passed"), "{said}");
    said
}

#[test]
fn a_selection_file_decides() {
    under(
        "AllReduce nranks 6 bytes 0..=1024: RecursiveDoublingAllReduce\n",
        "select::small_calls_are_refused_and_large_ones_run",
    );
    under("AllReduce nranks 6 bytes 0..: Ring\n", "select::every_call_is_refused");
}

fn six_ranks(comm: &roundelay::Comm, len: usize) -> Result<(), roundelay::Error> {
    let mut all = vec![vec![1_i32; len]; 6];
    let mut ranks: Vec<_> = all.iter_mut().map(|rank| &mut rank[..]).collect();
    comm.all_reduce(&mut ranks, ReduceOp::Sum)?;
    assert!(all.iter().flatten().all(|sum| *sum == 6));
    Ok(())
}

/// The algorithm of the file takes powers of two alone, so its refusal shows the calls that reach it.
#[test]
#[ignore = "runs in a process of its own, started by a_selection_file_decides"]
fn small_calls_are_refused_and_large_ones_run() {
    let comm = roundelay::Comm::new(6).expect("six ranks");
    let error = six_ranks(&comm, 100).expect_err("not a power of two");
    assert_eq!(error.code().as_str(), "E0205", "{error}");
    six_ranks(&comm, 1000).expect("the library's");
    // The program's own choice goes before the file's.
    let own = comm.using(roundelay::library::RingAllReduce::new());
    six_ranks(&own, 100).expect("the program's");
}

#[test]
#[ignore = "runs in a process of its own, started by a_selection_file_decides"]
fn every_call_is_refused() {
    let comm = roundelay::Comm::new(6).expect("six ranks");
    let error = six_ranks(&comm, 100).expect_err("a file that makes no sense");
    assert_eq!(error.code().as_str(), "E0406", "{error}");
    assert!(
        error.to_string().contains("choices:1: the library has no algorithm `Ring`"),
        "{error}"
    );
}
