//! The rate at which roots can feed all ranks at once, and the capacities that carry whole trees at that rate.
//!
//! Every root feeds x into the network. All ranks can get everything if and only if a flow of all of it reaches each
//! rank alone, for a cut that is too narrow for some rank is met by the flow to it. The greatest x is found by
//! Newton's method on cuts, from the bound of the collective on; so the bound is proved once more, by flows.

use std::collections::BTreeMap;

use super::{Problem, bug, too_fine};
use roundelay_core::diagnostics::Code;
use roundelay_topology::bounds::Fraction;
use roundelay_topology::flow::{self, Network, gcd};
use roundelay_topology::{Fabric, NodeId};

/// The links of a run: those between its ranks and switches, links in parallel as one.
pub(super) struct Wires {
    pub(super) nranks: usize,
    pub(super) nodes: usize,
    /// The ends of each wire, in order, with its capacity in grains.
    pub(super) ends: Vec<(u32, u32)>,
    pub(super) capacity: Vec<u128>,
    /// Bytes a second (or multiples of B) of one grain.
    pub(super) grain: Fraction,
    /// The wire in the other direction.
    pub(super) back: Vec<Option<usize>>,
    /// The ranks that feed.
    pub(super) roots: Vec<usize>,
    pub(super) passes: Passes,
    /// The name of a switch that sends more or less than it receives.
    uneven: Option<String>,
}

/// How often data passes along the trees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Passes {
    /// Down from roots of equal shares, or up to them.
    Once,
    /// Up to roots with shares of their own choice, and then down.
    Twice,
    /// Up and down at once, in two halves of each link.
    AtOnce,
}

/// Capacities in trees of weight 1.
pub(super) struct Scaled {
    /// The weight that each wire carries.
    pub(super) room: Vec<u64>,
    /// The weight of all trees of each root.
    pub(super) trees: Vec<u64>,
}

impl Wires {
    pub(super) fn new(topology: &Fabric, nranks: u32, roots: Vec<usize>, passes: Passes) -> Self {
        let (unit, whole) = flow::whole(topology);
        let outside = |node: NodeId| (nranks..topology.nranks()).contains(&node.0);
        let mut wires = BTreeMap::new();
        for (link, capacity) in topology.links().iter().zip(whole) {
            // Ranks that are not in the run run no program that could forward.
            if !outside(link.from) && !outside(link.to) {
                *wires.entry((link.from.0, link.to.0)).or_insert(0) += capacity;
            }
        }
        let sum = |switch: usize, of: &dyn Fn(&(u32, u32)) -> u32| -> u128 {
            let own = wires.iter().filter(|(ends, _)| of(ends) as usize == switch);
            own.map(|(_, capacity)| capacity).sum()
        };
        let mut switches = topology.nranks() as usize..topology.nodes().len();
        let uneven = switches.find(|node| sum(*node, &|ends| ends.0) != sum(*node, &|ends| ends.1));
        let grain = wires.values().fold(0, |all, capacity| gcd(all, *capacity)).max(1);
        let ends: Vec<(u32, u32)> = wires.keys().copied().collect();
        let back = ends.iter().map(|(from, to)| ends.binary_search(&(*to, *from)).ok());
        Self {
            nranks: nranks as usize,
            nodes: topology.nodes().len(),
            back: back.collect(),
            ends,
            capacity: wires.values().map(|capacity| capacity / grain).collect(),
            grain: Fraction::new(grain, unit),
            roots,
            passes,
            uneven: uneven.map(|switch| topology.nodes()[switch].name.clone()),
        }
    }

    /// Whether roots have shares of their own choice, and trees are used in both directions.
    fn free(&self) -> bool {
        self.passes != Passes::Once
    }

    /// Lowers capacities, until every switch sends as much as it receives: where one does not, both directions of
    /// its wires get the lesser capacity. Trees have no use for the rest, because a switch copies nothing. Where trees
    /// are used in both directions, all wires get the lesser capacity.
    fn balance(&self, capacity: &mut [u128]) {
        loop {
            let mut surplus = vec![(0_u128, 0_u128); self.nodes];
            for ((from, to), capacity) in self.ends.iter().zip(&*capacity) {
                surplus[*from as usize].0 += capacity;
                surplus[*to as usize].1 += capacity;
            }
            let uneven = |node: u32| {
                let (out, into) = surplus[node as usize];
                self.free() || node as usize >= self.nranks && out != into
            };
            let mut changed = false;
            for (wire, &(from, to)) in self.ends.iter().enumerate() {
                if uneven(from) || uneven(to) {
                    let back = self.back[wire].map_or(0, |back| capacity[back]);
                    changed |= back < capacity[wire];
                    capacity[wire] = capacity[wire].min(back);
                }
            }
            if !changed {
                return;
            }
        }
    }

    /// Returns the network of these capacities times `times`, and the node that feeds each root by `feed`; the node behind
    /// it has no arcs yet.
    pub(super) fn network(
        &self,
        capacity: &[u128],
        times: u128,
        feed: &[u128],
    ) -> (Network, usize) {
        let mut network = Network::new(self.nodes + 2);
        for ((from, to), capacity) in self.ends.iter().zip(capacity) {
            network.arc(*from as usize, *to as usize, capacity * times);
        }
        for (root, feed) in self.roots.iter().zip(feed) {
            network.arc(self.nodes, *root, *feed);
        }
        (network, self.nodes)
    }

    /// Whether all links have two equal directions.
    pub(super) fn equal(&self) -> bool {
        let back = |back: &Option<usize>| back.map_or(0, |back| self.capacity[back]);
        self.capacity.iter().zip(&self.back).all(|(one, other)| *one == back(other))
    }

    /// Returns the sum of the two directions of each wire.
    pub(super) fn both_ways(&self, of: &[u64]) -> Vec<u64> {
        let back = |back: &Option<usize>| back.map_or(0, |back| of[back]);
        of.iter().zip(&self.back).map(|(one, other)| one + back(other)).collect()
    }

    /// Returns the greatest rate p / q at which each root can feed all ranks, at most `most`, in grains.
    fn rate(&self, capacity: &[u128], most: (u128, u128)) -> Result<(u128, u128), Problem> {
        let (mut p, mut q) = most;
        let count = self.roots.len() as u128;
        for rank in 0..self.nranks {
            loop {
                let (mut network, source) = self.network(capacity, q, &vec![p; self.roots.len()]);
                if network.max_flow(source, rank, count * p) == count * p {
                    break;
                }
                let side = network.reach(source);
                let inside = self.roots.iter().filter(|root| side[**root]).count() as u128;
                let crosses = |(from, to): (u32, u32)| side[from as usize] && !side[to as usize];
                let wires = self.ends.iter().zip(capacity);
                let leaves = wires.filter(|(ends, _)| crosses(**ends)).map(|(_, c)| c).sum();
                if leaves == 0 {
                    return Err(self.apart(rank));
                }
                let less = Fraction::new(leaves, inside);
                (p, q) = (less.num(), less.den());
            }
        }
        Ok((p, q))
    }

    pub(super) fn apart(&self, rank: usize) -> Problem {
        let title = match self.roots[..] {
            _ if self.free() => "no trees in both directions reach all ranks".to_owned(),
            [root] => format!("no trees from rank {root} reach rank {rank}"),
            _ => format!("no trees from all ranks reach rank {rank}"),
        };
        let problem = Problem::new(Code::Disconnected, title)
            .note("trees pass through ranks of the run, and switches that send what they receive");
        match &self.uneven {
            None => problem,
            Some(switch) => problem
                .note(format!("{switch} sends more or less than it receives"))
                .help("the optimum uses a part of its links: do not give the number of trees"),
        }
    }

    /// Returns the capacities for the most trees, and those for the trees up, where these are others; and the rate that no
    /// algorithm exceeds, in grains, where it is known. `most` is the greatest rate of a root by the bound. There are no
    /// capacities where data goes up and down at once over links whose directions differ, and their parts are not found.
    pub(super) fn optimum(
        &self,
        most: Fraction,
    ) -> Result<(Vec<Scaled>, Option<Fraction>), Problem> {
        let mut capacity = self.capacity.clone();
        self.balance(&mut capacity);
        let grains = most.num().checked_mul(self.grain.den());
        let most = grains.zip(most.den().checked_mul(self.grain.num()));
        let (p, q) = most.map(|(num, den)| Fraction::new(num, den)).map_or((0, 0), terms);
        if p == 0 {
            return Err(too_fine());
        }
        let whole = capacity == self.capacity;
        let found = match self.passes {
            _ if whole => None,
            Passes::Once => self.parts(Fraction::new(p, q)),
            Passes::Twice => None,
            Passes::AtOnce => self.parts(Fraction::new(p, 2 * q)),
        };
        if let Some(parts) = found {
            return Ok((parts, None));
        }
        if !whole && self.passes == Passes::AtOnce {
            return Ok((Vec::new(), None));
        }
        if self.free() {
            let (scaled, time) = self.best_shares(&capacity, (q, p))?;
            let proved = whole && self.passes == Passes::AtOnce;
            return Ok((vec![scaled], proved.then(|| Fraction::new(time.den(), time.num()))));
        }
        let (trees, per_grain) = self.rate(&capacity, (p, q))?;
        // Capacities times per_grain are whole trees; fewer where all have a common divisor.
        let common = capacity.iter().fold(trees, |all, capacity| gcd(all, *capacity));
        let room = capacity.iter().map(|c| (c / common).checked_mul(per_grain));
        let scaled = Scaled::new(room, &vec![trees / common; self.roots.len()])?;
        Ok((vec![scaled], whole.then(|| Fraction::new(trees, per_grain))))
    }

    /// Returns the capacities for `trees` trees a root, or of all roots with shares of their own choice, where each wire
    /// carries whole trees.
    pub(super) fn fixed(&self, trees: u32) -> Result<Scaled, Problem> {
        let trees = u128::from(trees);
        let enough = match self.passes {
            Passes::Once => trees * self.roots.len() as u128,
            Passes::Twice => trees,
            Passes::AtOnce => 2 * trees,
        };
        let mut speeds = self.capacity.clone();
        speeds.sort_unstable();
        speeds.dedup();
        // The time that a weight of 1 takes, in 1 / grains: every wire carries all trees.
        let mut best = Fraction::new(enough, 1);
        if self.carries(best, trees)?.is_none() {
            let apart = || self.rate(&self.balanced(best)?, (trees, 1)).map(|_| bug());
            return Err(if self.free() { self.apart(0) } else { apart().unwrap_or_else(|e| e) });
        }
        // The least time ends with a tree on a wire of some speed.
        for speed in speeds {
            let mut low = 0;
            let product = best.num().checked_mul(speed).ok_or_else(too_fine)?;
            let mut high = product.div_ceil(best.den());
            while high - low > 1 {
                let middle = low + (high - low) / 2;
                if self.carries(Fraction::new(middle, speed), trees)?.is_some() {
                    high = middle;
                } else {
                    low = middle;
                }
            }
            let found = Fraction::new(high, speed);
            if found < best && self.carries(found, trees)?.is_some() {
                best = found;
            }
        }
        let shares = self.carries(best, trees)?.ok_or_else(bug)?;
        self.turned(self.balanced(best)?, &shares)
    }

    /// Returns the whole trees that each wire carries within a time; where data goes up and down at once, those of half a
    /// wire, as near as whole trees can be, and exactly at switches.
    fn balanced(&self, time: Fraction) -> Result<Vec<u128>, Problem> {
        let whole = |c: &u128| Some(c.checked_mul(time.num())? / time.den());
        let whole: Option<Vec<_>> = self.capacity.iter().map(whole).collect();
        let whole = whole.filter(|all| all.iter().all(|c| *c < flow::UNLIMITED >> 32));
        let mut whole = whole.ok_or_else(too_fine)?;
        self.balance(&mut whole);
        if self.passes == Passes::AtOnce {
            for ((from, to), whole) in self.ends.iter().zip(&mut whole) {
                let between_ranks = (*from.max(to) as usize) < self.nranks;
                *whole = u128::midpoint(*whole, u128::from(between_ranks && from < to));
            }
        }
        Ok(whole)
    }

    /// Returns the trees of each root, if all can be sent within a time.
    fn carries(&self, time: Fraction, trees: u128) -> Result<Option<Vec<i128>>, Problem> {
        let room = self.balanced(time)?;
        if self.free() {
            return Ok(self.shares(&room, trees).ok());
        }
        let feed = vec![trees; self.roots.len()];
        let (mut network, source) = self.network(&room, 1, &feed);
        let all = feed.iter().sum();
        let fed = (0..self.nranks).all(|rank| network.max_flow(source, rank, all) == all);
        Ok(fed.then(|| vec![trees as i128; feed.len()]))
    }
}

fn terms(fraction: Fraction) -> (u128, u128) {
    (fraction.num(), fraction.den())
}

impl Scaled {
    /// Weights with room for sums, so that no later sum of them overflows.
    pub(super) fn new(
        room: impl Iterator<Item = Option<u128>>,
        trees: &[u128],
    ) -> Result<Self, Problem> {
        let whole = |c: Option<u128>| u64::try_from(c?).ok();
        let room: Option<Vec<u64>> = room.map(whole).collect();
        let trees: Option<Vec<u64>> = trees.iter().map(|c| whole(Some(*c))).collect();
        let (room, trees) = room.zip(trees).ok_or_else(too_fine)?;
        let all = room.iter().chain(&trees).map(|c| u128::from(*c)).sum::<u128>();
        if all > u128::from(u64::MAX >> 2) {
            return Err(too_fine());
        }
        Ok(Self { room, trees })
    }

    /// Makes as many trees of each.
    pub(super) fn multiply(&mut self, times: u64) -> Result<(), Problem> {
        let room = self.room.iter().map(|room| u128::from(*room).checked_mul(times.into()));
        let trees: Vec<u128> =
            self.trees.iter().map(|trees| u128::from(*trees) * u128::from(times)).collect();
        *self = Self::new(room, &trees)?;
        Ok(())
    }
}
