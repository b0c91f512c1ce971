//! The critical path: from the end of the run back to its start, always to the event that was waited for.

use super::moves::Moving;
use super::{Cause, Engine};
use crate::step::{Step, Task};
use roundelay_base::ids::OpId;

/// Returns the path to the last end, from its start.
pub(crate) fn path(engine: &Engine<'_>) -> Vec<Step> {
    let schedule = engine.schedule;
    let last = engine.ends.iter().rev().max_by(|a, b| a.0.total_cmp(&b.0));
    let Some(&(mut until, mut cause)) = last else { return Vec::new() };
    let mut steps = Vec::new();
    let mut step = |op: OpId, task, start, end| {
        let stream = schedule.stream_of(op);
        let rank = schedule.streams[stream.index()].rank;
        steps.push(Step { rank, stream, op, task, start, end });
    };
    loop {
        match cause {
            Cause::Start => break,
            Cause::Wait(wait) => cause = engine.causes[wait.index()],
            Cause::Post { post, wait } => {
                let channel = schedule.op(post).arg as usize;
                let sent = (until - engine.signal[channel]).max(0.0);
                let from = schedule.channels[channel].from;
                step(wait, Task::Signal { post, from }, sent, until);
                (until, cause) = (sent, engine.causes[post.index()]);
            }
            Cause::Move(id) => {
                let moving = &engine.moves[id as usize];
                let (task, start, after) = last_part(engine, moving);
                if until > start {
                    step(moving.op, task, start, until);
                }
                (until, cause) = (start, after);
            }
        }
    }
    steps.reverse();
    steps
}

/// Returns the last part of a move that was blocked by nothing else: its task, its begin, and its cause.
fn last_part(engine: &Engine<'_>, moving: &Moving) -> (Task, f64, Cause) {
    let schedule = engine.schedule;
    let by = schedule.streams[moving.stream.index()].rank;
    let crosses = schedule.crossing(by, schedule.op(moving.op)).next().is_some();
    let &Moving { latency, pieces, flowing, start, folds, done, after, folds_after, .. } = moving;
    match (crosses, folds_after) {
        (true, Cause::Start) => {
            (Task::Transfer { latency, pieces, flowing, work: done - folds }, start, after)
        }
        (false, Cause::Start) => (Task::Local, start, after),
        (true, _) => (Task::Fold, folds, folds_after),
        (false, _) => (Task::Local, folds, folds_after),
    }
}
