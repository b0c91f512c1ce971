//! Signals under random delays and the thread sanitizer, and what is told of a rank that does not come.

use std::time::Duration;

use fastrand::Rng;

use crate::device::shim::{Buffers, Executable, Job};

const TEXT: &str = include_str!("signals.cu");
const DEFINES: [&str; 2] = ["ROUNDELAY_ELEMENT=u8", "ROUNDELAY_OP=Sum"];
const CREDITS: usize = 3;
/// Bytes of a slot: more than each of three parts has in one piece.
const SLOT: usize = 1500;

/// Ranks that pass on slots for some rounds, and what each of them must have in the end.
fn ring(nranks: usize, rounds: usize, parts: usize, threads: usize) -> (Job, Vec<Vec<u8>>) {
    let mut random = Rng::with_seed((nranks * 100 + parts * 10 + threads) as u64);
    let lengths: Vec<usize> = (0..rounds).map(|_| random.usize(..SLOT)).collect();
    let room = SLOT + rounds;
    let inputs: Vec<Vec<u8>> =
        (0..nranks).map(|_| (0..room).map(|_| random.u8(..)).collect()).collect();
    let got = |rank: usize| {
        let left = &inputs[(rank + nranks - 1) % nranks];
        lengths.iter().enumerate().flat_map(|(round, &len)| left[round..][..len].to_vec()).collect()
    };
    let want = (0..nranks).map(got).collect();
    let header = [0, nranks, nranks, 8, rounds, CREDITS, SLOT, 0];
    let groups = (0..nranks).flat_map(|rank| [rank, 0, 0, 0]);
    let facts = header.into_iter().chain(groups).chain(lengths.iter().copied());
    let facts = facts.map(|fact| fact as i64).collect();
    let output_bytes = lengths.iter().sum();
    let ranks = inputs.into_iter().map(|input| Buffers { input, output_bytes, shared: None });
    let job = Job {
        parts,
        threads,
        element: 1,
        channels: 3,
        scratch_bytes: CREDITS * SLOT,
        groups: nranks,
        facts,
        ranks: ranks.collect(),
        ..Job::default()
    };
    (job, want)
}

#[test]
fn what_is_signalled_is_seen_whatever_the_delays() {
    let program = Executable::new(TEXT, &DEFINES, false);
    for parts in 1..=3 {
        for threads in [1, 2, 4] {
            for seed in 0..3 {
                let (job, want) = ring(3, 12, parts, threads);
                let job = Job { delays: Some(seed), repeats: 3, ..job };
                let outcome = program.run(&job).unwrap();
                assert_eq!(outcome.gave_up, None);
                assert!(outcome.outputs == want, "{parts} parts of {threads} threads, seed {seed}");
                assert!(outcome.waiting.iter().all(|waiting| waiting.state == 0));
            }
        }
    }
}

#[test]
fn no_two_accesses_race() {
    let program = Executable::new(TEXT, &DEFINES, true);
    for (parts, threads) in [(1, 4), (2, 2), (3, 3)] {
        let (job, want) = ring(2, 10, parts, threads);
        let outcome = program.run(&Job { delays: Some(1), repeats: 2, ..job }).unwrap();
        assert!(outcome.outputs == want, "{parts} parts of {threads} threads");
    }
}

#[test]
fn a_rank_that_does_not_come_is_named() {
    let program = Executable::new(TEXT, &DEFINES, false);
    for (parts, threads) in [(1, 2), (2, 2)] {
        let (job, _) = ring(3, 12, parts, threads);
        let limit = Duration::from_secs(1);
        let job = Job { stuck_rank: Some(1), poll_limit: limit, repeats: 2, ..job };
        let outcome = program.run(&job).unwrap();
        let group = outcome.gave_up.expect("nobody posts for rank 1");
        assert!([0, 2].contains(&group), "{group}");
        let waiting = outcome.waiting[group];
        assert_eq!((waiting.state, waiting.seen + 1), (2, waiting.expected), "{waiting:?}");
        // Rank 2 waits for the first data of rank 1: after a move and a post.
        let at_rank_2 = outcome.waiting[2];
        assert!(at_rank_2.state > 0, "{at_rank_2:?}");
        assert_eq!((at_rank_2.step, at_rank_2.expected, at_rank_2.seen), (2, 1, 0));
        assert_eq!(outcome.waiting[1].state, 0);
    }
}

#[test]
fn a_trace_has_every_op_of_the_first_part() {
    let program = Executable::new(include_str!("traces.cu"), &[], false);
    let none = Buffers { input: Vec::new(), output_bytes: 0, shared: None };
    let facts = vec![0, 2, 2, 4, 0, 3, 0, 0, 1, 0, 0, 0];
    let job =
        Job { trace: true, parts: 2, groups: 2, facts, ranks: vec![none; 2], ..Job::default() };
    let traced = "\
group 0 3
post Ack 0 1 0
wait Data 0 1 1
post Head 0 1 2
wait Tail 0 1 3
post Fork 0 1 4
wait Join 0 1 5
move 2 1 0.i+5 1.o+70000000000 0.s+0 x12 finish
move 1 2 0.i+5 1.o+70000000000 0.s+0 x0
group 1 0
post Ack 1 0 0
wait Data 1 0 1
post Head 1 0 2
wait Tail 1 0 3
post Fork 1 0 4
wait Join 1 0 5
move 2 1 1.i+5 0.o+70000000000 1.s+0 x12 finish
move 1 2 1.i+5 0.o+70000000000 1.s+0 x0
";
    assert_eq!(program.run(&job).unwrap().trace, traced);
    assert_eq!(program.run(&Job { trace: false, ..job }).unwrap().trace, "");
}
