//! Checks before first calls: ranks that check alone, and memory that ranks share.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use super::{one_shot, plan};
use crate::lowering::RankCall as _;
use crate::shared_memory::{World, WorldPlan};
use crate::{Check, Error, Options};

const COUNT: u64 = 1000;
const DEADLINE: Duration = Duration::from_secs(20);

/// A rank that checks is in another call than a rank that does not, and the world goes on.
#[test]
fn ranks_check_alike_or_their_calls_differ() {
    let proved = one_shot(2);
    let options = |check| Options::new().deadline(DEADLINE).check_calls(check);
    let mut worlds = World::together(2, options(Check::Never)).expect("worlds");
    worlds[1].options = options(Check::First);
    let worlds: Vec<Arc<World>> = worlds.into_iter().map(Arc::new).collect();
    let plans: Vec<WorldPlan> = worlds.iter().map(|world| plan(world, &proved, COUNT)).collect();
    let call = |plan: &WorldPlan| plan.run_in_place(&mut [1_u32; COUNT as usize]);
    thread::scope(|threads| {
        let all: Vec<_> = plans.iter().map(|plan| threads.spawn(move || call(plan))).collect();
        for one in all {
            let error = one.join().expect("no panic").expect_err("one of them checks");
            assert!(matches!(error, Error::CallsDiffer(_)), "{error}");
            let both = "AllReduce of 1000 u32, sum on rank 0 and the check of AllReduce of 1000 u32, sum on rank 1";
            assert!(error.to_string().contains(both), "{error}");
        }
    });
}

/// Buffers in memory that the ranks share are checked in such memory.
#[test]
fn buffers_in_shared_memory_are_checked_there() {
    let proved = one_shot(2);
    let options = Options::new().deadline(DEADLINE).check_calls(Check::First);
    let worlds = World::together(2, options).expect("worlds");
    let worlds: Vec<Arc<World>> = worlds.into_iter().map(Arc::new).collect();
    thread::scope(|threads| {
        for world in &worlds {
            let proved = &proved;
            threads.spawn(move || {
                let plan = plan(world, proved, COUNT);
                let mut lent = world.alloc::<u32>(COUNT as usize).expect("memory");
                lent.fill(world.rank() + 1);
                let own = [0_u32];
                for (like, there) in [(lent.as_ptr(), true), (own.as_ptr(), false)] {
                    let memory = plan.0.memory(like.cast(), 10).expect("memory");
                    let found = world.shared.arena.offset(memory.address(), 1);
                    assert_eq!(found.is_some(), there);
                }
                plan.run_in_place(&mut lent).expect("a call");
                assert!(lent.iter().all(|x| *x == 3));
            });
        }
    });
}
