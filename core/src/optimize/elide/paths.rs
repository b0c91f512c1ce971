//! Paths from one op to another over signals, found backwards from the later op.

use std::collections::VecDeque;

use crate::ids::{OpId, StreamId};
use crate::schedule::{OpKind, Schedule};
use crate::verify::Order;

/// A point in a stream: the number of its events before the point, counted through two runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StreamPoint {
    pub(super) stream: StreamId,
    pub(super) time: u32,
}

pub(super) struct Paths<'s> {
    schedule: &'s Schedule,
    order: &'s Order,
    /// The position of each op in the order of all ops.
    position: Vec<u32>,
    /// The number of events of each stream that were searched, from its beginning.
    searched: Vec<u32>,
    /// The number of events that all searches have examined.
    pub(super) work: u64,
}

/// A stretch of a stream to search, up to `point`, and the wait that leads there, with the state it was found in.
struct SearchState {
    point: StreamPoint,
    by: Option<(OpId, usize)>,
}

/// The cost of a signal on a path.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum CrossingCost {
    Free,
    /// As few of these signals as possible are taken.
    Dear,
    Closed,
}

impl<'s> Paths<'s> {
    pub(super) fn new(schedule: &'s Schedule, order: &'s Order) -> Self {
        let mut position = vec![0; schedule.ops.len()];
        for (at, op) in order.sequence.iter().enumerate() {
            position[op.index()] = at as u32;
        }
        let searched = vec![0; schedule.streams.len()];
        Self { schedule, order, position, searched, work: 0 }
    }

    /// Returns the point of an op of the first run, or of the next, in its stream.
    pub(super) fn point(&self, op: OpId, next: bool) -> StreamPoint {
        let stream = self.order.stream_of[op.index()];
        let of = self.schedule.streams[stream.index()];
        let run = if next { of.len } else { 0 };
        StreamPoint { stream, time: op.0 - of.first.0 + run }
    }

    /// The end of a stream's first run.
    pub(super) fn end(&self, stream: StreamId) -> StreamPoint {
        StreamPoint { stream, time: self.schedule.streams[stream.index()].len }
    }

    /// Returns the position of an op in the order of all ops.
    pub(super) fn position(&self, op: OpId) -> u32 {
        self.position[op.index()]
    }

    /// Returns the waits on a path from `op` to before `point` over signals that `cost` does not close, if there is
    /// one.
    pub(super) fn find(
        &mut self,
        op: OpId,
        point: StreamPoint,
        cost: impl Fn(OpId) -> CrossingCost,
    ) -> Option<Vec<OpId>> {
        let goal = self.point(op, false);
        let earliest = u64::from(self.position(op));
        let ops = self.schedule.ops.len() as u64;
        let mut visits = vec![SearchState { point, by: None }];
        let mut open = VecDeque::from([0]);
        let mut found = None;
        while let Some(visit) = open.pop_front() {
            let StreamPoint { stream, time } = visits[visit].point;
            if stream == goal.stream {
                if time > goal.time {
                    found = Some(visit);
                    break;
                }
                continue;
            }
            let of = self.schedule.streams[stream.index()];
            let searched = &mut self.searched[stream.index()];
            let known = *searched;
            *searched = known.max(time);
            for time in (known..time).rev() {
                self.work += 1;
                let (run, local) = (time / of.len, time % of.len);
                let at = OpId(of.first.0 + local);
                // An event that comes before the op in one order does not come after it in any order.
                if u64::from(run) * ops + u64::from(self.position(at)) <= earliest {
                    break;
                }
                if self.schedule.op(at).kind != OpKind::Wait {
                    continue;
                }
                let cost = cost(at);
                if cost == CrossingCost::Closed {
                    continue;
                }
                let mut from = self.point(self.order.meets[at.index()], run > 0);
                from.time += 1;
                visits.push(SearchState { point: from, by: Some((at, visit)) });
                if cost == CrossingCost::Free {
                    open.push_front(visits.len() - 1);
                } else {
                    open.push_back(visits.len() - 1);
                }
            }
        }
        for visit in &visits {
            self.searched[visit.point.stream.index()] = 0;
        }
        let mut waits = Vec::new();
        let mut at = found?;
        while let Some((wait, from)) = visits[at].by {
            waits.push(wait);
            at = from;
        }
        Some(waits)
    }
}
