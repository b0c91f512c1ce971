//! What the time went to: from the end of the run back to its start, always to what was waited for.

use super::engine::Trace;
use super::wires::Wires;
use crate::ids::{OpId, RankId, StreamId};
use crate::schedule::{OpKind, Schedule};

/// A step on the way: it began when the one before had ended, and because it had.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// Who did it.
    pub rank: RankId,
    /// Which of the rank's streams.
    pub stream: StreamId,
    /// The op: a move, or a wait that a signal ended.
    pub op: OpId,
    /// What it was.
    pub task: Task,
    /// When it began.
    pub start: f64,
    /// When it ended.
    pub end: f64,
}

/// What takes time, or hands over.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Task {
    /// A move between ranks; it would have taken so many seconds with all links for itself. The rest is for sharing
    /// links, and for reducing.
    Transfer {
        /// Seconds of latency and bytes of its slowest message.
        alone: f64,
    },
    /// A move within the rank.
    Local,
    /// The stream waited for a signal: the step before is that of who sent it.
    Signal {
        /// The post.
        post: OpId,
        /// Who sent it.
        from: RankId,
    },
}

/// The way to the last end, from its start.
pub(super) fn path(
    schedule: &Schedule,
    wires: &Wires,
    bytes: &[f64],
    signal: &[f64],
    ends: &[f64],
    trace: &Trace,
) -> Vec<Step> {
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
                let start = trace.began[id.index()];
                let crossing = schedule.crossing(at.rank, op);
                let alone = crossing.map(|(from, to, region)| {
                    let wire = wires.wire(wires.between(from, to));
                    wire.latency + bytes[region.index()] / wire.alone
                });
                let alone = alone.reduce(f64::max);
                let task = alone.map_or(Task::Local, |alone| Task::Transfer { alone });
                if until > start {
                    steps.push(step(task, start));
                }
                until = start;
            }
            OpKind::Wait if trace.kept[id.index()] != 0 => {
                let post = OpId(trace.kept[id.index()] - 1);
                let sent = (until - signal[op.arg as usize]).max(0.0);
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
