//! What the time went to: from the end of the run back to its start, always to what was waited for.

use super::engine::Engine;
use crate::ids::{OpId, RankId, StreamId};
use crate::schedule::OpKind;

/// A step on the critical path: it began when the one before had ended, and waited for nothing else.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// The rank that did it.
    pub rank: RankId,
    /// The stream of that rank.
    pub stream: StreamId,
    /// The op: a move, or a wait that a signal ended.
    pub op: OpId,
    /// What took the time.
    pub task: Task,
    /// The time at which it began, in seconds.
    pub start: f64,
    /// The time at which it ended, in seconds.
    pub end: f64,
}

/// What takes the time of a step on the critical path, or hands over to another stream.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Task {
    /// A move between ranks. What these three leave of the step's time is due to links that others used too.
    Transfer {
        /// Seconds of latency, of the message that would have taken longest alone.
        latency: f64,
        /// Seconds for which the bytes of that message would have flowed alone.
        flowing: f64,
        /// Seconds for which the rank reduced what had come.
        work: f64,
    },
    /// A move within the rank.
    Local,
    /// The stream waited for a signal: the step before is one of the rank that sent it.
    Signal {
        /// The post that ended the wait.
        post: OpId,
        /// The rank that posted.
        from: RankId,
    },
}

/// The way to the last end, from its start.
pub(super) fn path(engine: &Engine<'_>) -> Vec<Step> {
    let (schedule, ends) = (engine.schedule, &engine.ends);
    let last = (0..ends.len()).rev().max_by(|a, b| ends[*a].total_cmp(&ends[*b]));
    let Some(last) = last else { return Vec::new() };
    let mut steps = Vec::new();
    let mut until = ends[last];
    let mut at = schedule.streams[last];
    let mut stream = StreamId(last as u32);
    let mut next = at.first.0 + at.len;
    while next > at.first.0 {
        next -= 1;
        let id = OpId(next);
        let op = schedule.op(id);
        let step = |task, start| Step { rank: at.rank, stream, op: id, task, start, end: until };
        match op.kind {
            OpKind::Move => {
                let start = engine.began[engine.trace[id.index()] as usize];
                if until > start {
                    steps.push(step(task(engine, stream, id), start));
                }
                until = start;
            }
            OpKind::Wait if engine.trace[id.index()] != 0 => {
                let post = OpId(engine.trace[id.index()] - 1);
                let sent = (until - engine.signal[op.arg as usize]).max(0.0);
                let from = schedule.channel(op).from;
                steps.push(step(Task::Signal { post, from }, sent));
                until = sent;
                stream = schedule.stream_of(post);
                at = schedule.streams[stream.index()];
                next = post.0;
            }
            OpKind::Wait | OpKind::Post => {}
        }
    }
    steps.reverse();
    steps
}

/// What a move that took time was.
fn task(engine: &Engine<'_>, stream: StreamId, id: OpId) -> Task {
    let (schedule, wires) = (engine.schedule, engine.wires);
    let rank = schedule.streams[stream.index()].rank;
    let crossing = schedule.crossing(rank, schedule.op(id));
    let alone = crossing.map(|(from, to, region)| {
        let wire = wires.wire(wires.between(from, to));
        (wire.latency, engine.bytes[region.index()] / wire.alone)
    });
    let slowest = alone.max_by(|a, b| (a.0 + a.1).total_cmp(&(b.0 + b.1)));
    slowest.map_or(Task::Local, |(latency, flowing)| Task::Transfer {
        latency,
        flowing,
        work: engine.takes(stream, id),
    })
}
