//! Ports: to how many peers a rank sends, and from how many it receives, in one step. A step is a level of
//! dependence: moves of one step may run at once, whoever carries them out.

use super::order::Order;
use crate::ids::{OpId, RankId};
use crate::schedule::{OpKind, Schedule};

/// The most peers that any rank sends to, and receives from, in one step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ports {
    /// The rank that sends to the most peers at once.
    pub send: Busiest,
    /// The rank that receives from the most peers at once.
    pub receive: Busiest,
}

/// A rank in the step in which it has the most peers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Busiest {
    /// The rank.
    pub rank: RankId,
    /// The step, counted from 1.
    pub step: u32,
    /// The peers of the rank in that step, each with the first move between the two.
    pub peers: Vec<(RankId, OpId)>,
}

/// The longest chain of moves between ranks, and the ports that a schedule uses in the steps of such chains.
pub(super) fn ports(schedule: &Schedule, order: &Order) -> (u32, Ports) {
    let (steps, rounds) = steps(schedule, order, |at| schedule.crosses(schedule.op(at)));
    let mut sends = vec![Vec::new(); schedule.nranks as usize];
    let mut receives = sends.clone();
    // Stream by stream: what one does with its peers lies together.
    for stream in &schedule.streams {
        let by = stream.rank;
        for at in (stream.first.0..stream.first.0 + stream.len).map(OpId) {
            let op = schedule.op(at);
            if op.kind != OpKind::Move {
                continue;
            }
            let step = steps[at.index()];
            for src in schedule.srcs(op).iter().filter(|src| src.rank != by) {
                sends[src.rank.index()].push((step, by, at));
                receives[by.index()].push((step, src.rank, at));
            }
            for dst in schedule.dsts(op).iter().filter(|dst| dst.rank != by) {
                sends[by.index()].push((step, dst.rank, at));
                receives[dst.rank.index()].push((step, by, at));
            }
        }
    }
    (rounds, Ports { send: busiest(sends), receive: busiest(receives) })
}

/// For each op, how many steps the longest chain takes that ends with it; and the most. `begins` says of each
/// move, in `order`, whether a step begins with it.
pub(super) fn steps(
    schedule: &Schedule,
    order: &Order,
    mut begins: impl FnMut(OpId) -> bool,
) -> (Vec<u32>, u32) {
    let mut of_stream = vec![0_u32; schedule.streams.len()];
    let mut of_op = vec![0_u32; schedule.ops.len()];
    for &at in &order.sequence {
        let step = &mut of_stream[order.stream_of[at.index()].index()];
        let op = schedule.op(at);
        match op.kind {
            OpKind::Move => *step += u32::from(begins(at)),
            OpKind::Post => {}
            OpKind::Wait => *step = (*step).max(of_op[order.meets[at.index()].index()]),
        }
        of_op[at.index()] = *step;
    }
    (of_op, of_stream.into_iter().max().unwrap_or(0))
}

/// The first of the busiest, from each rank's peers by step.
fn busiest(all: Vec<Vec<(u32, RankId, OpId)>>) -> Busiest {
    let mut most = Busiest::default();
    for (rank, mut peers) in (0..).map(RankId).zip(all) {
        peers.sort_unstable();
        peers.dedup_by_key(|(step, peer, _)| (*step, *peer));
        for at_once in peers.chunk_by(|a, b| a.0 == b.0) {
            if at_once.len() > most.peers.len() {
                let peers = at_once.iter().map(|(_, peer, op)| (*peer, *op)).collect();
                most = Busiest { rank, step: at_once[0].0, peers };
            }
        }
    }
    most
}
