//! Moves of a copy engine: one source and one destination, copied or reduced.

use roundelay_core::diagnostics::{Code, Finding};
use roundelay_core::ids::OpId;
use roundelay_core::schedule::{Op, OpKind, Operand, Schedule};

use super::handshakes::kind_on_link;
use crate::loops::ir::LoopNode;

/// The sources and the destination of a move: a copy has one source, and a reduction has its destination and another.
type Single<T> = (Vec<T>, T);

/// Splits a move into single moves: reductions of the sources in one destination, in their order, and copies of the
/// result to the other destinations. `near` tells the operands of the executing rank. `None` if the destination is one
/// of the later sources: the reductions would overwrite it too early.
fn singles<T: Clone + PartialEq>(
    srcs: &[T],
    dsts: &[T],
    near: impl Fn(&T) -> bool,
) -> Option<Vec<Single<T>>> {
    // A destination that is also a source needs no copy of it.
    let held = dsts.iter().find_map(|dst| Some((srcs.iter().position(|src| src == dst)?, dst)));
    let mut singles = Vec::new();
    let fold = |src: &T, into: &T| (vec![into.clone(), src.clone()], into.clone());
    let into = match held {
        Some((0, into)) => {
            singles.extend(srcs[1..].iter().map(|src| fold(src, into)));
            into
        }
        // An executor's reductions commute.
        Some((1, into)) => {
            let others = srcs[..1].iter().chain(&srcs[2..]);
            singles.extend(others.map(|src| fold(src, into)));
            into
        }
        Some(_) => return None,
        None => {
            // The rank's own destination if there is one; the other operands are reduced on their way to it.
            let into = dsts.iter().find(|dst| near(dst)).unwrap_or(&dsts[0]);
            singles.push((vec![srcs[0].clone()], into.clone()));
            singles.extend(srcs[1..].iter().map(|src| fold(src, into)));
            into
        }
    };
    let others = dsts.iter().filter(|dst| *dst != into);
    singles.extend(others.map(|dst| (vec![into.clone()], dst.clone())));
    Some(singles)
}

/// Returns the schedule with each move split into single moves.
pub(super) fn split(schedule: &Schedule) -> Result<Schedule, Vec<Finding>> {
    let (mut ops, mut operands) = (Vec::new(), Vec::new());
    let mut streams = schedule.streams.clone();
    for stream in &mut streams {
        let own = &schedule.ops[stream.first.index()..][..stream.len as usize];
        stream.first = OpId(ops.len() as u32);
        for op in own {
            if op.kind != OpKind::Move {
                ops.push(*op);
                continue;
            }
            let near = |operand: &Operand| operand.rank == stream.rank;
            let all = singles(schedule.srcs(op), schedule.dsts(op), near).ok_or_else(|| {
                let title = "a reduction whose destination is one of its later sources";
                let finding = Finding::new(Code::NotExportable, op.at, title)
                    .note("a copy engine folds its source into what the destination holds")
                    .help("let the destination be the first source, as `reduce(src, dst)` does");
                vec![finding]
            })?;
            for (srcs, dst) in all {
                let arg = operands.len() as u32;
                ops.push(Op { srcs: srcs.len() as u8, dsts: 1, chain: false, arg, ..*op });
                operands.extend(srcs);
                operands.push(dst);
            }
        }
        stream.len = ops.len() as u32 - stream.first.0;
    }
    Ok(Schedule { streams, ops, operands, ..schedule.clone() })
}

/// Splits each move of statements into single moves, and replaces signals by those of a link, without their lanes.
pub(super) fn split_nodes(nodes: Vec<LoopNode>) -> Vec<LoopNode> {
    let mut all = Vec::new();
    for mut node in nodes {
        for block in node.blocks_mut() {
            *block = split_nodes(std::mem::take(block));
        }
        match node {
            LoopNode::Move { at, mut srcs, mut dsts, .. } => {
                // No flag counts the passes of a link here.
                srcs.iter_mut().chain(&mut dsts).for_each(|place| place.step = None);
                let singles = singles(&srcs, &dsts, |place| place.of.is_none());
                let single =
                    |(srcs, dst)| LoopNode::Move { at, chain: false, srcs, dsts: vec![dst] };
                all.extend(singles.into_iter().flatten().map(single));
            }
            LoopNode::Signal { at, post, kind, peer, .. } => {
                all.push(LoopNode::Signal { at, post, kind: kind_on_link(kind), peer, lane: None });
            }
            node => all.push(node),
        }
    }
    all
}
