//! Tests of the engine with threads that each have a world of their own over one arena, as processes have.

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use roundelay_core::dtype::{DType, ReduceOp};
use roundelay_core::schedule::text;
use roundelay_core::verify::Proved;

mod checks;
mod ids;
mod observed;
mod reach;
mod refusals;
mod rubbish;
mod tiles;
mod ways;

use super::{World, WorldPlan};
use crate::Options;

/// Returns an AllReduce in which each rank reads the inputs of all ranks.
fn one_shot(nranks: u32) -> Proved {
    let mut all = format!("schedule OneShot AllReduce nranks {nranks} root 0\n");
    for rank in 0..nranks {
        _ = writeln!(all, "rank {rank} stream 0");
        let others = || (0..nranks).filter(move |other| *other != rank);
        others().for_each(|other| _ = writeln!(all, "  post ack {rank}->{other} @0"));
        others().for_each(|other| _ = writeln!(all, "  wait ack {other}->{rank} @0"));
        let inputs: Vec<String> = (0..nranks).map(|other| format!("{other}.input[0..1]")).collect();
        _ = writeln!(all, "  fold {} -> {rank}.theirs#0@0[0..1] @0", inputs.join(", "));
        others().for_each(|other| _ = writeln!(all, "  post data {rank}->{other} @0"));
        others().for_each(|other| _ = writeln!(all, "  wait data {other}->{rank} @0"));
        _ = writeln!(all, "  copy {rank}.theirs#0@0[0..1] -> {rank}.output[0..1] @0");
    }
    let scratch = all.replacen("rank 0", "scratch theirs slots 1 width 1\nrank 0", 1);
    let schedule = text::parse(&scratch).unwrap_or_else(|why| panic!("{why:?}\n{scratch}"));
    Proved::new(schedule).expect("it is right")
}

fn worlds(nranks: u32, deadline: Duration) -> Vec<Arc<World>> {
    let worlds =
        World::together(nranks, Options::new().deadline(deadline).measure(false)).expect("worlds");
    worlds.into_iter().map(Arc::new).collect()
}

fn plan(world: &Arc<World>, proved: &Proved, count: u64) -> WorldPlan {
    WorldPlan::new(world, proved, count, DType::U32, ReduceOp::Sum).expect("a plan")
}

/// A forked child of a rank, such as a data loader, has no part in the world: its calls fail, it does not have the
/// arena, and its drops change nothing.
#[test]
fn a_forked_child_is_no_rank() {
    use std::os::unix::process::CommandExt as _;

    let (worlds, proved) = (worlds(2, Duration::from_secs(20)), one_shot(2));
    let plans: Vec<WorldPlan> = worlds.iter().map(|world| plan(world, &proved, 100)).collect();
    let mine = worlds[0].clone();
    let lent = mine.alloc::<u32>(100).expect("memory");
    let child = plan(&mine, &proved, 100);
    // Only the child drops these values.
    let gone = std::cell::Cell::new(Some((mine, lent)));
    let check = move || {
        let refused = child.run(&[0_u32; 100], &mut [0; 100]);
        let refused = refused.is_err_and(|error| error.code().as_str() == "E0427");
        let empty = gone.take().is_some_and(|(_, lent)| lent.is_empty());
        if refused && empty { Ok(()) } else { Err(std::io::Error::other("it is a rank")) }
    };
    let mut command = std::process::Command::new("true");
    let check = std::sync::Mutex::new(check);
    // SAFETY: the closure runs in the child between fork and exec. It allocates little; another thread can hold the
    // allocator's lock at the fork only by chance, and glibc handles that case.
    unsafe { command.pre_exec(move || (check.lock().expect("no panic"))()) };
    let status = command.status().expect("the child found what it should");
    assert!(status.success());
    drop(command);
    // The ranks go on.
    thread::scope(|threads| {
        for plan in &plans {
            threads.spawn(|| {
                let mut buffer = [3_u32; 100];
                plan.run_in_place(&mut buffer).expect("a run");
                assert_eq!(buffer, [6; 100]);
            });
        }
    });
}

/// Ranks that come at different times in each call get equal results.
#[test]
fn ranks_that_come_at_any_time() {
    for nranks in [2, 3, 5] {
        let (worlds, proved) = (worlds(nranks, Duration::from_secs(20)), one_shot(nranks));
        thread::scope(|threads| {
            for world in &worlds {
                let proved = &proved;
                threads.spawn(move || {
                    let plans = [10, 300_000].map(|count| plan(world, proved, count));
                    let mut random = fastrand::Rng::with_seed(world.rank().into());
                    for turn in 0..40_u32 {
                        if random.u8(..8) == 0 {
                            thread::sleep(Duration::from_micros(random.u64(..512)));
                        }
                        let plan = &plans[usize::from(turn % 5 == 0)];
                        let mut buffer =
                            vec![turn + world.rank(); if turn % 5 == 0 { 300_000 } else { 10 }];
                        plan.run_in_place(&mut buffer).expect("a run");
                        let sum = nranks * turn + nranks * (nranks - 1) / 2;
                        assert!(buffer.iter().all(|x| *x == sum), "turn {turn}");
                    }
                });
            }
        });
    }
}

/// One rank makes a schedule, and the other ranks take it. If the schedule is damaged, or there is none to take, each
/// rank makes its own. The results are equal.
#[test]
fn a_schedule_is_made_once() {
    use std::sync::atomic::AtomicUsize;

    let worlds = worlds(3, Duration::from_secs(20));
    let made = AtomicUsize::new(0);
    let call = |world: &Arc<World>, key: &str, fails: bool| {
        let make = || {
            made.fetch_add(1, Ordering::Relaxed);
            // The other ranks come while the schedule is made.
            thread::sleep(Duration::from_millis(30));
            if fails { Err(()) } else { Ok(one_shot(3)) }
        };
        let prepared = world.prepare(&[key], make)?;
        let plan = WorldPlan::from_prepared(world, &prepared, 1000, DType::U32, ReduceOp::Sum)
            .expect("a plan");
        let mut buffer = vec![world.rank(); 1000];
        plan.run_in_place(&mut buffer).expect("a run");
        assert_eq!(buffer, [3; 1000]);
        Ok(())
    };
    let all = |key: &'static str, fails: bool| {
        let before = made.load(Ordering::Relaxed);
        thread::scope(|threads| {
            let calls = worlds.iter().map(|world| threads.spawn(|| call(world, key, fails)));
            for called in calls.collect::<Vec<_>>() {
                let done: Result<(), ()> = called.join().expect("no panic");
                assert_eq!(done.is_err(), fails);
            }
        });
        made.load(Ordering::Relaxed) - before
    };
    assert_eq!(all("a", false), 1);
    // The second time, the schedule is there.
    assert_eq!(all("a", false), 0);
    // Another key gives another schedule.
    assert_eq!(all("b", false), 1);
    assert_eq!(all("c", true), 3, "each rank gets the error of `make`");
    // A word of the text is changed.
    let arena = &worlds[0].shared.arena;
    for place in 0..32 {
        arena.word(arena.layout.offer(place) + 8 * 20).store(0x2020_2020, Ordering::Relaxed);
    }
    assert_eq!(all("a", false), 3);
}

/// A rank that writes any value anywhere into the shared words and the staged data causes errors or wrong sums, and no
/// other harm: no access outside of the arena, no panic, no wait without a bound.
#[test]
fn rubbish_in_shared_memory_is_no_place() {
    let proved = one_shot(3);
    for seed in 0..60_u64 {
        let worlds = worlds(3, Duration::from_millis(40));
        let over = AtomicBool::new(false);
        thread::scope(|threads| {
            let calling: Vec<_> = worlds[..2]
                .iter()
                .map(|world| {
                    let (proved, over) = (&proved, &over);
                    threads.spawn(move || {
                        let plan = plan(world, proved, 1000);
                        let mut lent = world.alloc::<u32>(1000).expect("memory");
                        for turn in 0..200 {
                            let done = if turn % 2 == 0 {
                                plan.run_in_place(&mut lent)
                            } else {
                                plan.run_in_place(&mut [turn; 1000])
                            };
                            if done.is_err_and(|error| error.code().as_str() != "E0414") {
                                break;
                            }
                        }
                        over.store(true, Ordering::Relaxed);
                    })
                })
                .collect();
            // The third rank makes calls for a while, and writes random words.
            let (proved, world, over) = (&proved, &worlds[2], &over);
            threads.spawn(move || {
                let plan = plan(world, proved, 1000);
                let mut numbers = fastrand::Rng::with_seed(seed);
                let mut lent = world.alloc::<u32>(1000).expect("memory");
                while !over.load(Ordering::Relaxed) {
                    if plan.run_in_place(&mut lent).is_err() {
                        break;
                    }
                    let random = numbers.u64(..);
                    let arena = &world.shared.arena;
                    let words = arena.layout.words();
                    // Half of the words are those of its own calls, most of which are positions.
                    let call = arena.layout.call(2, random >> 8) + (random >> 16) as usize % 64;
                    let any = words.start + (random >> 20) as usize % words.len();
                    let at = if random >> 62 & 1 == 0 { call } else { any };
                    let word = if random >> 63 == 0 { random } else { random >> 50 };
                    arena.word(at / 8 * 8).store(word, Ordering::Relaxed);
                }
            });
            for called in calling {
                called.join().expect("no panic");
            }
        });
    }
}
