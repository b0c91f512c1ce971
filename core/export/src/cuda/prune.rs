//! Signal elision by statements: a signal of the author is left out of a kernel if no rank needs it at any time. A loop
//! stays a loop, so a signal that is needed in one iteration stays.

use std::collections::BTreeSet;

use roundelay_core::check::hir::{self, Algorithm, StmtKind};
use roundelay_core::ids::{LaneId, OpId, SpanId};
use roundelay_core::optimize::elide;
use roundelay_core::schedule::demands::Demands;
use roundelay_core::schedule::interner::Renumber;
use roundelay_core::schedule::{Op, OpKind, Schedule};
use roundelay_core::verify::Callers;
use roundelay_core::verify::{Proof, Signals, verify_called};

/// Returns the signal statements of which no execution at any rank is needed.
pub(super) fn needless(
    algorithm: &Algorithm,
    schedule: &Schedule,
    callers: Callers,
) -> BTreeSet<SpanId> {
    let bare = Schedule { demands: Demands::default(), ..schedule.clone() };
    let Ok(elided) = elide::elide(&bare, callers) else { return BTreeSet::new() };
    let mut dropped = BTreeSet::new();
    hir::walk(&algorithm.body, &mut |stmt| {
        if let StmtKind::Signal(..) = stmt.kind {
            dropped.insert(stmt.at);
        }
    });
    for op in elided.schedule.ops.iter().filter(|op| op.kind != OpKind::Move) {
        dropped.remove(&op.at);
    }
    // A post and its wait stay or go together: the k-th post of a counter belongs to its k-th wait.
    let pairs = pairs(schedule);
    loop {
        let torn = pairs.iter().find(|(a, b)| dropped.contains(a) != dropped.contains(b));
        let Some((a, b)) = torn else { return dropped };
        dropped.remove(a);
        dropped.remove(b);
    }
}

/// Returns the statements of each post and its wait.
fn pairs(schedule: &Schedule) -> BTreeSet<(SpanId, SpanId)> {
    let mut ends = vec![(Vec::new(), Vec::new()); schedule.channels.len()];
    for op in &schedule.ops {
        match op.kind {
            OpKind::Post => ends[op.arg as usize].0.push(op.at),
            OpKind::Wait => ends[op.arg as usize].1.push(op.at),
            OpKind::Move => {}
        }
    }
    ends.into_iter().flat_map(|(posts, waits)| posts.into_iter().zip(waits)).collect()
}

/// Returns the schedule without the dropped statements, and its proof; `None` if it cannot be proved.
pub(super) fn without(
    schedule: &Schedule,
    dropped: &BTreeSet<SpanId>,
    callers: Callers,
) -> Option<(Schedule, Proof)> {
    let stays = |op: &Op| op.kind == OpKind::Move || !dropped.contains(&op.at);
    let mut left = Schedule { ops: Vec::new(), demands: Demands::default(), ..schedule.clone() };
    let (mut channels, mut lanes) = (Renumber::default(), Renumber::default());
    lanes.id(0);
    for stream in &mut left.streams {
        let first = left.ops.len() as u32;
        for at in stream.first.0..stream.first.0 + stream.len {
            let mut op = schedule.ops[at as usize];
            if !stays(&op) {
                continue;
            }
            if op.kind != OpKind::Move {
                op.arg = channels.id(op.arg);
            }
            left.ops.push(op);
        }
        (stream.first, stream.len) = (OpId(first), left.ops.len() as u32 - first);
    }
    left.channels = channels.pick(&schedule.channels);
    for channel in left.channels.iter_mut().filter(|channel| channel.kind.has_lane()) {
        channel.lane = LaneId(lanes.id(channel.lane.0));
    }
    left.lanes = lanes.pick(&schedule.lanes);
    let proof = verify_called(&left, Signals::default(), callers).ok()?;
    Some((left, proof))
}
