//! Steps and ports, from the ops of rank 0: all ranks are in the same step at the same op.

use super::Representative;
use super::order::folded;
use crate::ids::{OpId, RankId};
use crate::schedule::{OpKind, Operand};
use crate::verify::layout::BufferMode;
use crate::verify::{self, Busiest, Depth, Order, Ports};

/// The number of steps that a stream has behind it: of the messages that it waited for, and of all its moves.
#[derive(Clone, Copy, Default)]
struct Behind {
    waited: u32,
    done: u32,
}

/// Returns the length of the longest chain of messages, and the ports of a rank in each step, over all modes.
pub(super) fn ports(of: &Representative, order: &Order, modes: &[BufferMode]) -> (u32, Ports) {
    let (mut count, mut most) = (0, Ports::default());
    for mode in modes {
        let (steps, longest) = steps(of, order, *mode);
        let ports = ports_in(of, &steps);
        count = count.max(longest);
        if ports.most() > most.most() {
            most = Ports { in_place: *mode == BufferMode::InPlace, ..ports };
        }
    }
    (count, most)
}

/// Returns the step of each op, and the length of the longest chain.
fn steps(of: &Representative, order: &Order, mode: BufferMode) -> (Vec<u32>, u32) {
    let (own, space) = (&of.own, &of.space);
    let (first, size) = space.layout(own, mode);
    let mut streams = vec![Behind::default(); own.streams.len()];
    let mut step = vec![0_u32; own.ops.len()];
    // The step after which the moves that wrote, or read, a cell of rank 0 were done.
    let mut written = vec![0_u32; size as usize];
    let mut read = vec![0_u32; size as usize];
    let place = |operand: &Operand| {
        let images = space.images(space.piece(own, *operand), space.turns.back(operand.rank.0));
        images.into_iter().map(|image| {
            let from = (first[image.buffer] + image.first) as usize;
            from..from + image.len as usize
        })
    };
    for &at in &order.sequence {
        let behind = &mut streams[order.stream_of[at.index()].index()];
        let op = own.op(at);
        match op.kind {
            OpKind::Move => {
                let (srcs, dsts) = (own.srcs(op), own.dsts(op));
                let last = |times: &[u32], of: &Operand| {
                    let times = place(of).flat_map(|cells| &times[cells]);
                    times.copied().max().unwrap_or(0)
                };
                let needs = own.needed(RankId(0), op).map(|operand| last(&written, operand));
                let start = needs.fold(behind.waited, u32::max);
                let arrived = start + u32::from(own.crossing(RankId(0), op).next().is_some());
                let all = srcs.iter().chain(dsts).map(|operand| last(&written, operand));
                let done =
                    all.chain(dsts.iter().map(|dst| last(&read, dst))).fold(arrived, u32::max);
                behind.done = behind.done.max(done);
                step[at.index()] = arrived;
                let onto_itself =
                    srcs[0].rank == dsts[0].rank && place(&srcs[0]).eq(place(&dsts[0]));
                if !op.finish && op.srcs == 1 && op.dsts == 1 && onto_itself {
                    continue;
                }
                for src in srcs {
                    place(src).for_each(|cells| {
                        read[cells].iter_mut().for_each(|at| *at = done.max(*at));
                    });
                }
                for dst in dsts {
                    place(dst).for_each(|cells| written[cells].fill(done));
                }
            }
            OpKind::Post => step[at.index()] = behind.done.max(behind.waited),
            OpKind::Wait => {
                behind.waited = behind.waited.max(step[order.meets[at.index()].index()]);
                step[at.index()] = behind.waited;
            }
        }
    }
    let count = streams.iter().map(|behind| behind.done.max(behind.waited)).max();
    (step, count.unwrap_or(0))
}

fn ports_in(of: &Representative, steps: &[u32]) -> Ports {
    let own = &of.own;
    let (mut sends, mut receives) = (Vec::new(), Vec::new());
    for (at, op) in (0..).map(OpId).zip(&own.ops).filter(|(_, op)| op.kind == OpKind::Move) {
        let step = steps[at.index()];
        for (from, to, _) in own.crossing(RankId(0), op) {
            // The rank that the data comes from sends it by the turned image of this op, and the other way around.
            sends.push((step, of.turns.between(from.0, to.0), at));
            receives.push((step, of.turns.between(to.0, from.0), at));
        }
    }
    Ports { send: busiest(sends), receive: busiest(receives), in_place: false }
}

fn busiest(mut peers: Vec<(u32, u32, OpId)>) -> Busiest {
    let mut most = Busiest::default();
    peers.sort_unstable();
    peers.dedup_by_key(|(step, peer, _)| (*step, *peer));
    for at_once in peers.chunk_by(|a, b| a.0 == b.0) {
        if at_once.len() > most.peers.len() {
            let peers = at_once.iter().map(|(_, peer, op)| (RankId(*peer), *op)).collect();
            most = Busiest { rank: RankId(0), step: at_once[0].0, peers };
        }
    }
    most
}

/// Returns the fifo's slots in use and needed, if there is a fifo.
pub(super) fn depth(of: &Representative) -> Option<Depth> {
    verify::depth(&folded(&of.own, &of.turns))
}
