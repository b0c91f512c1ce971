//! Calls that a rank refuses, and void calls from which a rank had returned.

use std::fmt::Write as _;
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::{Duration, Instant};

use roundelay_core::schedule::text;
use roundelay_core::verify::Proved;

use super::{one_shot, plan, worlds};
use crate::Error;
use crate::shared_memory::World;

const DEADLINE: Duration = Duration::from_secs(20);
const COUNT: usize = 100;

/// Returns a Broadcast, or a Reduce, whose ranks meet only the root.
fn star(collective: &str, nranks: u32) -> Proved {
    let mut all = format!("schedule Star {collective} nranks {nranks} root 0\nrank 0 stream 0\n");
    let leaves = || 1..nranks;
    leaves().for_each(|leaf| _ = writeln!(all, "  post ack 0->{leaf} @0"));
    if collective == "Broadcast" {
        all += "  copy 0.input[0..1] -> 0.output[0..1] @0\n";
    } else {
        leaves().for_each(|leaf| _ = writeln!(all, "  wait ack {leaf}->0 @0"));
        let inputs: Vec<String> = (0..nranks).map(|rank| format!("{rank}.input[0..1]")).collect();
        _ = writeln!(all, "  fold {} -> 0.output[0..1] @0", inputs.join(", "));
        leaves().for_each(|leaf| _ = writeln!(all, "  post data 0->{leaf} @0"));
    }
    if collective == "Broadcast" {
        leaves().for_each(|leaf| _ = writeln!(all, "  wait data {leaf}->0 @0"));
    }
    for leaf in leaves() {
        _ = writeln!(all, "rank {leaf} stream 0\n  wait ack 0->{leaf} @0");
        let rest = if collective == "Broadcast" {
            format!("  copy 0.input[0..1] -> {leaf}.output[0..1] @0\n  post data {leaf}->0 @0")
        } else {
            format!("  post ack {leaf}->0 @0\n  wait data 0->{leaf} @0")
        };
        _ = writeln!(all, "{rest}");
    }
    let schedule = text::parse(&all).unwrap_or_else(|why| panic!("{why:?}\n{all}"));
    Proved::new(schedule).unwrap_or_else(|why| panic!("{why:?}\n{all}"))
}

fn void(error: &Error) -> String {
    assert!(matches!(error, Error::CallsDiffer(_)), "{error}");
    error.to_string()
}

/// Each of several ranks, by a thread of its own.
fn each<R: Send>(worlds: &[Arc<World>], of: impl Fn(&Arc<World>) -> R + Sync) -> Vec<R> {
    thread::scope(|threads| {
        let all: Vec<_> = worlds.iter().map(|world| threads.spawn(|| of(world))).collect();
        all.into_iter().map(|one| one.join().expect("no panic")).collect()
    })
}

#[test]
fn the_others_hear_at_once_why_a_rank_makes_no_call() {
    let (worlds, proved) = (worlds(3, DEADLINE), one_shot(3));
    let long = "the tensor is too short, ".repeat(40);
    for turn in 0..20_u64 {
        let refuses = (turn % 3) as u32;
        let begun = Instant::now();
        let told = each(&worlds, |world| {
            if world.rank() == refuses {
                thread::sleep(Duration::from_micros(50 * (turn % 4)));
                return world.refuse(&long).err();
            }
            plan(world, &proved, COUNT as u64).run_in_place(&mut [1_u32; COUNT]).err()
        });
        assert!(begun.elapsed() < DEADLINE / 4, "at once");
        for (rank, told) in told.iter().enumerate() {
            if rank as u32 == refuses {
                assert!(told.is_none(), "{told:?}");
                continue;
            }
            let text = void(told.as_ref().expect("the call is void"));
            let number = 2 * turn + 1;
            let begins = format!("rank {refuses} refused to make call {number}, so it is void");
            assert!(text.starts_with(&begins) && text.contains("too short, the tensor"), "{text}");
        }
        // All go on with the next call.
        let made = each(&worlds, |world| {
            let mut buffer = [1_u32; COUNT];
            plan(world, &proved, COUNT as u64).run_in_place(&mut buffer).expect("a right call");
            buffer[0]
        });
        assert_eq!(made, [3; 3]);
    }
}

/// Where all ranks refuse one call, each has its own reason and hears of no other.
#[test]
fn ranks_that_all_refuse_go_on() {
    let (worlds, proved) = (worlds(3, DEADLINE), one_shot(3));
    let made = each(&worlds, |world| {
        for _ in 0..30 {
            world.refuse("no such type").expect("nothing else is void");
        }
        let mut buffer = [1_u32; COUNT];
        plan(world, &proved, COUNT as u64).run_in_place(&mut buffer).expect("a right call");
        buffer[0]
    });
    assert_eq!(made, [3; 3]);
}

/// A rank that returned from a call before it was void hears of it when it leaves, once, and also where it waits for
/// the others then.
#[test]
fn a_rank_that_returned_from_a_void_call_hears_of_it_at_its_end() {
    for (collective, one) in [("Broadcast", 0), ("Reduce", 1)] {
        for first in [true, false] {
            let (worlds, proved) = (worlds(3, DEADLINE), one_shot(3));
            let star = star(collective, 3);
            let returned = Barrier::new(3);
            let told = each(&worlds, |world| {
                if world.rank() == one {
                    let done = plan(world, &star, COUNT as u64).run_in_place(&mut [1_u32; COUNT]);
                    if first {
                        returned.wait();
                    }
                    let mut told = Vec::from_iter(done.err());
                    told.extend((0..3).filter_map(|_| world.farewell().err()));
                    return told;
                }
                if first {
                    returned.wait();
                }
                thread::sleep(Duration::from_millis(20));
                let done = plan(world, &proved, COUNT as u64).run_in_place(&mut [1_u32; COUNT]);
                let mut told = vec![done.expect_err("the calls differ")];
                told.extend(world.farewell().err());
                told
            });
            for (rank, told) in told.iter().enumerate() {
                assert_eq!(told.len(), 1, "{collective} {first} {rank}: {told:?}");
                let text = void(&told[0]);
                assert!(text.contains(collective) && text.contains("AllReduce"), "{text}");
                assert!(!text.contains("had left"), "{text}");
            }
        }
    }
}

/// A rank that leaves does not wait for ranks that have left, and not for ever.
#[test]
fn a_farewell_ends() {
    let mut worlds = worlds(3, Duration::from_secs(2));
    let star = star("Broadcast", 3);
    let root = worlds.remove(0);
    plan(&root, &star, COUNT as u64).run_in_place(&mut [1_u32; COUNT]).expect("it waits for none");
    let begun = Instant::now();
    root.farewell().expect("nobody made another call");
    assert!(begun.elapsed() >= Duration::from_secs(1), "half of the deadline");
    drop(worlds);
    let begun = Instant::now();
    root.farewell().expect("nobody made another call");
    assert!(begun.elapsed() < Duration::from_secs(1), "all others have left");
}
