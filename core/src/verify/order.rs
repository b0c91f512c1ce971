//! The order of events: posts meet waits, streams run until they wait, and what cannot run is a deadlock.

use std::collections::{BTreeMap, BTreeSet};

use super::fifo::{Depth, Links};
use super::report::Reporter;
use crate::diagnostics::{Code, Finding};
use crate::ids::{ChannelId, OpId, StreamId};
use crate::schedule::{Buffer, Channel, OpKind, Schedule, SignalKind};

/// An order of all ops that respects programs and signals; every other such order gives the same memory.
pub(crate) struct Order {
    /// All ops.
    pub(crate) sequence: Vec<OpId>,
    /// For each wait the post that it meets; for every other op itself.
    pub(crate) meets: Vec<OpId>,
    /// The stream of each op.
    pub(crate) stream_of: Vec<StreamId>,
}

impl Order {
    /// Whether scratch is touched by a stream of another rank: only then does the next run matter to it.
    pub(crate) fn shares_scratch(&self, schedule: &Schedule) -> bool {
        schedule.ops.iter().enumerate().filter(|(_, op)| op.kind == OpKind::Move).any(|(at, op)| {
            let rank = schedule.streams[self.stream_of[at].index()].rank;
            let mut operands = schedule.srcs(op).iter().chain(schedule.dsts(op));
            operands
                .any(|o| o.rank != rank && matches!(schedule.region(*o).buffer, Buffer::Scratch(_)))
        })
    }
}

/// Waits that keep each other, each with the post that would meet it, and the other waits that never end.
struct Cycle {
    waits: Vec<(OpId, OpId)>,
    behind: Vec<OpId>,
}

/// Runs the streams against each other, or says which signals keep them from ending.
pub(crate) fn order(schedule: &Schedule, reporter: &Reporter<'_>) -> Result<Order, Vec<Finding>> {
    let unmatched = unmatched(schedule, reporter);
    let mut run = Run::new(schedule);
    run.all();
    let stuck = run.stuck();
    if stuck.is_empty() && unmatched.is_empty() {
        let Run { sequence, meets, stream_of, .. } = run;
        return Ok(Order { sequence, meets, stream_of });
    }
    // A wait that is never met holds up others behind it: that is no cycle of its own.
    if unmatched.iter().any(|finding| finding.code == Code::UnmatchedWait) {
        return Err(unmatched);
    }
    let cycle = run.shortest_cycle(&stuck).map(|Cycle { waits, behind }| {
        too_shallow(schedule, &waits, &behind, reporter)
            .unwrap_or_else(|| reporter.deadlock(&waits, &behind))
    });
    Err(cycle.into_iter().chain(unmatched).collect())
}

/// A cycle of waits that more slots of the fifos would resolve.
fn too_shallow(
    schedule: &Schedule,
    waits: &[(OpId, OpId)],
    behind: &[OpId],
    reporter: &Reporter<'_>,
) -> Option<Finding> {
    let head = |wait: OpId| schedule.channel(schedule.op(wait)).kind == SignalKind::Head;
    let first = waits.iter().position(|(wait, _)| head(*wait))?;
    let links = Links::new(schedule);
    let (credits, needed) = (links.in_flight(waits[first].0), links.needed()?);
    // With fewer it would end as well: then the wait stands in the wrong place.
    if needed <= credits {
        return None;
    }
    let mut waits = waits.to_vec();
    waits.rotate_left(first);
    Some(reporter.too_shallow(&waits, behind, Depth { credits, needed }))
}

/// Posts and waits of a channel that have no partner.
fn unmatched(schedule: &Schedule, reporter: &Reporter<'_>) -> Vec<Finding> {
    let mut balance = vec![0_i64; schedule.channels.len()];
    for op in &schedule.ops {
        match op.kind {
            OpKind::Post => balance[op.arg as usize] += 1,
            OpKind::Wait => balance[op.arg as usize] -= 1,
            OpKind::Move => {}
        }
    }
    // What is sent and not received, or the reverse, leaves the credits of that link without a partner too:
    // there the data says why.
    let astray = |(at, balance): (usize, &i64)| {
        let Channel { from, to, kind, lane } = schedule.channels[at];
        (kind == SignalKind::Tail && *balance != 0).then_some((to, from, lane))
    };
    let astray: BTreeSet<_> = balance.iter().enumerate().filter_map(astray).collect();
    for (Channel { from, to, kind, lane }, balance) in schedule.channels.iter().zip(&mut balance) {
        if *kind == SignalKind::Head && astray.contains(&(*from, *to, *lane)) {
            *balance = 0;
        }
    }
    let mut findings = Vec::new();
    let mut seen = BTreeSet::new();
    // From the end: the surplus is what comes last.
    for (index, op) in schedule.ops.iter().enumerate().rev() {
        if op.kind == OpKind::Move {
            continue;
        }
        let left = &mut balance[op.arg as usize];
        let finding = if op.kind == OpKind::Post && *left > 0 {
            *left -= 1;
            reporter.left_over(OpId(index as u32))
        } else if op.kind == OpKind::Wait && *left < 0 {
            *left += 1;
            reporter.unmatched_wait(OpId(index as u32))
        } else {
            continue;
        };
        // Once a statement: the count takes a walk over all ops, and only the first finding is shown.
        let first = seen.insert(op.at);
        findings.push(if first { finding.note(reporter.tally(op.arg)) } else { finding });
    }
    findings.sort_by_key(|finding| (finding.code != Code::UnmatchedWait, finding.at));
    findings
}

/// The streams in the course of their run.
struct Run<'s> {
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

impl<'s> Run<'s> {
    fn new(schedule: &'s Schedule) -> Self {
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

    fn all(&mut self) {
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

    /// Streams that have not ended, with the wait they stand at.
    fn stuck(&self) -> BTreeMap<StreamId, OpId> {
        let streams = self.schedule.streams.iter().zip(&self.next).enumerate();
        streams
            .filter(|(_, (stream, next))| **next < stream.len)
            .map(|(id, (stream, next))| (StreamId(id as u32), OpId(stream.first.0 + next)))
            .collect()
    }

    /// The next post on `channel` of a stuck stream: what a wait for it needs.
    fn poster(
        &self,
        channel: ChannelId,
        stuck: &BTreeMap<StreamId, OpId>,
    ) -> Option<(StreamId, OpId)> {
        let from = self.schedule.channels[channel.index()].from;
        stuck
            .iter()
            .filter(|(stream, _)| self.schedule.streams[stream.index()].rank == from)
            .find_map(|(id, at)| {
                let stream = self.schedule.streams[id.index()];
                let mut rest = (at.0..stream.first.0 + stream.len).map(OpId);
                let post = rest.find(|op| {
                    let op = self.schedule.op(*op);
                    op.kind == OpKind::Post && op.arg == channel.0
                })?;
                Some((*id, post))
            })
    }

    /// Each stuck stream waits for one other at most, so cycles are found by walking.
    fn shortest_cycle(&self, stuck: &BTreeMap<StreamId, OpId>) -> Option<Cycle> {
        let needs: BTreeMap<StreamId, (StreamId, OpId)> = stuck
            .iter()
            .filter_map(|(id, at)| {
                let channel = Schedule::channel_id(self.schedule.op(*at));
                Some((*id, self.poster(channel, stuck)?))
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
        let behind = stuck.iter().filter(|(stream, _)| !best.contains(stream));
        Some(Cycle { waits, behind: behind.map(|(_, wait)| *wait).collect() })
    }
}
