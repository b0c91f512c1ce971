//! Damaged records of schedules: each rank makes its own schedule instead.

use std::cell::Cell;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use roundelay_core::dtype::{DType, ReduceOp};

use super::{
    Key, MAKING, OFFER, Ordering, PlanRecord, PlanSource, Prepared, RANK, READY, TURN, WORDS,
    World, text,
};
use crate::Options;
use crate::shared_memory::WorldPlan;
use roundelay_core::verify::Proved;

/// Returns a broadcast: all ranks get the input of rank 0.
fn schedule(nranks: u32) -> Proved {
    let mut all = format!("schedule Told Broadcast nranks {nranks} root 0\n");
    for rank in 0..nranks {
        _ = writeln!(all, "rank {rank} stream 0");
        for other in (1..nranks).filter(|_| rank == 0) {
            _ = writeln!(all, "  post data 0->{other} @0");
        }
        if rank > 0 {
            _ = writeln!(all, "  wait data 0->{rank} @0");
        }
        _ = writeln!(all, "  copy 0.input[0..1] -> {rank}.output[0..1] @0");
        if rank > 0 {
            _ = writeln!(all, "  post ack {rank}->0 @0");
        }
        for other in (1..nranks).filter(|_| rank == 0) {
            _ = writeln!(all, "  wait ack {other}->0 @0");
        }
    }
    let schedule = text::parse(&all).unwrap_or_else(|why| panic!("{why:?}\n{all}"));
    Proved::new(schedule).expect("it is right")
}

const TOLD: &[&str] = &["told"];

/// Returns the schedule of rank 1, after rank 0 offered a schedule and `spoil` changed its record; and whether rank 1
/// made the schedule itself.
fn told(spoil: impl FnOnce(&PlanRecord<'_>)) -> (Arc<World>, Prepared, bool) {
    let options = Options::new().deadline(Duration::from_millis(30));
    let mut worlds = World::together(2, options).expect("worlds").into_iter();
    let (maker, taker) = (worlds.next().expect("two"), worlds.next().expect("two"));
    maker.prepare(TOLD, || Ok::<_, ()>(schedule(2))).expect("it is made");
    spoil(&PlanRecord { world: &maker, at: maker.shared.arena.layout.offer(Key::new(TOLD).0[0]) });
    let made = Cell::new(false);
    let make = || {
        made.set(true);
        Ok::<_, ()>(schedule(2))
    };
    let prepared = taker.prepare(TOLD, make).expect("it is made or taken");
    (Arc::new(taker), prepared, made.get())
}

/// Changes the text of a record, with its length and its digest.
fn rewrite(place: &PlanRecord<'_>, change: impl FnOnce(String) -> String) {
    let len = place.word(5).load(Ordering::Relaxed) as usize;
    let words = (0..len.div_ceil(8)).map(|at| place.word(WORDS + at).load(Ordering::Relaxed));
    let mut bytes: Vec<u8> = words.flat_map(u64::to_le_bytes).collect();
    bytes.truncate(len);
    let text = String::from_utf8(bytes).expect("it was text");
    let changed = change(text.clone());
    assert_ne!(text, changed);
    for (at, bytes) in changed.as_bytes().chunks(8).enumerate() {
        let mut word = [0; 8];
        word[..bytes.len()].copy_from_slice(bytes);
        place.word(WORDS + at).store(u64::from_le_bytes(word), Ordering::Relaxed);
    }
    place.word(5).store(changed.len() as u64, Ordering::Relaxed);
    place.word(6).store(Key::new(&[&changed]).0[0], Ordering::Relaxed);
}

#[test]
fn what_is_offered_is_taken() {
    let (_, prepared, made) = told(|_| ());
    assert!(!made && matches!(prepared.0, PlanSource::Taken(..)));
}

/// A change of a record.
type Damage = fn(&PlanRecord<'_>);

#[test]
fn what_is_damaged_is_made_again() {
    let damage: [(&str, Damage); 9] = [
        ("a length beyond the place", |place| store(place, 5, (OFFER - 8 * WORDS) as u64 + 1)),
        ("a length beyond the arena", |place| store(place, 5, 1 << 40)),
        ("a length beyond all", |place| store(place, 5, u64::MAX)),
        ("a shorter text", |place| store(place, 5, 100)),
        ("another digest", |place| store(place, 6, 1)),
        // These are digits of the author's digest, so the text can still be read.
        ("another text", |place| store(place, WORDS, u64::from_le_bytes(*b"01234567"))),
        ("a schedule of other ranks", |place| {
            rewrite(place, |text| {
                let (line, _) = text.split_once('\n').expect("a line of the proof");
                format!("{line}\n{}", text::print(schedule(3).schedule()))
            });
        }),
        ("no line of the proof", |place| rewrite(place, |text| text.replacen('\n', " x\n", 1))),
        ("a maker that is no rank", |place| {
            place.word(0).store(1 << TURN | 5000 << RANK | MAKING, Ordering::Relaxed);
        }),
    ];
    for (what, damage) in damage {
        let (_, prepared, made) = told(damage);
        assert!(made && matches!(prepared.0, PlanSource::Own(_)), "{what}");
    }
    // The record of another key, which this rank takes over.
    let (_, _, made) = told(|place| store(place, 1, 0));
    assert!(made);
}

fn store(place: &PlanRecord<'_>, word: usize, value: u64) {
    assert_eq!(place.word(0).load(Ordering::Relaxed) & super::STATE, READY);
    place.word(word).store(value, Ordering::Relaxed);
}

/// A schedule with the right digest that was never proved makes no access outside of its buffers.
#[test]
fn what_is_taken_is_lowered_with_every_check() {
    for (from, to) in [
        ("1.output[0..1]", "1.output[0..9]"),
        ("1.output[0..1]", "1.output[7..8]"),
        ("0.input[0..1]", "0.input[3..4]"),
        ("0.input[0..1]", "9.input[0..1]"),
        ("nranks 2", "nranks 2000000000"),
    ] {
        let (world, prepared, made) = told(|place| rewrite(place, |text| text.replace(from, to)));
        let plan = WorldPlan::from_prepared(&world, &prepared, 100, DType::U32, ReduceOp::Sum);
        assert!(made || plan.is_err(), "{to}: {plan:?}");
    }
}
