//! Inputs that other ranks read in their owner's memory.

use std::fmt::Write as _;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use roundelay_core::schedule::text;
use roundelay_core::verify::Proved;

use super::{one_shot, plan, worlds};
use crate::shared_memory::Fault;

/// Returns an AllGather in which each rank copies the inputs of all ranks.
pub(super) fn gather(nranks: u32) -> Proved {
    let mut all = format!("schedule Gather AllGather nranks {nranks} root 0\n");
    for rank in 0..nranks {
        _ = writeln!(all, "rank {rank} stream 0");
        let others = || (0..nranks).filter(move |other| *other != rank);
        others().for_each(|other| _ = writeln!(all, "  post ack {rank}->{other} @0"));
        others().for_each(|other| _ = writeln!(all, "  wait ack {other}->{rank} @0"));
        for from in 0..nranks {
            let to = from + 1;
            _ = writeln!(all, "  copy {from}.input[0..1] -> {rank}.output[{from}..{to}] @0");
        }
        others().for_each(|other| _ = writeln!(all, "  post data {rank}->{other} @0"));
        others().for_each(|other| _ = writeln!(all, "  wait data {other}->{rank} @0"));
    }
    let schedule = text::parse(&all).unwrap_or_else(|why| panic!("{why:?}\n{all}"));
    Proved::new(schedule).expect("it is right")
}

/// In place, other ranks read an input that overlaps the owner's output only if the owner writes the bytes that are
/// already there; else the owner stages its input.
#[test]
fn in_place_what_is_only_copied_is_read_where_it_lies() {
    const COUNT: usize = 100_000;
    // Two ranks each reduce for themselves; more ranks share the work, and lend no input.
    for (nranks, reduces) in [(2, true), (3, false)] {
        let proved = if reduces { one_shot(nranks) } else { gather(nranks) };
        let mut worlds = worlds(nranks, Duration::from_secs(20));
        for world in &mut worlds {
            Arc::get_mut(world).expect("nobody else has it").spins = true;
        }
        thread::scope(|threads| {
            for world in &worlds {
                let proved = &proved;
                threads.spawn(move || {
                    let me = world.rank();
                    let plan = plan(world, proved, COUNT as u64);
                    let blocks = if reduces { 1 } else { nranks };
                    let mine = if reduces { 0 } else { COUNT * me as usize };
                    let mut all = vec![0; COUNT * blocks as usize];
                    // The first calls find out whether ranks can read each other's memory.
                    let (mut slots, tried) = (0, 10);
                    for turn in 0..30 {
                        all.fill(u32::MAX);
                        all[mine..][..COUNT].fill(turn * nranks + me);
                        if turn % nranks == me {
                            world.inject(u64::from(turn) + 1, 2 + turn % 3, || {}, Fault::Late(1));
                        }
                        plan.run_in_place(&mut all).expect("a run");
                        let sum = nranks * nranks * turn + nranks * (nranks - 1) / 2;
                        let copied = |at: usize| turn * nranks + (at / COUNT) as u32;
                        let wanted = |at: usize| if reduces { sum } else { copied(at) };
                        assert!((0..all.len()).all(|at| all[at] == wanted(at)), "turn {turn}");
                        if turn == tried {
                            slots = world.enter().expect("no call").stage.slots;
                        }
                    }
                    let now = world.enter().expect("no call").stage.slots;
                    assert_eq!(now > slots, reduces, "{slots} slots, and {now} at the end");
                });
            }
        });
    }
}

/// Readers get inputs of one and of several tiles as they were at the call, though the owners overwrite them as soon as
/// their call ends, and any rank is late in the middle of any call.
#[test]
fn what_is_read_is_what_was_given() {
    for (nranks, reduces) in [(2, true), (2, false), (3, false), (4, false)] {
        let proved = if reduces { one_shot(nranks) } else { gather(nranks) };
        let mut worlds = worlds(nranks, Duration::from_secs(20));
        for world in &mut worlds {
            // As if each rank had a core of its own.
            Arc::get_mut(world).expect("nobody else has it").spins = true;
        }
        thread::scope(|threads| {
            for world in &worlds {
                let proved = &proved;
                threads.spawn(move || {
                    let me = world.rank();
                    let counts = [14_000, 300_000, 100];
                    let plans = counts.map(|count| plan(world, proved, count as u64));
                    let mut input = Vec::new();
                    for turn in 0..30 {
                        let which = turn as usize % 3;
                        input.clear();
                        input.resize(counts[which], 7 * turn + me);
                        let outputs =
                            if reduces { counts[which] } else { counts[which] * nranks as usize };
                        let mut output = vec![0; outputs];
                        if turn % nranks == me {
                            let late = Fault::Late(u64::from(turn % 4));
                            world.inject(u64::from(turn) + 1, 2 + turn % 3, || {}, late);
                        }
                        plans[which].run(&input, &mut output).expect("a run");
                        if reduces {
                            let sum = nranks * 7 * turn + nranks * (nranks - 1) / 2;
                            assert!(output.iter().all(|x| *x == sum), "turn {turn}");
                        } else {
                            let wanted = |at: usize| 7 * turn + (at / counts[which]) as u32;
                            assert!((0..outputs).all(|at| output[at] == wanted(at)), "turn {turn}");
                        }
                    }
                });
            }
        });
        // The calls did read in other ranks' memory, where the system lets a process read its own memory.
        assert!(worlds.iter().all(|world| world.enter().expect("no call").stage.reach.all));
    }
}
