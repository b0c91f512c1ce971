//! What a process that is no rank sees of a world, whatever its words are.

use std::os::unix::fs::MetadataExt as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::{one_shot, plan};
use crate::Options;
use crate::shared_memory::observe::{ObservedWorld, circles, of_process};
use crate::shared_memory::world::memory::arena::{CALLS, NAME};
use crate::shared_memory::world::memory::shared_state::CallHeader;
use crate::shared_memory::{World, at_site};

fn worlds(nranks: u32) -> Vec<Arc<World>> {
    let worlds = World::together(nranks, Options::new()).expect("worlds");
    worlds.into_iter().map(Arc::new).collect()
}

/// Returns a world of this process as it is seen from outside.
fn seen(world: &World) -> Option<ObservedWorld> {
    let file = world.file.as_ref()?.try_clone().ok()?;
    let id = file.metadata().ok()?.ino();
    of_process(std::process::id()).worlds.into_iter().find(|world| world.id == id)
}

#[test]
fn a_rank_that_waits_is_seen_and_its_calls_are() {
    let (worlds, proved) = (worlds(2), one_shot(2));
    let plans: Vec<_> = worlds.iter().map(|world| plan(world, &proved, 1000)).collect();
    let before = seen(&worlds[0]).expect("a world");
    assert!(before.ranks.iter().all(|rank| rank.number == 0 && !rank.in_call));
    assert!(before.ranks.iter().all(|rank| rank.process.is_some() && rank.calls.is_empty()));
    thread::scope(|threads| {
        let first = threads.spawn(|| plans[0].run_in_place(&mut [1_u32; 1000]));
        let start = Instant::now();
        let waits = loop {
            let world = seen(&worlds[0]).expect("a world");
            if world.ranks[0].wait.is_some() {
                break world;
            }
            assert!(start.elapsed() < Duration::from_secs(20), "{world:?}");
        };
        let [rank, other] = &waits.ranks[..] else { panic!("{waits:?}") };
        assert!(rank.in_call && (rank.number, other.number) == (1, 0));
        let wait = rank.wait.as_ref().expect("it waits");
        assert_eq!((wait.on, wait.number, wait.missing), (Some(1), 1, 1));
        assert!(wait.since <= rank.calls[0].since && rank.calls[0].ended.is_none(), "{rank:?}");
        assert!(rank.calls[0].since < start.elapsed() + Duration::from_secs(1), "{rank:?}");
        assert_eq!(rank.calls[0].name, "AllReduce of 1000 u32, sum");
        assert_eq!(rank.calls[0].algorithm.as_deref(), Some("OneShot"));
        plans[1].run_in_place(&mut [1_u32; 1000]).expect("both are there");
        first.join().expect("no panic").expect("both are there");
    });
    for _ in 1..100 {
        thread::scope(|threads| {
            threads.spawn(|| plans[0].run_in_place(&mut [1_u32; 1000]).expect("both call"));
            plans[1].run_in_place(&mut [1_u32; 1000]).expect("both call");
        });
    }
    for rank in seen(&worlds[1]).expect("a world").ranks {
        assert!(!rank.in_call && rank.wait.is_none(), "{rank:?}");
        let numbers: Vec<u64> = rank.calls.iter().map(|call| call.number).collect();
        assert_eq!(numbers, (100 - CALLS + 1..=100).rev().collect::<Vec<_>>());
        assert!(rank.calls.iter().all(|call| !call.failed));
        let ended = |call: &crate::shared_memory::observe::ObservedCall| call.ended;
        assert!(rank.calls.iter().all(|call| ended(call).is_some_and(|end| end <= call.since)));
    }
    worlds[1].abort("it is over").expect("it may");
    let failed = seen(&worlds[0]).expect("a world").failure;
    assert_eq!(failed.as_deref(), Some("rank 1 gave up: it aborted: it is over"));
}

/// Rank 0 keeps the sites of its calls, and rank 1 does not.
#[test]
fn a_call_is_seen_with_its_site() {
    let worlds = World::together(2, Options::new().sites(true)).expect("a world");
    let mut worlds: Vec<_> = worlds.into_iter().map(Arc::new).collect();
    let other = Arc::get_mut(&mut worlds[1]).expect("no other reference");
    other.sites = false;
    other.local.get_mut().expect("no panic").sites.kept = None;
    let proved = one_shot(2);
    let plans: Vec<_> = worlds.iter().map(|world| plan(world, &proved, 10)).collect();
    let call = |rank: usize| {
        plans[rank].run_in_place(&mut [1_u32; 10]).expect("both call");
    };
    thread::scope(|threads| {
        threads.spawn(|| (0..4).for_each(|_| call(1)));
        for line in [88, 99, 88] {
            let site = Some(Arc::from(format!("/home/me/train.py:{line}")));
            at_site(site, || at_site(worlds[0].caller_site(), || call(0)));
        }
        // No file called the file of this test, but for those of the system.
        at_site(worlds[0].caller_site(), || call(0));
    });
    let world = seen(&worlds[0]).expect("a world");
    let sites: Vec<_> = world.ranks[0].calls.iter().map(|call| call.site.as_deref()).collect();
    let [system, rest @ ..] = &sites[..] else { panic!("{sites:?}") };
    let line = |line: u32| format!("/home/me/train.py:{line}");
    assert_eq!(rest.iter().flatten().collect::<Vec<_>>(), [&line(88), &line(99), &line(88)]);
    if cfg!(target_env = "gnu") {
        assert!(
            system.is_some_and(|site| site.contains(".so") && site.contains("+0x")),
            "{sites:?}"
        );
    }
    assert_eq!(world.ranks[0].calls[1].text(), "AllReduce of 10 u32, sum, at train.py:88");
    assert!(
        world.ranks[1].calls.iter().all(|call| call.site.is_none() && call.text() == call.name)
    );
}

/// A record that is written while it is read is dropped, and never a mixture of two.
#[test]
fn a_record_is_of_one_call() {
    let worlds = worlds(1);
    let over = AtomicBool::new(false);
    thread::scope(|threads| {
        threads.spawn(|| {
            let mut number = 0;
            while !over.load(Ordering::Relaxed) {
                number += 1;
                let header = CallHeader::of_words([number, number, number]);
                worlds[0].shared.record_begin(0, number, &header, None);
                worlds[0].shared.publish(0, number, &header, 0);
            }
        });
        let (mut found, mut mixed) = (0, None);
        let start = Instant::now();
        let least = Duration::from_millis(500);
        while mixed.is_none() && (found == 0 || start.elapsed() < least) {
            assert!(start.elapsed() < Duration::from_secs(60), "no record is found");
            // The record that is overwritten next, and later ones.
            let last = worlds[0].shared.number(0);
            for number in (last + 1).saturating_sub(CALLS).max(1)..(last + 4).saturating_sub(CALLS)
            {
                if let Some(record) = worlds[0].shared.recorded(0, number) {
                    found += 1;
                    mixed = mixed.or((record.header.words() != [number; 3]).then_some(record));
                }
            }
        }
        over.store(true, Ordering::Relaxed);
        assert!(mixed.is_none() && found > 0, "{mixed:?} of {found} records");
    });
}

/// Every word of a rank's seat, of its records and of a name has every kind of wrong value.
#[test]
fn rubbish_is_seen_as_data() {
    let (worlds, proved) = (worlds(3), one_shot(3));
    let plans: Vec<_> = worlds.iter().map(|world| plan(world, &proved, 10)).collect();
    thread::scope(|threads| {
        for plan in &plans {
            threads.spawn(|| plan.run_in_place(&mut [1_u32; 10]).expect("all call"));
        }
    });
    let arena = &worlds[0].shared.arena;
    let layout = arena.layout;
    let seat = (0..8).flat_map(|line| (0..8).map(move |word| layout.own(1, line) + 8 * word));
    let record = (0..8).map(|word| layout.record(1, 1) + 8 * word);
    let name = (0..8).chain([NAME / 8 - 1]).map(|word| layout.name(0) + 8 * word);
    let failure = (8..16).map(|word| 8 * word);
    // The record of the call has a site.
    arena.word(layout.record(1, 1) + 48).store(1, Ordering::Relaxed);
    let site = (0..8).map(|word| layout.site(1, 1) + 8 * word);
    for at in seat.chain(record).chain(name).chain(failure).chain(site) {
        let before = arena.word(at).load(Ordering::Relaxed);
        for odd in [1, 2, 7, 1 << 24, 1 << 32, 1 << 63, u64::MAX - 1, u64::MAX] {
            arena.word(at).store(odd, Ordering::Relaxed);
            // The words may name a process that is none, calls that are none, and times that are to come.
            let world = seen(&worlds[0]).expect("a world");
            assert_eq!(world.ranks.len(), 3, "{at} {odd}");
            assert!(world.ranks.iter().all(|rank| rank.calls.len() <= CALLS as usize));
            assert!(circles(&[world]).is_empty(), "{at} {odd}");
        }
        arena.word(at).store(before, Ordering::Relaxed);
    }
}
