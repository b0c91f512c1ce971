//! Models of the published words, of sleep and wake-up, and of shared work.

use std::sync::Arc;

use loom::thread;
use roundelay_core::collective::Collective;
use roundelay_core::dtype::{DType, ReduceOp};
use roundelay_core::ids::RankId;

use super::Host;
use crate::model_memory::{ModelledMemory, check, within};
use crate::shared_memory::stage::work_counter::WorkCounter;
use crate::shared_memory::world::memory::shared_state::{CallHeader, SharedState};

fn call(count: u64) -> CallHeader {
    let kind = (Collective::AllReduce, RankId(0));
    let mut header = CallHeader::new(7, kind, (count, DType::U32, ReduceOp::Sum));
    (header.direct, header.slot) = (Some([64, 128]), 1);
    header
}

#[test]
fn who_sees_the_count_sees_the_call_and_the_tiles() {
    let host = Host::new(2);
    check(move || {
        let (states, tiles) =
            (host.states(), Arc::new([ModelledMemory::new(), ModelledMemory::new()]));
        let (theirs, writes) = (states[1].clone(), tiles.clone());
        let other = thread::spawn(move || {
            writes[0].raise();
            theirs.publish(1, 1, &call(5), 1);
            writes[1].raise();
            theirs.stage(1, 1, 2);
        });
        for _ in 0..2 {
            if let Some(staged) = states[0].staged(1, 1) {
                assert_eq!(states[0].header(1, 1), call(5));
                assert!((1..=staged).all(|tile| tiles[tile as usize - 1].get() == 1));
            }
        }
        other.join().unwrap();
    });
}

#[test]
fn who_is_done_has_read() {
    let host = Host::new(2);
    check(move || {
        let (states, slot) = (host.states(), Arc::new(ModelledMemory::new()));
        let (theirs, reads) = (states[1].clone(), slot.clone());
        let other = thread::spawn(move || {
            assert_eq!(reads.get(), 0);
            theirs.finish(1, 1, 1);
        });
        for _ in 0..2 {
            if states[0].finished(1, 1, 1) {
                slot.raise();
                break;
            }
        }
        other.join().unwrap();
    });
}

/// Sleeps until rank `on` has staged `tiles` tiles of its first call.
fn sleep_until(shared: &SharedState, rank: usize, on: usize, tiles: u64) {
    let ready = || shared.staged(on, 1).is_some_and(|staged| staged >= tiles);
    while !ready() {
        shared.sleep(rank, 1, ready);
    }
}

#[test]
fn whoever_sleeps_is_woken() {
    let host = Host::new(2);
    check(move || {
        let states = host.states();
        let theirs = states[1].clone();
        let other = thread::spawn(move || {
            theirs.publish(1, 1, &call(5), 1);
            theirs.stage(1, 1, 2);
        });
        sleep_until(&states[0], 0, 1, 1);
        sleep_until(&states[0], 0, 1, 2);
        other.join().unwrap();
    });
}

#[test]
fn two_that_sleep_for_each_other_are_woken() {
    let host = Host::new(2);
    check(move || {
        let states = host.states();
        let theirs = states[1].clone();
        let answer = |shared: &SharedState, rank: usize| {
            shared.publish(rank, 1, &call(5), 1);
            sleep_until(shared, rank, 1 - rank, 1);
            shared.stage(rank, 1, 2);
            sleep_until(shared, rank, 1 - rank, 2);
        };
        let other = thread::spawn(move || answer(&theirs, 1));
        answer(&states[0], 0);
        other.join().unwrap();
    });
}

#[test]
fn one_that_wakes_up_leaves_the_other_counted() {
    let host = Host::new(3);
    within(2, move || {
        let states = host.states();
        let others = [1, 2].map(|rank: usize| {
            let shared = states[rank].clone();
            thread::spawn(move || sleep_until(&shared, rank, 0, rank as u64))
        });
        states[0].publish(0, 1, &call(5), 1);
        states[0].stage(0, 1, 2);
        others.into_iter().for_each(|other| _ = other.join().unwrap());
    });
}

#[test]
fn a_message_wakes_whoever_it_is_for() {
    let host = Host::new(2);
    check(move || {
        let states = host.states();
        let theirs = states[1].clone();
        let word = |shared: &SharedState| shared.arena.layout.signal(1, 0, 0);
        let other = thread::spawn(move || {
            let said = theirs.arena.word(word(&theirs));
            said.store(1, crate::sync::Ordering::Release);
            theirs.ring_for(0);
        });
        let heard = states[0].arena.word(word(&states[0]));
        let ready = || heard.load(crate::sync::Ordering::Acquire) == 1;
        while !ready() {
            states[0].sleep(0, 1, ready);
        }
        other.join().unwrap();
    });
}

/// The chunks of a tile, whose writes loom checks.
type Chunks = [ModelledMemory; 2];

/// Takes and makes chunks of a tile until none is left; returns whether all chunks are done, and checks that they are
/// then written.
fn work(shared: &SharedState, tile: u64, chunks: &Chunks) -> bool {
    let counter = WorkCounter::new(shared, tile, chunks.len());
    while let Some(at) = counter.take() {
        chunks[at].raise();
        counter.done();
    }
    let done = counter.are_done();
    assert!(
        !done || chunks.iter().all(|chunk| chunk.get() == 1),
        "each chunk is written once, and seen"
    );
    done
}

#[test]
fn each_chunk_is_made_once() {
    let host = Host::new(3);
    within(2, move || {
        let (states, chunks) =
            (host.states(), Arc::new([ModelledMemory::new(), ModelledMemory::new()]));
        let others = [1, 2].map(|rank: usize| {
            let (shared, chunks) = (states[rank].clone(), chunks.clone());
            thread::spawn(move || work(&shared, 1, &chunks))
        });
        work(&states[0], 1, &chunks);
        others.into_iter().for_each(|other| _ = other.join().unwrap());
        assert!(work(&states[0], 1, &chunks), "all chunks are done when all ranks have worked");
    });
}

#[test]
fn who_comes_late_finds_all_done() {
    let host = Host::new(2);
    check(move || {
        // The third tile uses the words of the first tile.
        let tiles = Arc::new([(); 2].map(|()| [ModelledMemory::new(), ModelledMemory::new()]));
        let states = host.states();
        let (theirs, written) = (states[1].clone(), tiles.clone());
        let late = thread::spawn(move || {
            let counter = WorkCounter::new(&theirs, 1, 2);
            let done = work(&theirs, 1, &written[0]);
            assert!(!done || counter.take().is_none());
            done
        });
        let done = work(&states[0], 1, &tiles[0]);
        // No rank goes on to a later tile before this tile is done.
        if done {
            assert!(work(&states[0], 3, &tiles[1]));
        }
        assert!(late.join().unwrap() || done, "the last rank to finish sees all chunks done");
    });
}
