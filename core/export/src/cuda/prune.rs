//! Signal elision by statements: a signal of the author is left out of a kernel if no rank needs it at any time. A loop
//! stays a loop, so a signal that is needed in one iteration stays.

use std::collections::BTreeSet;

use crate::loops::ir::NodeId;
use roundelay_core::ids::{OpId, SpanId};
use roundelay_core::optimize::elide;
use roundelay_core::schedule::demands::Demands;
use roundelay_core::schedule::interner::Renumber;
use roundelay_core::schedule::{OpKind, Schedule, SignalKind};
use roundelay_core::verify::Callers;
use roundelay_core::verify::{Proof, Signals, verify_called};

/// Returns the signals of a form of which no execution at any rank is needed. `nodes` are the statements of the
/// schedule's ops. The signals of a fifo stay.
pub(super) fn needless(
    schedule: &Schedule,
    nodes: &[NodeId],
    callers: Callers,
) -> BTreeSet<NodeId> {
    let mut bare = Schedule { demands: Demands::default(), ..schedule.clone() };
    // The ops that stay keep their places: here their numbers.
    for (op, at) in bare.ops.iter_mut().zip(0..) {
        op.at = SpanId(at);
    }
    let Ok(elided) = elide::elide(&bare, callers) else { return BTreeSet::new() };
    let mut dropped = BTreeSet::new();
    for (op, node) in schedule.ops.iter().zip(nodes).filter(|(op, _)| op.kind != OpKind::Move) {
        if matches!(schedule.channel(op).kind, SignalKind::Ack | SignalKind::Data) {
            dropped.insert(*node);
        }
    }
    for op in &elided.schedule.ops {
        dropped.remove(&nodes[op.at.index()]);
    }
    // A post and its wait stay or go together: the k-th post of a counter belongs to its k-th wait.
    let pairs = pairs(schedule, nodes);
    loop {
        let torn = pairs.iter().find(|(a, b)| dropped.contains(a) != dropped.contains(b));
        let Some((a, b)) = torn else { return dropped };
        dropped.remove(a);
        dropped.remove(b);
    }
}

/// Returns the statements of each post and its wait.
fn pairs(schedule: &Schedule, nodes: &[NodeId]) -> BTreeSet<(NodeId, NodeId)> {
    let mut ends = vec![(Vec::new(), Vec::new()); schedule.channels.len()];
    for (op, node) in schedule.ops.iter().zip(nodes) {
        match op.kind {
            OpKind::Post => ends[op.arg as usize].0.push(*node),
            OpKind::Wait => ends[op.arg as usize].1.push(*node),
            OpKind::Move => {}
        }
    }
    ends.into_iter().flat_map(|(posts, waits)| posts.into_iter().zip(waits)).collect()
}

/// Returns the schedule without the ops of dropped statements, and its proof; `None` if it cannot be proved.
pub(super) fn without(
    schedule: &Schedule,
    nodes: &[NodeId],
    dropped: &BTreeSet<NodeId>,
    callers: Callers,
) -> Option<(Schedule, Proof)> {
    let mut left = Schedule { ops: Vec::new(), demands: Demands::default(), ..schedule.clone() };
    let mut channels = Renumber::default();
    for stream in &mut left.streams {
        let first = left.ops.len() as u32;
        for at in stream.first.0..stream.first.0 + stream.len {
            let mut op = schedule.ops[at as usize];
            if dropped.contains(&nodes[at as usize]) {
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
    let proof = verify_called(&left, Signals::default(), callers).ok()?;
    Some((left, proof))
}
