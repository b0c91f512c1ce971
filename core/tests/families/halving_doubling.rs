//! Halving and doubling, far and near first, and folded for rank counts that are no powers of two.

use roundelay_core::layout::Algorithm as _;
use roundelay_core::rational::Rat;
use roundelay_core::schedule::Schedule;

use super::pulls::{Pull, algorithm, proved, pulls, schedule};

const FAMILY: &str = include_str!("../../../stdlib/library/halving_doubling.coll");

const POWERS: [u32; 6] = [2, 4, 8, 16, 32, 64];

fn of(name: &str, set: &[(&str, &str)], nranks: u32) -> Schedule {
    schedule(&algorithm(FAMILY, name, set), nranks)
}

/// Returns the pulls of each rank on its only stream.
fn pulled(schedule: &Schedule) -> Vec<Vec<Pull>> {
    let one = |mut streams: Vec<Vec<Pull>>| {
        assert_eq!(streams.len(), 1);
        streams.remove(0)
    };
    pulls(schedule).into_iter().map(one).collect()
}

fn assert_port(schedule: &Schedule, units: f64) {
    let port = schedule.busiest_port();
    assert!((port - units).abs() < 1e-9, "{}: {port}, not {units}", schedule.algorithm);
}

/// The numbers of n ranks that agree with `rank` in the bits of `mask`, as runs.
fn like(rank: i64, mask: i64, n: i64) -> Vec<[i64; 2]> {
    let mut runs: Vec<[i64; 2]> = Vec::new();
    for b in (0..n).filter(|b| b & mask == rank & mask) {
        match runs.last_mut() {
            Some(run) if run[1] == b => run[1] = b + 1,
            _ => runs.push([b, b + 1]),
        }
    }
    runs
}

/// Single pieces of runs.
fn single(runs: &[[i64; 2]]) -> Vec<[i64; 2]> {
    runs.iter().flat_map(|[lo, hi]| (*lo..*hi).map(|b| [b, b + 1])).collect()
}

fn reversed(x: i64, n: i64) -> i64 {
    let bits = n.ilog2();
    (0..bits).filter(|bit| x >> bit & 1 == 1).map(|bit| 1 << (bits - 1 - bit)).sum()
}

#[test]
fn far_first() {
    for nranks in POWERS {
        let n = i64::from(nranks);
        let f = n.ilog2();
        let per_buffer = Rat::whole(n as u64);
        let all = of("HalvingDoublingAllReduce", &[], nranks);
        let scatter = of("HalvingDoublingReduceScatter", &[], nranks);
        let gather = of("HalvingDoublingAllGather", &[], nranks);
        for rank in 0..n {
            // Step s: partner r xor m, m = 2^(f-1-s); the rank reduces the data whose index agrees with its own in the
            // bits from m on.
            let halving = |parts: Rat| {
                let step = move |s: u32| {
                    let m = 1_i64 << (f - 1 - s);
                    Pull::pieces(rank ^ m, &like(rank, !(m - 1), n), parts, true)
                };
                (0..f).map(step)
            };
            let doubling = |parts: Rat| {
                let step = move |s: u32| {
                    let m = 1_i64 << s;
                    Pull::pieces(rank ^ m, &like(rank ^ m, !(m - 1), n), parts, false)
                };
                (0..f).map(step)
            };
            let at = rank as usize;
            let both: Vec<_> = halving(per_buffer).chain(doubling(per_buffer)).collect();
            assert_eq!(pulled(&all)[at], both, "rank {rank} of {n}");
            assert_eq!(pulled(&scatter)[at], halving(Rat::ONE).collect::<Vec<_>>());
            assert_eq!(pulled(&gather)[at], doubling(Rat::ONE).collect::<Vec<_>>());
        }
        assert_port(&all, 2.0 * (n - 1) as f64 / n as f64);
        assert_port(&scatter, (n - 1) as f64);
        assert_port(&gather, (n - 1) as f64);
    }
}

#[test]
fn near_first() {
    for nranks in POWERS {
        let n = i64::from(nranks);
        let f = n.ilog2();
        let near = |name| of(name, &[("near_first", "true")], nranks);
        let all = near("HalvingDoublingAllReduce");
        let scatter = near("HalvingDoublingReduceScatter");
        let gather = of("HalvingDoublingAllGather", &[("far_first", "true")], nranks);
        for rank in 0..n {
            let place = reversed(rank, n);
            // Places are one run a message; the blocks of a ReduceScatter are the blocks that agree in low bits.
            let halving = |s: u32, parts: Rat| {
                let (m, half) = (1_i64 << s, 1_i64 << (f - 1 - s));
                Pull::pieces(rank ^ m, &like(place, !(half - 1), n), parts, true)
            };
            let doubling = |s: u32, parts: Rat| {
                let (m, half) = (1_i64 << (f - 1 - s), 1_i64 << s);
                Pull::pieces(rank ^ m, &like(place ^ half, !(half - 1), n), parts, false)
            };
            let blocks = |s: u32| {
                let m = 1_i64 << s;
                Pull::pieces(rank ^ m, &single(&like(rank, 2 * m - 1, n)), Rat::ONE, true)
            };
            let at = rank as usize;
            let parts = Rat::whole(n as u64);
            let both: Vec<_> = (0..f)
                .map(|s| halving(s, parts))
                .chain((0..f).map(|s| doubling(s, parts)))
                .collect();
            assert_eq!(pulled(&all)[at], both, "rank {rank} of {n}");
            assert_eq!(pulled(&scatter)[at], (0..f).map(blocks).collect::<Vec<_>>());
            let doubled: Vec<_> = (0..f).map(|s| doubling(s, Rat::ONE)).collect();
            assert_eq!(pulled(&gather)[at], doubled);
        }
        assert_port(&all, 2.0 * (n - 1) as f64 / n as f64);
        assert_port(&scatter, (n - 1) as f64);
        assert_port(&gather, (n - 1) as f64);
    }
}

/// Units between groups of `g` neighboring ranks.
fn across(schedule: &Schedule, g: u32) -> f64 {
    let crossing = schedule.traffic().filter(|u| u.from.0 / g != u.to.0 / g);
    crossing.filter_map(|u| u.units).map(|u| u.num() as f64 / u.den() as f64).sum()
}

/// 12 and 24 buffers far first, 3 near first: the table of the traffic between groups of neighbors.
#[test]
fn near_first_leaves_little_between_groups() {
    for (n, g, far, near) in [(16, 4, 12.0, 3.0), (32, 8, 24.0, 3.0)] {
        // The input of a ReduceScatter is n units.
        let crossing = |set: &[(&str, &str)]| {
            across(&of("HalvingDoublingReduceScatter", set, n), g) / f64::from(n)
        };
        assert!((crossing(&[]) - far).abs() < 1e-9);
        assert!((crossing(&[("near_first", "true")]) - near).abs() < 1e-9);
    }
}

/// The table of five ranks: 1→0 | 0↔3 2↔4 | 0↔2 3↔4 | 0↔2 3↔4 | 0↔3 2↔4 | 0→1.
#[test]
fn five_ranks_folded() {
    let quarters = Rat::whole(4);
    let pull = |from, lo, hi, reduces| Pull::pieces(from, &[[lo, hi]], quarters, reduces);
    let expected = [
        vec![
            pull(1, 0, 4, true),
            pull(3, 0, 2, true),
            pull(2, 0, 1, true),
            pull(2, 1, 2, false),
            pull(3, 2, 4, false),
        ],
        vec![pull(0, 0, 4, false)],
        vec![pull(4, 0, 2, true), pull(0, 1, 2, true), pull(0, 0, 1, false), pull(4, 2, 4, false)],
        vec![pull(0, 2, 4, true), pull(4, 2, 3, true), pull(4, 3, 4, false), pull(0, 0, 2, false)],
        vec![pull(2, 2, 4, true), pull(3, 3, 4, true), pull(3, 2, 3, false), pull(2, 0, 2, false)],
    ];
    assert_eq!(pulled(&of("RecursiveHalvingDoublingAllReduce", &[], 5)), expected);
}

/// The pulls of a rank, as (from, blocks, reduces), from the definition: fold, renumber, halve or double.
#[test]
fn folded_for_any_rank_count() {
    for nranks in 2..=64_u32 {
        let n = i64::from(nranks);
        let f = n.ilog2();
        let (m, r) = (1_i64 << f, n - (1 << f));
        let real: Vec<i64> = (0..n).filter(|rank| rank % 2 == 0 || *rank >= 2 * r).collect();
        assert_eq!(real.len() as i64, m);
        // The first block of those that number i stands for; number m would begin at n.
        let first = |i: i64| if i == m { n } else { real[i as usize] };
        let all = pulled(&of("RecursiveHalvingDoublingAllReduce", &[], nranks));
        let scatter = pulled(&of("RecursiveHalvingDoublingReduceScatter", &[], nranks));
        let gather = pulled(&of("RecursiveHalvingDoublingAllGather", &[], nranks));
        for rank in 0..n {
            let at = rank as usize;
            let buffer = |from, reduces| Pull::pieces(from, &[[0, 1]], Rat::ONE, reduces);
            let blocks = |from, lo, hi, reduces| Pull::pieces(from, &[[lo, hi]], Rat::ONE, reduces);
            let Some(me) = real.iter().position(|other| *other == rank) else {
                assert_eq!(all[at], [buffer(rank - 1, false)]);
                // Its block, to an output of one.
                assert_eq!(scatter[at], [blocks(rank - 1, 0, 1, false)]);
                assert_eq!(gather[at], [blocks(rank - 1, 0, n, false)]);
                continue;
            };
            let me = me as i64;
            let folds = rank < 2 * r;
            let (mut whole, mut sums, mut copies) = (Vec::new(), Vec::new(), Vec::new());
            if folds {
                whole.push(buffer(rank + 1, true));
                sums.push(blocks(rank + 1, 0, n, true));
                copies.push(blocks(rank + 1, rank + 1, rank + 2, false));
            }
            let parts = Rat::whole(m as u64);
            for half in (0..f).rev().map(|s| 1_i64 << s) {
                let mine = me & !(half - 1);
                let from = real[(me ^ half) as usize];
                whole.push(Pull::pieces(from, &[[mine, mine + half]], parts, true));
                sums.push(blocks(from, first(mine), first(mine + half), true));
            }
            for half in (0..f).map(|s| 1_i64 << s) {
                let theirs = (me ^ half) & !(half - 1);
                let from = real[(me ^ half) as usize];
                whole.push(Pull::pieces(from, &[[theirs, theirs + half]], parts, false));
                copies.push(blocks(from, first(theirs), first(theirs + half), false));
            }
            assert_eq!(all[at], whole, "rank {rank} of {n}");
            assert_eq!(scatter[at], sums, "rank {rank} of {n}");
            assert_eq!(gather[at], copies, "rank {rank} of {n}");
        }
    }
}

#[test]
fn proved_in_as_many_rounds_as_the_formulas_say() {
    for n in (1..=33_u32).chain([48, 64, 100, 128]) {
        let rounds = |name, set: &[(&str, &str)]| {
            let proof = proved(&algorithm(FAMILY, name, set), n);
            assert!(proof.in_place);
            proof.steps
        };
        let f = n.ilog2();
        let folds = if n.is_power_of_two() { 0 } else { 2 };
        assert_eq!(rounds("RecursiveHalvingDoublingAllReduce", &[]), 2 * f + folds);
        assert_eq!(rounds("RecursiveHalvingDoublingReduceScatter", &[]), f + folds);
        assert_eq!(rounds("RecursiveHalvingDoublingAllGather", &[]), f + folds);
        if n.is_power_of_two() {
            for first in ["false", "true"] {
                let near = [("near_first", first)];
                assert_eq!(rounds("HalvingDoublingAllReduce", &near), 2 * f);
                assert_eq!(rounds("HalvingDoublingReduceScatter", &near), f);
                assert_eq!(rounds("HalvingDoublingAllGather", &[("far_first", first)]), f);
            }
        } else {
            for what in ["AllReduce", "ReduceScatter", "AllGather"] {
                let name = format!("HalvingDoubling{what}");
                let refused = algorithm(FAMILY, &name, &[]).schedule(n).expect_err("a refusal");
                let instead = format!("use Recursive{name} or Ring{what} for other counts");
                assert!(refused[0].title.contains(&instead), "{}", refused[0].title);
            }
        }
    }
}

/// The serial volume of AllReduce in buffers, as the literature tabulates it.
#[test]
fn volumes_of_all_reduce() {
    for (n, volume) in [(4, 1.5), (5, 3.5), (6, 3.5), (7, 3.5), (8, 1.75), (9, 3.75), (15, 3.75)] {
        let schedule = of("RecursiveHalvingDoublingAllReduce", &[], n);
        // One after another: the whole buffer to the even rank, halving and doubling, and back.
        let halving = f64::from(1 << n.ilog2());
        let folded = if n.is_power_of_two() { 0.0 } else { 2.0 };
        assert!((2.0 - 2.0 / halving + folded - volume).abs() < 1e-9);
        // Of two whole moves at a port, one comes in, and one goes out.
        assert_port(&schedule, volume - folded / 2.0);
    }
}
