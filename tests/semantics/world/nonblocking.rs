//! Calls that do not block.

use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use roundelay::{EngineError, Error, Lent, Pending, ReduceOp};

use super::{COUNTS, code, each, hasty, me, patient, until};

#[test]
fn every_call_has_a_form_that_does_not_block() {
    for n in COUNTS {
        each(n, patient(), |world| {
            let (me, calls) = (me(&world), world.nonblocking());
            let sum: u32 = (0..n).sum();
            let ranks: Vec<u32> = (0..n).collect();
            let root = n - 1;
            let at_root = |all: Vec<u32>| if me == root { all } else { Vec::new() };
            // All are under way before the first is waited for.
            let all_reduce = calls.all_reduce(vec![me; 70], ReduceOp::Sum);
            let into = calls.all_reduce_into(vec![me; 7], vec![9; 7], ReduceOp::Max);
            let scattered = calls.reduce_scatter(ranks.clone(), [0_u32].to_vec(), ReduceOp::Sum);
            let gathered = calls.all_gather(vec![me], ranks.clone());
            let told = calls.broadcast(vec![me; 5], root);
            let reduced = calls.reduce(vec![me; 5], ReduceOp::Sum, root);
            let part = calls.scatter(at_root(ranks.clone()), vec![9_u32], root);
            let whole = calls.gather(vec![me], at_root(vec![9; n as usize]), root);
            let turned = calls.all_to_all(vec![me; n as usize], vec![9; n as usize]);
            let barrier = calls.barrier();
            barrier.wait().expect("all call");
            assert_eq!(turned.wait().expect("all call").1, ranks);
            assert_eq!(whole.wait().expect("all call").1, at_root(ranks.clone()));
            assert_eq!(part.wait().expect("all call").1, [me]);
            let reduced = reduced.wait().expect("all call");
            assert!(me != root || reduced == [sum; 5]);
            assert_eq!(told.wait().expect("all call"), [root; 5]);
            assert_eq!(gathered.wait().expect("all call"), (vec![me], ranks.clone()));
            assert_eq!(scattered.wait().expect("all call").1, [me * n]);
            assert_eq!(into.wait().expect("all call"), (vec![me; 7], vec![n - 1; 7]));
            assert_eq!(all_reduce.wait().expect("all call"), [sum; 70]);
        });
    }
}

#[test]
fn many_are_under_way_and_are_made_in_order() {
    each(3, patient(), |world| {
        let (me, calls) = (me(&world), world.nonblocking());
        let mut rank = world.rank();
        let mut all: Vec<(usize, Pending<Vec<u64>>)> = Vec::new();
        for turn in 0..300 {
            // Other lengths: in another order they would be refused.
            all.push((turn, calls.all_reduce(vec![turn as u64; turn % 50 + 1], ReduceOp::Sum)));
            // Some ranks block where others do not.
            let mut buffer = vec![u64::from(me); 60];
            if turn % 97 == me as usize {
                rank.all_reduce(&mut buffer, ReduceOp::Sum).expect("all call");
                // It waited for those before.
                assert!(all.iter_mut().all(|(_, pending)| pending.test()));
            } else if turn % 97 < 3 {
                buffer = calls.all_reduce(buffer, ReduceOp::Sum).wait().expect("all call");
            } else {
                continue;
            }
            assert_eq!(buffer, [3; 60]);
        }
        for (turn, pending) in all.into_iter().rev() {
            assert_eq!(pending.wait().expect("all call"), vec![3 * turn as u64; turn % 50 + 1]);
        }
    });
}

#[test]
fn lent_and_boxed_buffers_come_back() {
    each(2, patient(), |world| {
        let lent: Lent<i64> = world.alloc(100).expect("memory");
        let (place, calls) = (lent.as_ptr(), world.nonblocking());
        let mut lent = calls.all_reduce(lent, ReduceOp::Sum).wait().expect("all call");
        assert_eq!(lent.as_ptr(), place);
        lent.fill(1);
        let lent = calls.all_reduce(lent, ReduceOp::Sum).wait().expect("all call");
        assert_eq!(*lent, [2; 100]);
        let boxed: Box<[i64]> = vec![1; 10].into();
        let boxed = calls.all_reduce(boxed, ReduceOp::Sum).wait().expect("all call");
        assert_eq!(*boxed, [2; 10]);
    });
}

#[test]
fn a_scope_lends_slices() {
    for n in COUNTS {
        each(n, patient(), |world| {
            let me = me(&world);
            let (mut sums, mine, mut all) = ([me; 100], vec![me; 3], vec![0; 3 * n as usize]);
            let mut lent = world.alloc::<u32>(10).expect("memory");
            lent.fill(2);
            let before = world.nonblocking().all_reduce(vec![1_u8], ReduceOp::Sum);
            let got = world.scope(|scope| {
                let sum = scope.all_reduce(&mut sums, ReduceOp::Max);
                scope.all_gather(&mine, &mut all);
                scope.all_reduce(&mut lent, ReduceOp::Sum);
                // The slice comes back for another call.
                let sums = sum.wait()?;
                assert_eq!(*sums, [n - 1; 100]);
                scope.all_reduce(sums, ReduceOp::Sum);
                // A call that blocks comes after those.
                world.rank().barrier()?;
                scope.barrier().wait()?;
                Ok(7)
            });
            assert_eq!(got.expect("all call"), 7);
            assert_eq!(sums, [n * (n - 1); 100]);
            assert_eq!(all, (0..n).flat_map(|rank| [rank; 3]).collect::<Vec<_>>());
            assert_eq!(*lent, [2 * n; 10]);
            assert_eq!(before.wait().expect("all call"), [n as u8]);
        });
    }
}

#[test]
fn every_call_has_a_form_for_a_scope() {
    each(3, patient(), |world| {
        let (me, ranks) = (me(&world), [0_u32, 1, 2]);
        let root = |all: [u32; 3]| if me == 2 { all.to_vec() } else { Vec::new() };
        let ([mut into, mut scattered, mut told, mut reduced, mut part], mut turned) =
            ([[me]; 5], [9; 3]);
        let (mine, from, mut whole) = ([me], root(ranks), root([9; 3]));
        let same = [me; 3];
        world
            .scope(|scope| {
                scope.all_reduce_into(&mine, &mut into, ReduceOp::Sum);
                scope.reduce_scatter(&ranks, &mut scattered, ReduceOp::Sum);
                scope.broadcast(&mut told, 2);
                scope.reduce(&mut reduced, ReduceOp::Sum, 2);
                scope.scatter(&from, &mut part, 2);
                scope.gather(&mine, &mut whole, 2);
                scope.all_to_all(&same, &mut turned);
                Ok(())
            })
            .expect("all call");
        assert_eq!((into, scattered, told, part), ([3], [3 * me], [2], [me]));
        assert_eq!((whole, turned), (root(ranks), ranks));
        assert!(me != 2 || reduced == [3]);
    });
}

#[test]
fn a_dropped_handle_is_a_call_and_its_error_is_told_by_the_next() {
    each(2, patient(), |world| {
        let (me, calls) = (me(&world), world.nonblocking());
        for _ in 0..100 {
            drop(calls.all_reduce(vec![1_u8; 1000], ReduceOp::Sum));
        }
        let mut rank = world.rank();
        rank.barrier().expect("all call");
        // Calls that differ are void for all.
        drop(calls.all_reduce(vec![1_u8; 1 + me as usize], ReduceOp::Sum));
        let error = rank.barrier().expect_err("the one before was refused");
        assert_eq!(error.code().as_str(), "E0414");
        rank.barrier().expect("it is told once");
        // One that is not made at all, by a call that does not block.
        drop(calls.all_gather(vec![1_u8], vec![0; 5]));
        let told = calls.barrier().wait();
        assert_eq!(code(told), "E0402");
        calls.barrier().wait().expect("it is told once");
        // At the end of a scope.
        let (one, mut five) = ([1_u8], [0; 5]);
        let told = world.scope(|scope| {
            scope.all_gather(&one, &mut five);
            Ok(())
        });
        assert_eq!(code(told), "E0402");
        let kept = calls.all_gather(vec![1_u8], vec![0; 5]);
        rank.barrier().expect("who keeps the handle is told by it");
        assert_eq!(code(kept.wait()), "E0402");
        assert_eq!(code(calls.broadcast(vec![1], 2).wait()), "E0411");
    });
}

/// A buffer that may panic.
struct Bad(Vec<u8>, When);

#[derive(PartialEq)]
enum When {
    Never,
    Used,
    /// After it was used for a while.
    Dropped,
}

impl Deref for Bad {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl DerefMut for Bad {
    fn deref_mut(&mut self) -> &mut [u8] {
        assert!(self.1 != When::Used, "its elements cannot be had");
        if self.1 == When::Dropped {
            std::thread::sleep(Duration::from_millis(200));
        }
        &mut self.0
    }
}

impl Drop for Bad {
    fn drop(&mut self) {
        assert!(self.1 != When::Dropped, "it cannot be dropped");
    }
}

#[test]
fn a_panic_is_an_error() {
    each(1, patient(), |world| {
        let call = |when| world.nonblocking().all_reduce(Bad(vec![1], when), ReduceOp::Sum);
        let kept = call(When::Used).wait();
        let Err(Error::Engine(EngineError::WorkerPanicked { message })) = &kept else {
            panic!("{:?}", code(kept))
        };
        assert_eq!(message, "its elements cannot be had");
        assert_eq!(*call(When::Never).wait().expect("a call"), [1]);
        drop(call(When::Used));
        assert_eq!(code(world.rank().barrier()), "E0410");
        // The call is gone when the thread drops it.
        drop(call(When::Dropped));
        world.rank().barrier().expect("the thread goes on");
    });
}

#[test]
fn a_rank_that_does_not_call_is_an_error_within_the_deadline() {
    let since = Instant::now();
    let told_off = AtomicU32::new(0);
    let told = each(2, hasty(), |world| {
        if me(&world) == 1 {
            // The rank is there, and calls nothing.
            until(&told_off, 1);
            return String::new();
        }
        let calls = world.nonblocking();
        let first = calls.all_reduce(vec![1_u8], ReduceOp::Sum);
        // Those behind it fail at once, and dropping the world waits for them.
        for _ in 0..5 {
            drop(calls.all_reduce(vec![1_u8], ReduceOp::Sum));
        }
        let text = code(first.wait());
        drop(world);
        told_off.fetch_add(1, Ordering::Release);
        text
    });
    assert_eq!(told[0], "E0405");
    assert!(since.elapsed() < Duration::from_secs(10));
}

#[test]
fn dropping_the_world_waits_for_calls_under_way() {
    let sums = each(2, patient(), |world| {
        if me(&world) == 1 {
            std::thread::sleep(Duration::from_millis(100));
        }
        let mut sum = world.nonblocking().all_reduce(vec![1_u8; 9], ReduceOp::Sum);
        drop(world);
        assert!(sum.test());
        sum.wait().expect("both called")
    });
    assert_eq!(sums, [[2; 9], [2; 9]]);
}
