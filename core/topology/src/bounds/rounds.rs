//! Bounds on rounds and latency, which hold for any bandwidth.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::orbits;
use crate::{Fabric, NodeId};
use roundelay_base::ids::RankId;

/// The largest product of links and ranks up to which the farthest pair is searched.
const SEARCHED: usize = 1 << 28;

/// The least numbers of rounds, where in a round each rank sends to some ranks at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rounds {
    /// With one message a rank and round: the ranks that know a value at most double in a round.
    pub one_port: u32,
    /// With a message on every port of a rank at once.
    pub all_ports: u32,
    /// The most ports of a rank: its outgoing links.
    pub ports: u32,
    /// Sends from rank to rank that a message takes between the ranks farthest apart.
    pub diameter: u32,
    /// Nanoseconds that a message takes between the ranks farthest apart; `None` where the graph is too large for the
    /// search.
    pub farthest_ns: Option<u64>,
}

impl Rounds {
    /// The rounds of the first `nranks` ranks of `topology`.
    pub fn new(topology: &Fabric, nranks: u32) -> Self {
        let ranks: Vec<RankId> = (0..nranks).map(RankId).collect();
        let orbits = orbits::classes(topology, nranks);
        let reps: Vec<RankId> = orbits.iter().map(|orbit| orbit[0]).collect();
        let ports = ranks.iter().map(|r| topology.out((*r).into()).len()).max().unwrap_or(0) as u32;
        let diameter = reps.iter().map(|r| sends(topology, *r, nranks)).max().unwrap_or(0);
        let small = topology.links().len().saturating_mul(reps.len()) <= SEARCHED;
        let farthest = || reps.iter().map(|r| latency(topology, *r, nranks)).max().unwrap_or(0);
        Self {
            one_port: logarithm(nranks, 2).max(diameter),
            all_ports: logarithm(nranks, u64::from(ports) + 1).max(diameter),
            ports,
            diameter,
            farthest_ns: small.then(farthest),
        }
    }
}

/// Returns ceil(log n) to the base given.
fn logarithm(n: u32, base: u64) -> u32 {
    let (mut reached, mut rounds) = (1_u64, 0);
    while reached < u64::from(n) && base > 1 {
        reached = reached.saturating_mul(base);
        rounds += 1;
    }
    rounds
}

/// Returns the number of sends to the reachable rank farthest from `from`, each between linked ranks. Ranks outside
/// the run forward nothing: a connection through them alone is a missing link, not a long path.
fn sends(topology: &Fabric, from: RankId, nranks: u32) -> u32 {
    let mut left: Vec<RankId> = (0..nranks).map(RankId).filter(|r| *r != from).collect();
    let (mut ring, mut steps) = (vec![from], 0);
    while !ring.is_empty() && !left.is_empty() {
        let (reached, rest): (Vec<_>, Vec<_>) =
            left.into_iter().partition(|to| ring.iter().any(|by| topology.are_linked(*by, *to)));
        (ring, left) = (reached, rest);
        steps += u32::from(!ring.is_empty());
    }
    steps
}

/// Returns the time of a message from `from` to the rank farthest from it.
fn latency(topology: &Fabric, from: RankId, nranks: u32) -> u64 {
    let mut best = vec![u64::MAX; topology.nodes().len()];
    best[from.index()] = 0;
    let mut open = BinaryHeap::from([Reverse((0, NodeId::from(from)))]);
    while let Some(Reverse((time, node))) = open.pop() {
        if time > best[node.index()] {
            continue;
        }
        for link in topology.out(node) {
            let then = time + link.latency;
            if then < best[link.to.index()] {
                best[link.to.index()] = then;
                open.push(Reverse((then, link.to)));
            }
        }
    }
    best[..nranks as usize].iter().copied().max().unwrap_or(0)
}
