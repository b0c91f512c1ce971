//! Worlds of parts of a world.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use roundelay::library::{RingAllReduce, RingBroadcast};
use roundelay::{ReduceOp, World};

use super::{COUNTS, code, each, hasty, me, patient, until};

/// The ranks of the world that all came from, in the order of this one.
fn members(world: &World, was: u32) -> Vec<u32> {
    let mut all = vec![99; world.nranks() as usize];
    world.rank().all_gather(&[was], &mut all).expect("all call");
    all
}

#[test]
fn one_color_is_a_world_of_all() {
    for n in COUNTS {
        each(n, patient(), |world| {
            let was = me(&world);
            // The order of before, the reverse order, and equal keys.
            for (key, expected) in [
                (i64::from(was), (0..n).collect::<Vec<_>>()),
                (-i64::from(was), (0..n).rev().collect()),
                (i64::MIN, (0..n).collect()),
            ] {
                let part = world.split(Some(u32::MAX), key).expect("all call").expect("a color");
                assert_eq!(members(&part, was), expected);
                assert_eq!(expected[me(&part) as usize], was);
            }
            assert_eq!(members(&world, was), (0..n).collect::<Vec<_>>());
        });
    }
}

#[test]
fn colors_are_worlds_of_their_own() {
    each(5, patient(), |world| {
        let was = me(&world);
        let half = world.split(Some(was % 2), 0).expect("all call").expect("a color");
        let expected = [vec![0, 2, 4], vec![1, 3]];
        assert_eq!(members(&half, was), expected[was as usize % 2]);
        let alone = world.split(Some(was), 0).expect("all call").expect("a color");
        assert_eq!(members(&alone, was), [was]);
        // Rank 2 takes no part; color 0 is not "no color".
        let some = world.split((was != 2).then_some(0), 0).expect("all call");
        assert_eq!(some.is_none(), was == 2);
        if let Some(some) = &some {
            assert_eq!(members(some, was), [0, 1, 3, 4]);
            // A part of a part, while all others live.
            let pair = some.split(Some(me(some) / 2), 0).expect("all call").expect("a color");
            assert_eq!(members(&pair, was), if was < 2 { [0, 1] } else { [3, 4] });
        }
        let none = world.split(None, 0).expect("all call");
        assert!(none.is_none());
        assert_eq!(members(&world, was), [0, 1, 2, 3, 4]);
    });
}

#[test]
fn a_world_shrinks_by_those_who_left() {
    for n in [2, 3, 5] {
        for gone in [0, n - 1] {
            each(n, patient(), |world| {
                let was = me(&world);
                let mut lent = world.alloc::<u32>(50).expect("memory");
                lent.fill(was);
                world.rank().barrier().expect("all are there");
                if was == gone {
                    return;
                }
                let error = world.rank().all_reduce(&mut lent, ReduceOp::Sum);
                assert_eq!(code(error), "E0428");
                let kept: Vec<u32> = lent.to_vec();
                let less = world.shrink().expect("those who are left");
                let left: Vec<u32> = (0..n).filter(|rank| *rank != gone).collect();
                assert_eq!(members(&less, was), left);
                // Memory that the old world lent is memory like any other.
                lent.fill(was);
                less.rank().all_reduce(&mut lent, ReduceOp::Sum).expect("all call");
                assert_eq!(*lent, [left.iter().sum::<u32>(); 50]);
                assert_eq!(kept.len(), 50);
                // The old one has failed for good, and goes.
                assert_eq!(code(world.rank().barrier()), "E0428");
                drop(world);
                let mut lent = less.alloc::<u32>(5).expect("memory");
                lent.fill(1);
                less.rank().all_reduce(&mut lent, ReduceOp::Sum).expect("all call");
                assert_eq!(*lent, [n - 1; 5]);
            });
        }
    }
}

#[test]
fn worlds_shrink_again_and_again() {
    each(5, patient(), |world| {
        let was = me(&world);
        let mut world = world.using(RingAllReduce::new());
        for size in (1..5).rev() {
            if was == size {
                return;
            }
            // Not all need to have found out by themselves.
            if was > 0 || size % 2 == 0 {
                assert_eq!(code(world.rank().barrier()), "E0428");
            }
            world = world.shrink().expect("those who are left");
            assert_eq!(members(&world, was), (0..size).collect::<Vec<_>>());
            // By its own algorithm, for fewer.
            let mut buffer = [1_i32; 30];
            world.rank().all_reduce(&mut buffer, ReduceOp::Sum).expect("all call");
            assert_eq!(buffer, [size as i32; 30]);
        }
    });
}

#[test]
fn a_shrunk_world_has_the_algorithms_and_a_split_one_has_none() {
    each(2, patient(), |world| {
        // One for root 1 alone: any other root is refused.
        let world = world.using(RingBroadcast::new().root(1));
        let told = |world: &World| code(world.rank().broadcast(&mut [1_u8], 0));
        assert_eq!(told(&world), "E0211");
        assert_eq!(told(&world.shrink().expect("all")), "E0211");
        assert_eq!(told(&world.split(Some(0), 0).expect("all").expect("a color")), "none");
    });
}

#[test]
fn without_a_failure_it_is_a_second_world() {
    for n in COUNTS {
        each(n, patient(), |world| {
            let was = me(&world);
            let under_way = world.nonblocking().all_reduce(vec![1_u32; 10], ReduceOp::Sum);
            let (again, third) = (world.shrink().expect("all"), world.shrink().expect("all"));
            for world in [&third, &world, &again] {
                assert_eq!(members(world, was), (0..n).collect::<Vec<_>>());
            }
            assert_eq!(under_way.wait().expect("all call"), [n; 10]);
        });
    }
}

#[test]
fn a_rank_that_does_not_come_is_named_and_may_come_later() {
    let refused = AtomicU32::new(0);
    each(3, hasty(), |world| {
        let was = me(&world);
        if was == 1 {
            // The rank is alive, but has not heard yet.
            until(&refused, 2);
        } else {
            let error = world.shrink().expect_err("rank 1 is elsewhere").to_string();
            assert!(
                error.starts_with(&format!("rank {was} waited 700ms for rank 1 (process ")),
                "{error}"
            );
            assert!(error.ends_with("[E0405]"), "{error}");
            refused.fetch_add(1, Ordering::Release);
        }
        let end = Instant::now() + Duration::from_secs(60);
        let shrunk = loop {
            match world.shrink() {
                Ok(shrunk) => break shrunk,
                Err(error) => assert!(Instant::now() < end, "{error}"),
            }
        };
        assert_eq!(members(&shrunk, was), [0, 1, 2]);
    });
}
