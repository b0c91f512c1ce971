//! The ops of a form or of a schedule, as they are compared.

use std::collections::BTreeMap;

use roundelay_core::ids::RankId;
use roundelay_core::schedule::{Buffer, Op, OpKind, Operand, Schedule, SignalKind, Stream};

/// An operand: its rank, its buffer, the low end, high end, slot and base of its piece, and of a slot that a pass takes
/// the number of passes on its link before.
pub(crate) type EventPlace = (u32, Buffer, [u64; 4], Option<u64>);

/// One op of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LoopEvent {
    /// A post or a wait: the peer and the lane, or the child stream of a fork or a join.
    Signal(bool, SignalKind, u32, Vec<i64>),
    /// A move: whether it is a chain, its sources and its destinations.
    Move(bool, Vec<EventPlace>, Vec<EventPlace>),
    /// The begin of a message: whether it is a send, its request, its peer, its tag and its place.
    Begin(bool, u64, u32, u32, EventPlace),
    /// A wait for messages: whether they are sends, the first request, and the number of requests.
    Finish(bool, u64, u64),
}

impl LoopEvent {
    /// Whether this op of a form is `op`. A form may leave the numbers of passes out.
    pub(super) fn is(&self, op: &Self) -> bool {
        let (Self::Move(chain, srcs, dsts), Self::Move(expected, froms, tos)) = (self, op) else {
            return self == op;
        };
        let is = |places: &[EventPlace], others: &[EventPlace]| {
            places.len() == others.len()
                && places.iter().zip(others).all(|(place, other)| {
                    (place.0, place.1, place.2) == (other.0, other.1, other.2)
                        && (place.3.is_none() || place.3 == other.3)
                })
        };
        chain == expected && is(srcs, froms) && is(dsts, tos)
    }
}

/// Returns a place of a schedule whose units are cut into `pieces` pieces.
pub(crate) fn event_place(schedule: &Schedule, operand: Operand, pieces: u64) -> EventPlace {
    let region = schedule.region(operand);
    let [lo, hi, base] =
        [region.lo, region.hi, region.base].map(|end| end.num() * (pieces / end.den()));
    (operand.rank.0, region.buffer, [lo, hi, region.slot.into(), base], None)
}

/// Returns the ops of a stream with the numbers of their passes, and with the lanes of their signals or without.
pub(super) fn events(
    schedule: &Schedule,
    stream: &Stream,
    pieces: u64,
    lanes: bool,
) -> Vec<LoopEvent> {
    // The tails of each channel before.
    let mut tails: BTreeMap<u32, u64> = BTreeMap::new();
    let place = |operand: &Operand| event_place(schedule, *operand, pieces);
    let ops = &schedule.ops[stream.first.index()..][..stream.len as usize];
    let tail = |op: &Op, kind| {
        (op.kind == kind && schedule.channel(op).kind == SignalKind::Tail).then_some(op.arg)
    };
    let event = |(nth, op): (usize, &Op)| {
        if op.kind == OpKind::Move {
            let [mut srcs, mut dsts] = [schedule.srcs(op), schedule.dsts(op)]
                .map(|operands| operands.iter().map(place).collect::<Vec<_>>());
            // A pass waits for its data, perhaps then for a credit, and posts its data after the move.
            let head =
                |op: &&Op| op.kind == OpKind::Wait && schedule.channel(op).kind == SignalKind::Head;
            let before = ops[..nth].iter().rev().find(|op| !head(op));
            let received = before.and_then(|op| tail(op, OpKind::Wait));
            let sent = ops.get(nth + 1).and_then(|op| tail(op, OpKind::Post));
            for (places, link, after) in [(&mut srcs, received, 1), (&mut dsts, sent, 0)] {
                if let (Some(place), Some(link)) = (places.last_mut(), link) {
                    place.3 = Some(tails.get(&link).copied().unwrap_or(0) - after);
                }
            }
            return LoopEvent::Move(op.chain, srcs, dsts);
        }
        for kind in [OpKind::Post, OpKind::Wait] {
            *tails.entry(op.arg).or_default() += u64::from(tail(op, kind).is_some());
        }
        let (post, channel) = (op.kind == OpKind::Post, schedule.channel(op));
        let RankId(peer) = if post { channel.to } else { channel.from };
        if !channel.kind.has_lane() {
            return LoopEvent::Signal(post, channel.kind, channel.lane.0, Vec::new());
        }
        let lane = if lanes { schedule.lanes[channel.lane.0 as usize].clone() } else { Vec::new() };
        LoopEvent::Signal(post, channel.kind, peer, lane)
    };
    ops.iter().enumerate().map(event).collect()
}
