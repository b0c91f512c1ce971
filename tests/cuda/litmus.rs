//! The signals' protocol under the shim: with all delays, data behind a wait has been written; and a rank that never
//! comes is reported, not waited for.

use std::time::Duration;

use roundelay_core::ids::RankId;
use roundelay_kernels::shim::ShimJob;

use super::runs::{inputs, loops, named, on_the_host, program, proved, spec, try_run};

/// Message passing around rings, through trees, slots and lines, with random delays before ops and between polls.
#[test]
fn signals_hold_whatever_the_delays() {
    for (name, nranks, parts) in [
        ("RingAllReduce", 3, 1),
        ("TwistedRingAllReduce", 4, 1),
        ("TreeAllReduce", 4, 2),
        ("NcclRingAllReduce", 3, 2),
        ("HalvingDoublingAllReduce", 4, 1),
    ] {
        let algorithm = named(name);
        let proved = proved(algorithm, nranks).expect("it takes so many ranks");
        let kernel = loops(algorithm, &proved, spec(algorithm));
        let shim = program(&kernel);
        let data = inputs(&kernel, 300);
        let host = on_the_host(&proved, &kernel, 300, &data);
        for seed in 1..=12 {
            let job = ShimJob {
                delay_seed: seed,
                repeats: 8,
                parts,
                ..ShimJob::new(&kernel, 300, &data)
            };
            let outcome = try_run(&shim, &job).unwrap_or_else(|why| panic!("{name}: {why}"));
            assert!(outcome.outputs == host, "{name}, seed {seed}: other bits than the host's");
        }
    }
}

/// A rank that ends at once: the report names a wait for it, its op and its line.
#[test]
fn a_rank_that_never_comes_is_told_of() {
    let algorithm = named("RingAllReduce");
    let proved = proved(algorithm, 4).expect("any rank count will do");
    let kernel = loops(algorithm, &proved, spec(algorithm));
    let data = inputs(&kernel, 61);
    let job = ShimJob {
        stuck_rank: Some(RankId(2)),
        poll_limit: Duration::from_millis(200),
        ..ShimJob::new(&kernel, 61, &data)
    };
    let outcome = program(&kernel).run(&job).unwrap_or_else(|error| panic!("{error}"));
    assert!(outcome.aborted);
    let stuck = outcome.stuck(&job).expect("a wait that is to blame");
    assert_ne!(stuck.rank, RankId(2));
    assert!(stuck.expected > stuck.seen, "{stuck}");
    assert!(stuck.line > 0 && stuck.waiting_on.contains("from rank"), "{stuck}");
}
