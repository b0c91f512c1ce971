//! Ports: to how many peers a rank sends, and from how many it receives, in one step. A step is a level of
//! dependence: moves of one step may run at once, whoever carries them out.

use super::order::{self, Order};
use super::report::Reporter;
use crate::ids::{OpId, RankId};
use crate::schedule::{OpKind, Schedule};

/// The most that any rank does at once.
#[derive(Clone, Debug, PartialEq, Eq)]
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

/// The ports that a proved schedule uses.
pub fn ports(schedule: &Schedule) -> Ports {
    let ordered = order::order(schedule, &Reporter::new(schedule));
    let Ok(ordered) = ordered else {
        return Ports { send: Busiest::default(), receive: Busiest::default() };
    };
    let levels = levels(schedule, &ordered);
    let mut sends = vec![Vec::new(); schedule.nranks as usize];
    let mut receives = sends.clone();
    for used in schedule.traffic().filter(|used| used.units.is_some()) {
        let step = levels[used.op.index()];
        sends[used.from.index()].push((step, used.to, used.op));
        receives[used.to.index()].push((step, used.from, used.op));
    }
    Ports { send: busiest(sends), receive: busiest(receives) }
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

/// For each move between ranks, how many of them lie on the longest chain that ends with it.
fn levels(schedule: &Schedule, order: &Order) -> Vec<u32> {
    let mut of_stream = vec![0_u32; schedule.streams.len()];
    let mut of_op = vec![0_u32; schedule.ops.len()];
    for &at in &order.sequence {
        let stream = order.stream_of[at.index()];
        let level = &mut of_stream[stream.index()];
        let op = schedule.op(at);
        match op.kind {
            OpKind::Move => *level += u32::from(schedule.crosses(op)),
            OpKind::Post => {}
            OpKind::Wait => *level = (*level).max(of_op[order.meets[at.index()].index()]),
        }
        of_op[at.index()] = *level;
    }
    of_op
}
