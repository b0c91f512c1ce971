//! The signals of a fused schedule. A rank that works on another rank's buffers waits until that rank has entered (by
//! a signal, if the runtime does not ensure it), and that rank leaves only when it is told that the work is done. No
//! other order is needed.

use std::collections::BTreeSet;

use crate::ids::{LaneId, OpId, RankId, SpanId};
use crate::schedule::interner::Interner;
use crate::schedule::{Buffer, Channel, Op, OpKind, Schedule, SignalKind, Stream};
use crate::verify::Callers;

/// Puts each rank's moves into a stream of its own, with signals around them where ranks call by themselves.
pub(super) fn assemble(
    schedule: &mut Schedule,
    moves: Vec<Vec<Op>>,
    callers: Callers,
    spans: &[[SpanId; 2]],
) {
    let visits = match callers {
        Callers::One => BTreeSet::new(),
        Callers::Each | Callers::Announced => visits(schedule, &moves),
    };
    let acks = callers == Callers::Each;
    let n = schedule.nranks;
    let mut signals = Signals { channels: Interner::default(), spans };
    for (rank, moves) in (0..n).map(RankId).zip(moves) {
        let first = OpId(schedule.ops.len() as u32);
        // The other ranks by distance, so that no rank is the first of all others.
        let others = || (1..n).map(move |d| RankId((rank.0 + d) % n));
        let hosts = |other: &RankId| visits.contains(&(*other, rank));
        let visits = |other: &RankId| visits.contains(&(rank, *other));
        for guest in others().filter(|other| acks && hosts(other)) {
            schedule.ops.push(signals.op(SignalKind::Ack, OpKind::Post, (rank, guest)));
        }
        for host in others().filter(|other| acks && visits(other)) {
            schedule.ops.push(signals.op(SignalKind::Ack, OpKind::Wait, (host, rank)));
        }
        schedule.ops.extend(moves);
        for host in others().filter(visits) {
            schedule.ops.push(signals.op(SignalKind::Data, OpKind::Post, (rank, host)));
        }
        for guest in others().filter(hosts) {
            schedule.ops.push(signals.op(SignalKind::Data, OpKind::Wait, (guest, rank)));
        }
        let len = schedule.ops.len() as u32 - first.0;
        schedule.streams.push(Stream { rank, index: 0, first, len });
    }
    schedule.channels = signals.channels.items;
}

/// Returns each rank with the other ranks whose user buffers it reads or writes.
fn visits(schedule: &Schedule, moves: &[Vec<Op>]) -> BTreeSet<(RankId, RankId)> {
    let mut visits = BTreeSet::new();
    for (rank, moves) in (0..).map(RankId).zip(moves) {
        for op in moves {
            let operands = schedule.operands_of(op).iter();
            let theirs = operands.filter(|operand| {
                operand.rank != rank
                    && !matches!(schedule.region(**operand).buffer, Buffer::Scratch(_))
            });
            visits.extend(theirs.map(|operand| (rank, operand.rank)));
        }
    }
    visits
}

/// The channels, in the order of their first use.
struct Signals<'s> {
    channels: Interner<Channel>,
    spans: &'s [[SpanId; 2]],
}

impl Signals<'_> {
    fn op(&mut self, kind: SignalKind, op: OpKind, (from, to): (RankId, RankId)) -> Op {
        let arg = self.channels.intern(Channel { from, to, kind, lane: LaneId(0) });
        let (rank, which) = if op == OpKind::Post { (from, 0) } else { (to, 1) };
        let at = self.spans[rank.index()][which];
        Op::new(op, at, arg)
    }
}
