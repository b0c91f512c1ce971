//! Ports: to how many peers a rank sends, and from how many it receives, in one step. A step is a level of
//! dependence: moves of one step may run at once, whoever carries them out.

use std::collections::BTreeMap;

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
    let mut sends: BTreeMap<(u32, RankId), BTreeMap<RankId, OpId>> = BTreeMap::new();
    let mut receives = sends.clone();
    for used in schedule.traffic().filter(|used| used.units.is_some()) {
        let step = levels[used.op.index()];
        sends.entry((step, used.from)).or_default().entry(used.to).or_insert(used.op);
        receives.entry((step, used.to)).or_default().entry(used.from).or_insert(used.op);
    }
    Ports { send: busiest(sends), receive: busiest(receives) }
}

fn busiest(all: BTreeMap<(u32, RankId), BTreeMap<RankId, OpId>>) -> Busiest {
    // The first of equals.
    let most = all.into_iter().rev().max_by_key(|(_, peers)| peers.len());
    most.map_or_else(Busiest::default, |((step, rank), peers)| Busiest {
        rank,
        step,
        peers: peers.into_iter().collect(),
    })
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
