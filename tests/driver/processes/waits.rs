//! Ranks that wait for one that comes late: their error, and their state as it is seen from outside.

use std::time::{Duration, Instant};

use roundelay_core::ids::RankId;
use roundelay_export::cuda::Form;
use roundelay_kernels::cuda::CudaOptions;
use roundelay_kernels::shared_memory::observe::{self, ObservedWorld};

use super::super::below::one_device::sums;
use super::super::rank_processes::{Room, case, plan_of, proved};
use super::{Devices, WHY, all_succeeded, code, ranks};

/// A rank that launches too late, and then all ranks again: the plan is as good as before.
#[test]
fn a_rank_that_does_not_come_is_waited_for_until_the_deadline() {
    let rank = on_each!(3, Devices::Each, &[]);
    let of = proved("RingAllReduce", 3);
    let case = case(&of, sums(100), Form::Loops);
    // Long enough for all ranks to come on a machine with much load.
    let late = CudaOptions::new().deadline(Duration::from_secs(4));
    let plan = plan_of(&rank, &case, late).expect("a plan");
    let expected = case.expected(false).expect("a form")[rank.rank().index()].clone();
    let mut room = Room::new(&rank, &case);
    if rank.rank() == RankId(2) {
        others_are_seen_to_wait();
        // Its kernel then ends at once, as those of the others did.
        std::thread::sleep(Duration::from_secs(6));
    }
    let error = room.launch(&rank, &plan, false).and_then(|()| plan.wait());
    let error = error.expect_err("rank 2 is late");
    assert_eq!(code(&error), "E0405", "{error}");
    assert!(error.to_string().contains("waits for"), "{error}");
    for _ in 0..3 {
        room.launch(&rank, &plan, false).and_then(|()| plan.wait()).expect("all are here");
        assert!(room.result(&rank, false) == expected);
    }
}

/// Looks from outside, as `roundelay ps` does, until ranks are seen to wait for this process's rank 2.
fn others_are_seen_to_wait() {
    let begun = Instant::now();
    let me = std::process::id();
    let world = loop {
        let seen = observe::all();
        let wait = |world: &ObservedWorld| {
            let mine = world.ranks.get(2).is_some_and(|rank| rank.pid == me);
            mine && world.ranks[..2].iter().all(|rank| rank.wait.is_some())
        };
        let refused = seen.refused.iter().any(|text| text.contains(&me.to_string()));
        assert!(!refused, "{seen:#?}");
        if let Some(world) = seen.worlds.iter().find(|world| wait(world)) {
            break world.clone();
        }
        assert!(begun.elapsed() < WHY, "{seen:#?}");
        std::thread::sleep(Duration::from_millis(50));
    };
    let ranks = &world.ranks;
    let on: Vec<_> = ranks.iter().map(|rank| rank.wait.as_ref()?.on).collect();
    assert!(on[..2].contains(&Some(2)) && on[2].is_none(), "{world:#?}");
    for rank in &ranks[..2] {
        assert_eq!((rank.number, rank.in_call, rank.on_gpu), (1, true, true), "{rank:#?}");
        assert_eq!(rank.calls[0].algorithm.as_deref(), Some("RingAllReduce"));
        assert_eq!(rank.calls[0].name, "AllReduce of 100 f32, sum");
        assert!(rank.place.as_ref().is_some_and(|at| at.contains("ring.coll:")), "{rank:#?}");
    }
    let missing = ranks.iter().filter_map(|rank| rank.wait.as_ref()).map(|wait| wait.missing);
    assert!(missing.max() == Some(1), "{world:#?}");
    assert_eq!((ranks[2].number, ranks[2].on_gpu), (0, false), "{world:#?}");
}
