//! Ops that run too early or too late, and flows that become one.

use roundelay_core::schedule::{Buffer, Op, OpKind, Operand, Schedule, SignalKind, Stream};

use super::{edit, place_streams};

pub(super) fn swap_neighbors(schedule: &Schedule) -> Vec<Schedule> {
    let pairs = schedule.streams.iter().flat_map(|stream| {
        let first = stream.first.index();
        (first + 1..first + stream.len as usize).map(|at| (at - 1, at))
    });
    let swap = |(a, b)| {
        let mut mutant = schedule.clone();
        mutant.ops.swap(a, b);
        mutant
    };
    pairs.map(swap).collect()
}

/// Moves an op that writes to scratch before the last signal before it.
pub(super) fn write_early(schedule: &Schedule) -> Vec<Schedule> {
    let writes = |s: &Schedule, at: usize| in_scratch(s, s.dsts(&s.ops[at]));
    pass_signal(schedule, writes, |signals, here| signals.iter().rfind(|k| **k < here).copied())
}

/// Moves an op that reads scratch after the next signal after it.
pub(super) fn read_late(schedule: &Schedule) -> Vec<Schedule> {
    let reads = |s: &Schedule, at: usize| in_scratch(s, s.srcs(&s.ops[at]));
    pass_signal(schedule, reads, |signals, here| signals.iter().find(|k| **k > here).copied())
}

fn in_scratch(schedule: &Schedule, operands: &[Operand]) -> bool {
    operands.iter().any(|o| matches!(schedule.region(*o).buffer, Buffer::Scratch(_)))
}

/// Each move that `which` names goes to the place of the signal that `past` picks from its stream.
fn pass_signal(
    schedule: &Schedule,
    which: impl Fn(&Schedule, usize) -> bool,
    past: fn(&[usize], usize) -> Option<usize>,
) -> Vec<Schedule> {
    let ops = schedule.ops.iter().enumerate();
    let moves = ops.filter(|(at, op)| op.kind == OpKind::Move && which(schedule, *at));
    moves
        .filter_map(|(at, _)| {
            let mut mutant = schedule.clone();
            let mut passed = false;
            edit(&mut mutant, at, |list, here| {
                let signals: Vec<_> =
                    (0..list.len()).filter(|k| list[*k].kind != OpKind::Move).collect();
                if let Some(to) = past(&signals, here) {
                    let op = list.remove(here);
                    list.insert(to, op);
                    passed = true;
                }
            });
            passed.then_some(mutant)
        })
        .collect()
}

/// Makes two channels between two ranks, of two lanes or two kinds, into one.
pub(super) fn merge_channels(schedule: &Schedule) -> Vec<Schedule> {
    let flows = |a: usize, b: usize| {
        let (a, b) = (schedule.channels[a], schedule.channels[b]);
        (a.from, a.to) == (b.from, b.to) && a.from != a.to
    };
    let all = schedule.channels.len();
    let pairs = (0..all).flat_map(|a| (a + 1..all).map(move |b| (a, b)));
    let merge = |(a, b): (usize, usize)| {
        let mut mutant = schedule.clone();
        let signals = mutant.ops.iter_mut().filter(|op| op.kind != OpKind::Move);
        signals.filter(|op| op.arg as usize == b).for_each(|op| op.arg = a as u32);
        mutant
    };
    pairs.filter(|(a, b)| flows(*a, *b)).map(merge).collect()
}

/// Makes a slave stream part of the stream that forks it: where it is forked, or where it is joined.
pub(super) fn merge_streams(schedule: &Schedule) -> Vec<Schedule> {
    let slaves = (0..schedule.streams.len()).filter(|s| schedule.streams[*s].index > 0);
    slaves
        .flat_map(|slave| {
            [SignalKind::Fork, SignalKind::Join].map(|at| merge_stream(schedule, slave, at))
        })
        .collect()
}

fn merge_stream(schedule: &Schedule, slave: usize, place: SignalKind) -> Schedule {
    let mut mutant = schedule.clone();
    let ops = |s: &Stream| schedule.ops[s.first.index()..][..s.len as usize].to_vec();
    let mut lists: Vec<Vec<Op>> = schedule.streams.iter().map(ops).collect();
    let gone = mutant.streams.remove(slave);
    let list = lists.remove(slave);
    // A stream that is forked several times has a body for each.
    let (fork, join) = (list[0], list[list.len() - 1]);
    let is = |op: &Op, end: Op| op.kind != OpKind::Move && op.arg == end.arg;
    let bodies: Vec<&[Op]> = list.split_inclusive(|op| is(op, join)).collect();
    let bodies: Vec<&[Op]> = bodies.iter().map(|body| &body[1..body.len() - 1]).collect();
    let into = if place == SignalKind::Fork { fork } else { join };
    for list in &mut lists {
        let mut next = bodies.iter();
        let merged = list.iter().flat_map(|op| match () {
            () if is(op, into) => next.next().expect("as many forks as bodies").to_vec(),
            () if is(op, fork) || is(op, join) => Vec::new(),
            () => vec![*op],
        });
        *list = merged.collect();
    }
    // The streams after it move up, and so do their forks and joins.
    let of_rank = mutant.streams.iter_mut().filter(|s| s.rank == gone.rank);
    of_rank.filter(|s| s.index > gone.index).for_each(|s| s.index -= 1);
    let own = mutant.channels.iter_mut().filter(|c| c.from == c.to && c.from == gone.rank);
    own.filter(|c| c.lane.0 > gone.index).for_each(|c| c.lane.0 -= 1);
    let kept = |id: &u32| ![fork.arg, join.arg].contains(id);
    let kept: Vec<u32> = (0..schedule.channels.len() as u32).filter(kept).collect();
    mutant.channels = kept.iter().map(|id| mutant.channels[*id as usize]).collect();
    for op in lists.iter_mut().flatten().filter(|op| op.kind != OpKind::Move) {
        op.arg = kept.iter().position(|id| *id == op.arg).expect("a channel that is kept") as u32;
    }
    for (stream, list) in mutant.streams.iter_mut().zip(&lists) {
        stream.len = list.len() as u32;
    }
    mutant.ops = lists.concat();
    place_streams(&mut mutant);
    mutant
}
