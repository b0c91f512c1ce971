//! What the time went to: from the end of the run back to its start, always to what was waited for.

use super::engine::Engine;
use super::step::{Step, Task};
use crate::ids::{OpId, StreamId};
use crate::schedule::OpKind;

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
