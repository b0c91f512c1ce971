//! The order of events: posts meet waits, and streams run until they wait.

use std::collections::{BTreeMap, BTreeSet};

use crate::ids::{OpId, StreamId};
use crate::schedule::{Buffer, OpKind, Schedule};

/// An order of all ops that respects programs and signals; every other order that respects them gives equal memory.
pub struct Order {
    /// All ops.
    pub sequence: Vec<OpId>,
    /// For each wait the post that it meets; for every other op the op itself.
    pub meets: Vec<OpId>,
    /// The stream of each op.
    pub stream_of: Vec<StreamId>,
}

impl Order {
    /// Whether a stream of another rank touches scratch: only then does the next run matter to scratch.
    pub(crate) fn shares_scratch(&self, schedule: &Schedule) -> bool {
        schedule.ops.iter().enumerate().filter(|(_, op)| op.kind == OpKind::Move).any(|(at, op)| {
            let rank = schedule.streams[self.stream_of[at].index()].rank;
            let mut operands = schedule.operands_of(op).iter();
            operands
                .any(|o| o.rank != rank && matches!(schedule.region(*o).buffer, Buffer::Scratch(_)))
        })
    }
}

/// Waits that block each other, each with the post that would meet it, and the other waits that never end.
pub(super) struct Cycle {
    pub(super) waits: Vec<(OpId, OpId)>,
    pub(super) behind: Vec<OpId>,
}

/// The progress of each stream while the ops are put in order.
pub(super) struct Progress<'s> {
    schedule: &'s Schedule,
    next: Vec<u32>,
    /// First entry of each channel in `posts`.
    first_post: Vec<u32>,
    posted: Vec<u32>,
    taken: Vec<u32>,
    posts: Vec<OpId>,
    /// The streams that wait for a channel's next post; more than one only if they share a signal.
    waiting: Vec<Vec<StreamId>>,
    ready: Vec<StreamId>,
    sequence: Vec<OpId>,
    meets: Vec<OpId>,
    stream_of: Vec<StreamId>,
}

impl<'s> Progress<'s> {
    pub(super) fn new(schedule: &'s Schedule) -> Self {
        let channels = schedule.channels.len();
        let mut first_post = vec![0_u32; channels + 1];
        for op in schedule.ops.iter().filter(|op| op.kind == OpKind::Post) {
            first_post[op.arg as usize + 1] += 1;
        }
        for i in 0..channels {
            first_post[i + 1] += first_post[i];
        }
        let mut stream_of = Vec::with_capacity(schedule.ops.len());
        for (index, stream) in schedule.streams.iter().enumerate() {
            stream_of.extend(std::iter::repeat_n(StreamId(index as u32), stream.len as usize));
        }
        Self {
            schedule,
            next: vec![0; schedule.streams.len()],
            posts: vec![OpId(0); first_post[channels] as usize],
            first_post,
            posted: vec![0; channels],
            taken: vec![0; channels],
            waiting: vec![Vec::new(); channels],
            ready: (0..schedule.streams.len() as u32).rev().map(StreamId).collect(),
            sequence: Vec::with_capacity(schedule.ops.len()),
            meets: (0..schedule.ops.len() as u32).map(OpId).collect(),
            stream_of,
        }
    }

    pub(super) fn all(&mut self) {
        while let Some(stream) = self.ready.pop() {
            self.stream(stream);
        }
    }

    /// Runs one stream until it ends or waits.
    fn stream(&mut self, id: StreamId) {
        let stream = self.schedule.streams[id.index()];
        while self.next[id.index()] < stream.len {
            let at = OpId(stream.first.0 + self.next[id.index()]);
            let op = self.schedule.op(at);
            let channel = op.arg as usize;
            match op.kind {
                OpKind::Move => {}
                OpKind::Post => {
                    self.posts[(self.first_post[channel] + self.posted[channel]) as usize] = at;
                    self.posted[channel] += 1;
                    self.ready.append(&mut self.waiting[channel]);
                }
                OpKind::Wait if self.taken[channel] < self.posted[channel] => {
                    let post = self.first_post[channel] + self.taken[channel];
                    self.meets[at.index()] = self.posts[post as usize];
                    self.taken[channel] += 1;
                }
                OpKind::Wait => {
                    self.waiting[channel].push(id);
                    return;
                }
            }
            self.sequence.push(at);
            self.next[id.index()] += 1;
        }
    }

    /// Returns the order in which all streams have ended.
    pub(super) fn order(self) -> Order {
        let Self { sequence, meets, stream_of, .. } = self;
        Order { sequence, meets, stream_of }
    }

    /// Returns the streams that have not ended, each with its pending wait.
    pub(super) fn stuck(&self) -> BTreeMap<StreamId, OpId> {
        let streams = self.schedule.streams.iter().zip(&self.next).enumerate();
        streams
            .filter(|(_, (stream, next))| **next < stream.len)
            .map(|(id, (stream, next))| (StreamId(id as u32), OpId(stream.first.0 + next)))
            .collect()
    }

    /// Returns for each channel the next post of the first stuck stream that posts there: the post that a wait on it
    /// needs.
    fn posters(&self, stuck: &BTreeMap<StreamId, OpId>) -> Vec<Option<(StreamId, OpId)>> {
        let schedule = self.schedule;
        let mut posters = vec![None; schedule.channels.len()];
        for (&id, at) in stuck {
            let stream = schedule.streams[id.index()];
            for at in (at.0..stream.first.0 + stream.len).map(OpId) {
                let op = schedule.op(at);
                if op.kind == OpKind::Post {
                    posters[op.arg as usize].get_or_insert((id, at));
                }
            }
        }
        posters
    }

    /// Finds the shortest cycle of waits. Each stuck stream waits for at most one other stream, so a walk finds cycles.
    pub(super) fn shortest_cycle(&self, stuck: &BTreeMap<StreamId, OpId>) -> Option<Cycle> {
        let posters = self.posters(stuck);
        let needs: BTreeMap<StreamId, (StreamId, OpId)> = stuck
            .iter()
            .filter_map(|(id, at)| {
                let channel = Schedule::channel_id(self.schedule.op(*at));
                Some((*id, posters[channel.index()]?))
            })
            .collect();
        let mut best: Option<Vec<StreamId>> = None;
        let mut seen: BTreeMap<StreamId, StreamId> = BTreeMap::new();
        for &start in needs.keys() {
            let mut path = Vec::new();
            let mut at = start;
            while !seen.contains_key(&at) {
                seen.insert(at, start);
                path.push(at);
                let Some(next) = needs.get(&at) else { break };
                at = next.0;
            }
            if let Some(from) = path.iter().position(|s| *s == at)
                && needs.contains_key(&at)
                && best.as_ref().is_none_or(|b| path.len() - from < b.len())
            {
                best = Some(path[from..].to_vec());
            }
        }
        let best = best?;
        let waits = best.iter().map(|stream| (stuck[stream], needs[stream].1)).collect();
        let around: BTreeSet<StreamId> = best.into_iter().collect();
        let behind = stuck.iter().filter(|(stream, _)| !around.contains(stream));
        Some(Cycle { waits, behind: behind.map(|(_, wait)| *wait).collect() })
    }
}
