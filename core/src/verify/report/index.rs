//! An index of all ops for messages, computed once: a program may have as many mistakes as ops.

use std::collections::HashMap;

use crate::ids::{LaneId, OpId};
use crate::schedule::{Channel, OpKind, Schedule};

pub(super) struct Index {
    /// The number of moves before each op, in its stream and the streams before it.
    moves: Vec<u32>,
    /// Posts and waits, channel by channel.
    signals: Vec<OpId>,
    /// The position in `signals` where each channel begins, and the end.
    first: Vec<usize>,
    /// For channels that differ only in the lane: the last post on a channel with more posts than waits, and the last
    /// wait on a channel with more waits than posts.
    spare: HashMap<Channel, [Option<OpId>; 2]>,
}

impl Index {
    pub(super) fn new(schedule: &Schedule) -> Self {
        let mut moves = Vec::with_capacity(schedule.ops.len());
        let mut before = 0;
        for op in &schedule.ops {
            moves.push(before);
            before += u32::from(op.kind == OpKind::Move);
        }
        let all = (0..schedule.ops.len() as u32).map(OpId);
        let mut signals: Vec<OpId> =
            all.filter(|at| schedule.op(*at).kind != OpKind::Move).collect();
        signals.sort_by_key(|at| schedule.op(*at).arg);
        let channels = 0..=schedule.channels.len() as u32;
        let first = channels.map(|c| signals.partition_point(|at| schedule.op(*at).arg < c));
        let mut index = Self { moves, first: first.collect(), signals, spare: HashMap::new() };
        for (id, channel) in (0..).zip(&schedule.channels) {
            let [posts, waits] = [OpKind::Post, OpKind::Wait].map(|kind| {
                let mut ops = index.on(schedule, id, kind);
                (ops.clone().count(), ops.next_back())
            });
            let spare =
                [posts.1.filter(|_| posts.0 > waits.0), waits.1.filter(|_| waits.0 > posts.0)];
            let known = index.spare.entry(any_lane(channel)).or_default();
            for (known, spare) in known.iter_mut().zip(spare) {
                *known = (*known).max(spare);
            }
        }
        index
    }

    /// Returns the posts or the waits on a channel, in the order of the schedule.
    pub(super) fn on<'i>(
        &'i self,
        schedule: &'i Schedule,
        channel: u32,
        kind: OpKind,
    ) -> impl DoubleEndedIterator<Item = OpId> + Clone + 'i {
        let [from, to] = [channel, channel + 1].map(|c| self.first[c as usize]);
        let ops = self.signals[from..to].iter().copied();
        ops.filter(move |at| schedule.op(*at).kind == kind)
    }

    /// Returns the last surplus post or wait on a channel that differs at most in its lane.
    pub(super) fn spare(&self, channel: &Channel, kind: OpKind) -> Option<OpId> {
        let [post, wait] = *self.spare.get(&any_lane(channel))?;
        if kind == OpKind::Post { post } else { wait }
    }

    /// Returns the number of moves before an op, in its stream and the streams before it.
    pub(super) fn moves(&self, before: OpId) -> u32 {
        self.moves[before.index()]
    }
}

fn any_lane(channel: &Channel) -> Channel {
    Channel { lane: LaneId(0), ..*channel }
}
