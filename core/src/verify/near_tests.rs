//! Tests of near clocks against dense clocks: where a replay with near clocks is sure, a replay with dense clocks
//! agrees; and a schedule on which near clocks are unsure is proved all the same.

use super::clocks::{Clocks, ENTRIES};
use super::deadlock::order;
use super::layout::BufferMode;
use super::replay::{Replay, replay_with};
use super::report::Reporter;
use super::{Signals, verify};
use crate::check::Frontend;
use crate::compile;
use crate::ids::OpId;
use crate::layout::{Algorithm, Configured};
use crate::schedule::{OpKind, Schedule};
use crate::syntax::Source;
use crate::verify::Callers;

const RING: &str = include_str!("../../../stdlib/library/ring.coll");
const TWISTED: &str = include_str!("../../../stdlib/library/twisted_ring.coll");

/// An algorithm where a barrier permits the pulls: the signal of the seventh rank on the left comes through two ranks
/// that take no part in the pull.
const BY_BARRIER: &str = include_str!("../../tests/optimize/by_barrier.coll");

fn lay_out(text: &str, nranks: u32) -> Schedule {
    let source = Source::from_text("test.coll", text);
    let program = compile(&source, Frontend::File).expect("the source is valid");
    Configured::new(program.algorithms[0].clone(), &source)
        .schedule(nranks)
        .expect("the algorithm fits")
}

/// Replays with near clocks, if they are sure, and with dense clocks; `None` where the order of events is wrong
/// already.
fn both(schedule: &Schedule) -> Option<(Option<Replay>, Replay)> {
    let reporter = Reporter::new(schedule);
    let order = order(schedule, &reporter).ok()?;
    let play = |clocks| {
        let runtime = (Signals::default(), Callers::Each);
        replay_with(clocks, schedule, &order, &reporter, &BufferMode::BOTH, runtime)
    };
    let near =
        Clocks::near(schedule, ENTRIES).expect("there are many streams, each with few entries");
    let dense = Clocks::dense(schedule, ENTRIES).expect("the clocks fit");
    let dense = play(dense).expect("few cells").unwrap_or_else(|_| panic!("dense clocks are sure"));
    Some((play(near).expect("few cells").ok(), dense))
}

/// Returns the schedule without op `a` and op `b`.
fn without(schedule: &Schedule, a: usize, b: usize) -> Schedule {
    let mut mutant = schedule.clone();
    for at in [a.max(b), a.min(b)] {
        let stream = mutant.stream_of(OpId(at as u32)).index();
        mutant.ops.remove(at);
        mutant.streams[stream].len -= 1;
        for later in &mut mutant.streams[stream + 1..] {
            later.first.0 -= 1;
        }
    }
    mutant
}

/// Returns each schedule with one signal removed, and each with two adjacent ops of a stream swapped.
fn mutants(schedule: &Schedule) -> Vec<Schedule> {
    let ends = |kind, channel| {
        let of = move |at: &usize| {
            let op = schedule.ops[*at];
            op.kind == kind && op.arg == channel
        };
        (0..schedule.ops.len()).filter(of)
    };
    let mut all = Vec::new();
    for channel in 0..schedule.channels.len() as u32 {
        let pairs = ends(OpKind::Post, channel).zip(ends(OpKind::Wait, channel));
        all.extend(pairs.map(|(post, wait)| without(schedule, post, wait)));
    }
    for stream in &schedule.streams {
        let first = stream.first.index();
        for at in first + 1..first + stream.len as usize {
            let mut mutant = schedule.clone();
            mutant.ops.swap(at - 1, at);
            all.push(mutant);
        }
    }
    all
}

#[test]
fn what_near_clocks_are_sure_of_is_so() {
    let [mut sure, mut wrong] = [0; 2];
    for (text, nranks) in [(RING, 11), (TWISTED, 12)] {
        let right = lay_out(text, nranks);
        assert!(
            both(&right).expect("all ranks end").0.is_some(),
            "near clocks prove a right schedule"
        );
        for mutant in mutants(&right).into_iter().step_by(7) {
            let Some((near, dense)) = both(&mutant) else { continue };
            let right = dense.findings.is_empty() && dense.in_place_findings.is_empty();
            if let Some(near) = near {
                assert_eq!(near.findings, dense.findings);
                assert_eq!(near.in_place_findings, dense.in_place_findings);
                assert_eq!(near.finish, dense.finish);
                assert_eq!(near.reduce_depth, dense.reduce_depth);
                sure += 1;
            }
            wrong += usize::from(!right);
            assert_eq!(verify(&mutant).is_ok(), right);
        }
    }
    println!("{sure} sure, {wrong} wrong");
    assert!(sure > 0 && wrong > 0);
}

#[test]
fn what_near_clocks_miss_is_proved() {
    // A pulled block is written again when the signal of the pull has gone once around the ring.
    let pulled = ["left.TxDataSignal(); // I have pulled it", "right.RxDataSignal();"];
    let elided = pulled.iter().fold(RING.to_owned(), |text, signal| text.replacen(signal, "", 1));
    for (text, nranks) in [(BY_BARRIER, 64), (&elided, 11)] {
        let schedule = lay_out(text, nranks);
        let (near, dense) = both(&schedule).expect("all ranks end");
        assert!(near.is_none(), "no stream in between keeps an entry of the other's events");
        assert!(dense.findings.is_empty(), "{:#?}", dense.findings[0]);
        assert!(verify(&schedule).is_ok());
    }
}
