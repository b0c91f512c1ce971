//! Bounds that a single cut sets: AllGather and its mirror, the rooted collectives, AllToAll.
//!
//! AllGather: the data of a set R of ranks must leave R, unless R is all ranks. So the time is at least (S/n) * max
//! over R of |R| / out(R), where out(R) is the bandwidth that leaves R. A source that feeds every rank x pushes n*x
//! to every rank if and only if no R has out(R) < |R| * x. The greatest such x is found by Newton's method on cuts: a
//! flow that falls short gives a cut, the cut's own fraction is the next x, and the last one is exact.

use super::fraction::Fraction;
use super::{orbits, twins};
use crate::flow::{self, Network, UNLIMITED};
use crate::{Fabric, NodeId};
use roundelay_base::ids::RankId;

/// A topology as a network, with one more node that feeds or drains its ranks.
pub(super) struct Graph<'t> {
    pub(super) topology: &'t Fabric,
    pub(super) ranks: Vec<RankId>,
    /// The number of capacity units that make 1 byte a second.
    pub(super) unit: u128,
    capacities: Vec<u128>,
}

/// A cut: the ranks on its near side, and the bandwidth that leaves it, in whole units.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Cut {
    pub(super) ranks: Vec<RankId>,
    pub(super) leaves: u128,
}

impl<'t> Graph<'t> {
    pub(super) fn new(topology: &'t Fabric, nranks: u32) -> Self {
        let (unit, capacities) = flow::whole(topology);
        Self { topology, ranks: (0..nranks).map(RankId).collect(), unit, capacities }
    }

    pub(super) fn n(&self) -> u128 {
        self.ranks.len() as u128
    }

    fn extra(&self) -> usize {
        self.topology.nodes().len()
    }

    /// Returns the network of the links, with each capacity times `times`.
    pub(super) fn network(&self, times: u128) -> Network {
        let mut network = Network::new(self.extra() + 1);
        for (link, capacity) in self.topology.links().iter().zip(&self.capacities) {
            network.arc(link.from.index(), link.to.index(), capacity * times);
        }
        network
    }

    /// Returns the bandwidth that leaves the marked nodes.
    fn leaving(&self, side: &[bool]) -> u128 {
        let crosses = |(link, capacity): (&crate::Link, &u128)| {
            let leaves = side[link.from.index()] && !side[link.to.index()];
            if leaves { *capacity } else { 0 }
        };
        self.topology.links().iter().zip(&self.capacities).map(crosses).sum()
    }

    /// Returns the cut around the marked nodes.
    pub(super) fn cut(&self, side: &[bool]) -> Cut {
        let ranks = self.ranks.iter().copied().filter(|r| side[r.index()]).collect();
        Cut { ranks, leaves: self.leaving(side) }
    }

    /// Returns max over S of n(S) / B+(S), S not holding all ranks, with S.
    pub(super) fn gather(&self) -> (Fraction, Cut) {
        let (n, source) = (self.n(), self.extra());
        let mut worst = self.first_cut();
        let orbits = orbits::classes(self.topology, self.ranks.len() as u32);
        let reps: Vec<RankId> = orbits.iter().map(|orbit| orbit[0]).collect();
        for rep in reps {
            loop {
                // Every rank is fed leaves / count; all capacities are multiplied by count, so that it is whole.
                let (leaves, count) = (worst.leaves, worst.ranks.len() as u128);
                let mut network = self.network(count);
                for rank in &self.ranks {
                    network.arc(source, rank.index(), leaves);
                }
                if network.max_flow(source, rep.index(), n * leaves) == n * leaves {
                    break;
                }
                worst = self.cut(&network.reach(source));
            }
        }
        (Fraction::new(worst.ranks.len() as u128 * self.unit, worst.leaves), worst)
    }

    /// Returns a cut to begin with: one rank.
    fn first_cut(&self) -> Cut {
        let mut side = vec![false; self.topology.nodes().len()];
        side[self.ranks[0].index()] = true;
        self.cut(&side)
    }

    /// Returns min over v of the greatest flow from `root` to v, and the cut that limits it.
    pub(super) fn broadcast(&self, root: RankId) -> (Fraction, Cut) {
        let mut network = self.network(1);
        let mut worst: Option<(u128, Cut)> = None;
        for class in twins::classes(self.topology, &self.ranks, Some(root)) {
            if class[0] == root {
                continue;
            }
            let enough = worst.as_ref().map_or(UNLIMITED, |(flow, _)| *flow);
            let flow = network.max_flow(root.index(), class[0].index(), enough);
            if flow < enough {
                let side = network.reach(root.index());
                worst = Some((flow, self.cut(&side)));
            }
        }
        worst.map_or((Fraction::ZERO, Cut { ranks: Vec::new(), leaves: 0 }), |(flow, cut)| {
            (Fraction::new(self.unit, flow), cut)
        })
    }

    /// Returns max over S that holds `root` of (ranks outside S) / B+(S), with S.
    pub(super) fn scatter(&self, root: RankId) -> (Fraction, Cut) {
        let (n, sink) = (self.n(), self.extra());
        let mut side = vec![false; self.topology.nodes().len()];
        side[root.index()] = true;
        let mut worst = self.cut(&side);
        loop {
            let outside = n - worst.ranks.len() as u128;
            if outside == 0 {
                return (Fraction::ZERO, worst);
            }
            let mut network = self.network(outside);
            for rank in self.ranks.iter().filter(|r| **r != root) {
                network.arc(rank.index(), sink, worst.leaves);
            }
            let wanted = (n - 1) * worst.leaves;
            if network.max_flow(root.index(), sink, wanted) == wanted {
                return (Fraction::new(outside * self.unit, worst.leaves), worst);
            }
            worst = self.cut(&network.reach(root.index()));
        }
    }

    /// Returns the greatest flow from the ranks of `group` to all others: the bandwidth that can leave the group.
    pub(super) fn kappa(&self, group: &[RankId]) -> u128 {
        let mut network = self.network(1);
        let sink = self.extra();
        let mut inside = vec![false; self.topology.nodes().len()];
        for rank in group {
            inside[rank.index()] = true;
        }
        let source = group[0].index();
        for rank in &self.ranks {
            if !inside[rank.index()] {
                network.arc(rank.index(), sink, UNLIMITED);
            } else if rank.index() != source {
                network.arc(source, rank.index(), UNLIMITED);
            }
        }
        network.max_flow(source, sink, UNLIMITED)
    }

    /// Returns the sum over all ordered pairs of the least number of links between them, and the sum of all
    /// capacities.
    pub(super) fn distances(&self) -> (u128, u128) {
        let classes = orbits::classes(self.topology, self.ranks.len() as u32);
        let total = classes.iter().map(|class| {
            let hops = self.hops(class[0].into());
            let sum: u128 = self.ranks.iter().map(|r| u128::from(hops[r.index()])).sum();
            sum * class.len() as u128
        });
        (total.sum(), self.capacities.iter().sum())
    }

    /// Returns the number of links to each node.
    fn hops(&self, from: NodeId) -> Vec<u32> {
        let mut hops = vec![u32::MAX; self.topology.nodes().len()];
        hops[from.index()] = 0;
        let mut order = vec![from];
        let mut next = 0;
        while let Some(&node) = order.get(next) {
            next += 1;
            for link in self.topology.out(node) {
                if hops[link.to.index()] == u32::MAX {
                    hops[link.to.index()] = hops[node.index()] + 1;
                    order.push(link.to);
                }
            }
        }
        hops
    }
}
