//! Ports: to how many peers a rank sends, and from how many it receives, in one step. A step is a level of
//! dependence: moves of one step may run at once, whoever carries them out.

use std::collections::VecDeque;

use super::order::Order;
use crate::ids::{OpId, RankId};
use crate::schedule::{OpKind, Schedule};

/// The most that any rank does at once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ports {
    /// Peers that one rank sends to.
    pub send: Busiest,
    /// Peers that one rank receives from.
    pub receive: Busiest,
}

/// A rank in the step in which it has the most peers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Busiest {
    /// Which rank.
    pub rank: RankId,
    /// In which step, from 1.
    pub step: u32,
    /// Its peers, each with the first move between the two.
    pub peers: Vec<(RankId, OpId)>,
}

/// The longest chain of moves between ranks, and the ports that a schedule uses in the steps of such chains.
pub(super) fn ports(schedule: &Schedule, order: &Order) -> (u32, Ports) {
    let mut of_stream = vec![0_u32; schedule.streams.len()];
    let mut carried: Vec<VecDeque<u32>> = vec![VecDeque::new(); schedule.channels.len()];
    let mut sends = vec![Vec::new(); schedule.nranks as usize];
    let mut receives = sends.clone();
    for &at in &order.sequence {
        let stream = order.stream_of[at.index()];
        let step = &mut of_stream[stream.index()];
        let op = schedule.op(at);
        match op.kind {
            OpKind::Move => {
                if !schedule.crosses(op) {
                    continue;
                }
                *step += 1;
                let by = schedule.streams[stream.index()].rank;
                for src in schedule.srcs(op).iter().filter(|src| src.rank != by) {
                    sends[src.rank.index()].push((*step, by, at));
                    receives[by.index()].push((*step, src.rank, at));
                }
                for dst in schedule.dsts(op).iter().filter(|dst| dst.rank != by) {
                    sends[by.index()].push((*step, dst.rank, at));
                    receives[dst.rank.index()].push((*step, by, at));
                }
            }
            // The k-th wait takes what the k-th post carries.
            OpKind::Post => carried[op.arg as usize].push_back(*step),
            OpKind::Wait => {
                let heard = carried[op.arg as usize].pop_front();
                *step = heard.map_or(*step, |heard| heard.max(*step));
            }
        }
    }
    let rounds = of_stream.into_iter().max().unwrap_or(0);
    (rounds, Ports { send: busiest(sends), receive: busiest(receives) })
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
