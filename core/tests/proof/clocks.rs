//! Clocks among themselves: sparse clocks say what dense clocks say; where a replay with near clocks is sure, a replay with
//! dense clocks agrees; and a schedule on which near clocks are unsure is proved all the same.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use fastrand::Rng;
use roundelay_core::ids::{OpId, StreamId};
use roundelay_core::schedule::{OpKind, Schedule, text};
use roundelay_core::verify::clocks::{Clocks, ENTRIES, Full};
use roundelay_core::verify::{Order, ReplayFacts, in_order, replay_with_clocks, verify};

use super::schedule;

/// Rank 1 posts twice and hears of rank 0 in between: three clocks of two entries live at once.
const LATE: &str = "
schedule Late AllReduce nranks 2 root 0
rank 0 stream 0
  post ack 0->1 @0
  wait data 1->0 @0
  wait data 1->0 @0
rank 1 stream 0
  post data 1->0 @0
  wait ack 0->1 @0
  post data 1->0 @0
";

#[test]
fn memory_has_a_limit() {
    let schedule = text::parse(LATE).unwrap();
    assert!(
        Clocks::dense(&schedule, 3).is_err(),
        "two streams wait, and each clock has two entries"
    );
    let [zero, one] = [StreamId(0), StreamId(1)];
    let run = |limit| {
        let mut clocks = Clocks::dense(&schedule, limit).unwrap_or_else(|Full| panic!("{limit}"));
        clocks.post(OpId(0), zero);
        clocks.post(OpId(3), one);
        clocks.wait(OpId(0), zero, one)?;
        clocks.post(OpId(5), one);
        clocks.wait(OpId(3), one, zero)?;
        clocks.wait(OpId(5), one, zero)?;
        assert!(clocks.before(5, one, zero));
        Ok(())
    };
    assert_eq!(run(4), Err(Full));
    assert_eq!(run(6), Ok(()));
    let order = in_order(&schedule).expect("no deadlock");
    assert!(!Clocks::fit(&schedule, &order, 4));
    assert!(Clocks::fit(&schedule, &order, 6));
}

/// All streams hear of all others, and all signals are under way at once: the number of entries that is counted
/// beforehand is the number that a run takes, exactly.
#[test]
fn what_a_run_takes_is_known_before_it() {
    let text = "algorithm A() -> AllReduce {
            for d in 1..nranks { peer((rank + d) % nranks).TxAck(); }
            for d in 1..nranks { peer((rank + d) % nranks).RxAck(); peer((rank + d) % nranks).TxDataSignal(); }
            for d in 1..nranks { peer((rank + d) % nranks).RxDataSignal(); }
        }";
    let schedule = schedule(text, 6);
    let order = in_order(&schedule).expect("no deadlock");
    let run = |limit| -> Result<(), Full> {
        let mut clocks = Clocks::dense(&schedule, limit)?;
        order.sequence.iter().try_for_each(|at| {
            let stream = order.stream_of[at.index()];
            let post = order.meets[at.index()];
            match schedule.op(*at).kind {
                OpKind::Post => clocks.post(*at, stream),
                _ => clocks.wait(post, order.stream_of[post.index()], stream)?,
            }
            Ok(())
        })
    };
    // Six streams end with clocks that fit, but the clocks of their posts need more room.
    let fits = |limit: &usize| Clocks::fit(&schedule, &order, *limit);
    assert!((36..400).all(|limit| fits(&limit) == (run(limit) == Ok(()))));
    assert_eq!((36..400).find(fits), Some(26 * 6));
}

/// Returns ranks that post to others and wait for others at random, so that all of them end. Ranks of one half
/// signal among themselves most of the time.
fn at_random(dice: &mut Rng, nranks: u64, signals: u64) -> Schedule {
    let mut lines = vec![String::new(); nranks as usize];
    let mut under_way: Vec<(u64, u64)> = Vec::new();
    let mut left = signals;
    while left > 0 || !under_way.is_empty() {
        if left > 0 && (under_way.is_empty() || dice.u64(..2) == 0) {
            left -= 1;
            let from = dice.u64(..nranks);
            let other = (from + 1 + dice.u64(..nranks - 1)) % nranks;
            let near = if from % 2 == other % 2 { other } else { (from + 2) % nranks };
            let to = if dice.u64(..8) == 0 { other } else { near };
            let _ = writeln!(lines[from as usize], "  post ack {from}->{to} @0");
            under_way.push((from, to));
        } else {
            let (from, to) = under_way.swap_remove(dice.u64(..under_way.len() as u64) as usize);
            let _ = writeln!(lines[to as usize], "  wait ack {from}->{to} @0");
        }
    }
    let mut all = format!("schedule A AllReduce nranks {nranks} root 0\n");
    for (rank, lines) in lines.iter().enumerate() {
        let _ = writeln!(all, "rank {rank} stream 0\n{}", lines.trim_end_matches('\n'));
    }
    text::parse(&all).expect("a schedule")
}

/// Plays two runs by the clocks, and calls `then` after each event, with its stream.
///
/// # Errors
/// The clocks are full.
fn play<'s>(
    schedule: &Schedule,
    order: &Order,
    clocks: &mut Clocks<'s>,
    mut then: impl FnMut(&Clocks<'s>, OpId, StreamId),
) -> Result<(), Full> {
    for run in 0..2 {
        if run > 0 {
            clocks.next_run();
        }
        for &at in &order.sequence {
            let stream = order.stream_of[at.index()];
            match schedule.op(at).kind {
                OpKind::Move => {}
                OpKind::Post => clocks.post(at, stream),
                OpKind::Wait => {
                    let post = order.meets[at.index()];
                    clocks.wait(post, order.stream_of[post.index()], stream)?;
                }
            }
            then(clocks, at, stream);
        }
    }
    Ok(())
}

/// Returns the answers of the clocks along two runs: at each op, whether each event of either run is before the
/// next op of its stream, and whether that stream has heard of the event's stream.
fn told(schedule: &Schedule, order: &Order, clocks: &mut Clocks<'_>) -> Vec<bool> {
    let mut told = Vec::new();
    let mut done = Vec::new();
    let played = play(schedule, order, clocks, |clocks, at, stream| {
        done.push((clocks.event(at), stream));
        told.extend(done.iter().map(|(event, of)| clocks.before(*event, *of, stream)));
        told.extend(done.iter().map(|(_, of)| clocks.heard(*of, stream)));
    });
    played.expect("few entries");
    told
}

#[test]
fn sparse_clocks_say_what_dense_ones_say() {
    let mut dice = Rng::with_seed(7);
    let mut said: BTreeMap<bool, usize> = BTreeMap::new();
    for round in 0..12 {
        let schedule = at_random(&mut dice, 3 + 3 * round, 20 + 8 * round);
        let order = in_order(&schedule).expect("all ranks end");
        let mut dense = Clocks::dense(&schedule, 1 << 20).expect("few ranks");
        let mut sparse = Clocks::sparse(&schedule, 1 << 20);
        let told = told(&schedule, &order, &mut sparse);
        assert!(told == self::told(&schedule, &order, &mut dense), "round {round}");
        for before in told {
            *said.entry(before).or_default() += 1;
        }
    }
    assert!(said.len() == 2 && said.values().all(|times| *times > 10_000), "{said:?}");
}

/// Whether sparse clocks with these steps for each op suffice for two runs of an exchange between all pairs, where each
/// rank has a stream for each peer.
fn suffice(schedule: &Schedule, order: &Order, steps: usize) -> Result<(), Full> {
    let mut clocks = Clocks::sparse(schedule, steps * schedule.ops.len());
    play(schedule, order, &mut clocks, |clocks, at, stream| {
        if schedule.op(at).kind == OpKind::Wait {
            let post = order.meets[at.index()];
            let from = order.stream_of[post.index()];
            assert!(clocks.before(clocks.event_in(post, 0), from, stream));
        }
    })
}

fn steps_for_each_op(nranks: u32) -> usize {
    let schedule = schedule(
        "algorithm A() -> AllToAll {
            parallel d in 1..nranks {
                let to = peer((rank + d) % nranks);
                let from = peer((rank - d) % nranks);
                to.TxAck();
                from.RxAck();
                copy(from.input.block(rank), local.output.block(from.rank));
                from.TxDataSignal();
                to.RxDataSignal();
            }
        }",
        nranks,
    );
    let order = in_order(&schedule).expect("no deadlock");
    (1..64).find(|steps| suffice(&schedule, &order, *steps).is_ok()).expect("few suffice")
}

/// Tests four and sixteen times the streams, whose dense clocks would grow with the square of the streams.
#[test]
fn steps_grow_with_the_ops() {
    let [few, some, many] = [8, 16, 32].map(steps_for_each_op);
    println!("{few}, {some} and {many} steps for each op");
    assert!(many < 32 && many < 2 * few, "{few}, {some}, {many}");
}

const RING: &str = include_str!("../../../stdlib/library/ring.coll");
const TWISTED: &str = include_str!("../../../stdlib/library/twisted_ring.coll");

/// An algorithm where a barrier permits the pulls: the signal of the seventh rank on the left comes through two ranks
/// that take no part in the pull.
const BY_BARRIER: &str = include_str!("../optimize/by_barrier.coll");

/// Replays with near clocks, if they are sure, and with dense clocks; `None` where the order of events is wrong
/// already.
fn both(schedule: &Schedule) -> Option<(Option<ReplayFacts>, ReplayFacts)> {
    let near =
        Clocks::near(schedule, ENTRIES).expect("there are many streams, each with few entries");
    let dense = Clocks::dense(schedule, ENTRIES).expect("the clocks fit");
    let dense = replay_with_clocks(schedule, dense).ok()?.expect("dense clocks are sure");
    Some((replay_with_clocks(schedule, near).expect("few cells"), dense))
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
        let right = schedule(text, nranks);
        assert!(
            both(&right).expect("all ranks end").0.is_some(),
            "near clocks prove a right schedule"
        );
        for mutant in mutants(&right).into_iter().step_by(7) {
            let Some((near, dense)) = both(&mutant) else { continue };
            let right = dense.0.iter().all(Vec::is_empty);
            if let Some(near) = near {
                assert_eq!(near, dense);
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
        let schedule = super::schedule(text, nranks);
        let (near, dense) = both(&schedule).expect("all ranks end");
        assert!(near.is_none(), "no stream in between keeps an entry of the other's events");
        assert!(dense.0[0].is_empty(), "{:#?}", dense.0[0][0]);
        assert!(verify(&schedule).is_ok());
    }
}
