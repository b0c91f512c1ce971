//! Capacities where directions differ: of links of which an AllReduce uses one direction more than the other, and of
//! links at switches that send more or less than they receive.
//!
//! A part of each link carries what goes down, and another part what goes up. Any parts will do that leave each switch as
//! much as it gets, and with which every set of ranks receives, from the roots in it and over the links into it, all trees.
//! That is a linear program with a constraint for each set. The sets that a solution violates are found by flows, until
//! there are none. The solution becomes whole numbers of trees, which flows prove; where numbers are too uneven, some
//! trees less than the solution has.

use super::rate::{Passes, Scaled, Wires};
use super::simplex::LinearProgram;
use roundelay_topology::bounds::Fraction;
use roundelay_topology::flow::{Network, gcd};

/// The most variables of a program: seconds.
const VARIABLES: usize = 1 << 10;
/// The most rounds in which violated sets are added.
const ROUNDS: usize = 1 << 8;
/// The price of a link as a part of that of trees that are lacking.
const PRICE: f64 = 1e-6;
/// The whole number of one in flows.
const ONE: f64 = (1_u64 << 40) as f64;
/// The distance from a whole number up to which a number is taken for it.
const NEAR: f64 = 1e-3;
/// The most units of a grain that are tried, and the units of the trees of a root where none of these fits.
const UNITS: u32 = 1 << 10;

/// The directions in which trees are used, with capacities for each: down from the roots, and up to them.
struct Sides<'w> {
    wires: &'w Wires,
    up: &'static [bool],
}

/// A solution: the rate of all trees or of a root, the capacity of each wire for each direction, and shares of ranks.
struct Solution {
    rate: f64,
    parts: Vec<Vec<f64>>,
    shares: Vec<f64>,
}

impl Wires {
    /// Returns capacities for trees down, and for trees up if data goes both ways at once, with which the rate of a root,
    /// or of all, is the most, up to `most`; `None` where there are too many links, or there is no rate.
    pub(super) fn parts(&self, most: Fraction) -> Option<Vec<Scaled>> {
        let up: &[bool] = if self.passes == Passes::AtOnce { &[false, true] } else { &[false] };
        let sides = Sides { wires: self, up };
        sides.whole(&sides.solve(most.value())?)
    }
}

impl Sides<'_> {
    fn variable(&self, side: usize, wire: usize) -> usize {
        1 + side * self.wires.ends.len() + wire
    }

    fn share(&self, rank: usize) -> usize {
        self.variable(self.up.len(), rank)
    }

    /// Whether the roots have shares of their own choice.
    fn free(&self) -> bool {
        self.wires.passes == Passes::AtOnce
    }

    /// The ends of a wire in the direction away from the roots.
    fn ends(&self, side: usize, wire: usize) -> (usize, usize) {
        let (from, to) = self.wires.ends[wire];
        let (from, to) = (from as usize, to as usize);
        if self.up[side] { (to, from) } else { (from, to) }
    }

    /// Returns the network of a direction away from the roots, and the node that feeds them.
    fn network(&self, side: usize, capacity: &[u128], feed: &[u128]) -> (Network, usize) {
        let source = self.wires.nodes;
        let mut network = Network::new(source + 1);
        for (wire, capacity) in capacity.iter().enumerate() {
            let (from, to) = self.ends(side, wire);
            network.arc(from, to, *capacity);
        }
        for (root, feed) in self.wires.roots.iter().zip(feed) {
            network.arc(source, *root, *feed);
        }
        (network, source)
    }

    fn solve(&self, most: f64) -> Option<Solution> {
        let Wires { ends, capacity, nodes, nranks, roots, .. } = self.wires;
        let wires = ends.len();
        let shares = if self.free() { *nranks } else { 0 };
        let variables = self.up.len() * wires + shares;
        if variables > VARIABLES {
            return None;
        }
        // Rates are counted in the most there may be; no wire carries more than all trees twice.
        let all = if self.free() { 1.0 } else { roots.len() as f64 };
        // All prices differ, so that no exchange of variables is taken back.
        let price = |at: usize| PRICE * (1.0 + (at * 7919 % 1009) as f64 / 1009.0);
        let prices: Vec<f64> = (0..variables).map(price).collect();
        let mut program = LinearProgram::new(1.0, &prices);
        let of = |side| move |wire| (side, wire);
        for (wire, capacity) in capacity.iter().enumerate() {
            let parts = (0..self.up.len()).map(|side| (self.variable(side, wire), 1.0));
            program.at_most(&parts.collect::<Vec<_>>(), (*capacity as f64 / most).min(2.0 * all));
        }
        for (side, switch) in (0..self.up.len()).flat_map(|side| (*nranks..*nodes).map(of(side))) {
            let passes = (0..wires).filter_map(|wire| {
                let (from, to) = self.ends(side, wire);
                let sign = f64::from(i8::from(to == switch) - i8::from(from == switch));
                (sign != 0.0).then(|| (self.variable(side, wire), sign))
            });
            let passes: Vec<_> = passes.collect();
            let back: Vec<_> = passes.iter().map(|(wire, sign)| (*wire, -sign)).collect();
            program.at_most(&passes, 0.0);
            program.at_most(&back, 0.0);
        }
        if self.free() {
            let all = (0..*nranks).map(|rank| (self.share(rank), 1.0)).chain([(0, -1.0)]);
            program.at_most(&all.collect::<Vec<_>>(), 0.0);
        }
        for _ in 0..ROUNDS {
            if !program.solve() {
                return None;
            }
            let rate = program.value(0);
            let part = |(side, wire)| program.value(self.variable(side, wire));
            let parts = (0..self.up.len()).map(|side| (0..wires).map(of(side)).map(part).collect());
            let parts: Vec<Vec<f64>> = parts.collect();
            let shares: Vec<f64> = if self.free() {
                (0..*nranks).map(|rank| program.value(self.share(rank))).collect()
            } else {
                vec![rate; roots.len()]
            };
            let needed = rate * all;
            let mut violated: Vec<(usize, Vec<bool>)> = Vec::new();
            for (side, parts) in parts.iter().enumerate() {
                let whole = |of: &f64| (of * ONE) as u128;
                let capacity: Vec<u128> = parts.iter().map(whole).collect();
                let feed: Vec<u128> = shares.iter().map(whole).collect();
                let (mut network, source) = self.network(side, &capacity, &feed);
                for rank in 0..*nranks {
                    let flow = network.max_flow(source, rank, whole(&needed));
                    if (flow as f64) < (needed - 1e-7) * ONE {
                        let set = network.reach(source).into_iter().map(|reached| !reached);
                        violated.push((side, set.collect()));
                    }
                }
            }
            if violated.is_empty() {
                let scaled = |of: Vec<f64>| of.into_iter().map(|of| of * most).collect();
                let parts = parts.into_iter().map(scaled).collect();
                return Some(Solution { rate: rate * most, parts, shares: scaled(shares) });
            }
            violated.sort_unstable();
            violated.dedup();
            for (side, set) in violated {
                let into = (0..wires).filter(|wire| {
                    let (from, to) = self.ends(side, *wire);
                    set[to] && !set[from]
                });
                let mut of: Vec<_> = into.map(|wire| (self.variable(side, wire), -1.0)).collect();
                let inside = roots.iter().filter(|root| set[**root]);
                if self.free() {
                    of.extend(inside.map(|root| (self.share(*root), -1.0)));
                    of.push((0, 1.0));
                } else {
                    of.push((0, (roots.len() - inside.count()) as f64));
                }
                program.at_most(&of, 0.0);
            }
        }
        None
    }

    /// Returns the solution in whole units, of which flows prove that they carry all trees.
    fn whole(&self, solution: &Solution) -> Option<Vec<Scaled>> {
        let all = solution.parts.iter().flatten().chain(&solution.shares).chain([&solution.rate]);
        let fits =
            |units: &f64| all.clone().all(|of| (of * units - (of * units).round()).abs() < NEAR);
        let units =
            (1..UNITS).map(f64::from).find(fits).unwrap_or(f64::from(UNITS) / solution.rate);
        let whole = |of: f64| (of * units + NEAR).floor() as u128;
        let rooms: Vec<Vec<u128>> =
            (0..self.up.len()).map(|side| self.paths(side, &solution.parts[side], whole)).collect();
        let less = (0..10).map(|less| f64::from(UNITS - (1 << less) / 2) / f64::from(UNITS));
        let found = less.map(|part| solution.shares.iter().map(|of| whole(of * part)).collect());
        let trees = found.into_iter().find(|trees: &Vec<u128>| {
            let all: u128 = trees.iter().sum();
            let fed = |(side, room): (usize, &Vec<u128>)| {
                let (mut network, source) = self.network(side, room, trees);
                (0..self.wires.nranks).all(|rank| network.max_flow(source, rank, all) == all)
            };
            all > 0 && rooms.iter().enumerate().all(fed)
        })?;
        let common = rooms.iter().flatten().chain(&trees).fold(0, |all, of| gcd(all, *of));
        let lowest = |of: &[u128]| of.iter().map(|of| of.checked_div(common)).collect::<Vec<_>>();
        let trees: Vec<u128> = lowest(&trees).into_iter().collect::<Option<_>>()?;
        rooms.iter().map(|room| Scaled::new(lowest(room).into_iter(), &trees).ok()).collect()
    }

    /// Returns the whole units of each wire: those of ways from rank to rank and of circles among switches, so that
    /// switches send what they receive.
    fn paths(&self, side: usize, parts: &[f64], whole: impl Fn(f64) -> u128) -> Vec<u128> {
        let mut room = vec![0; parts.len()];
        let mut left = parts.to_vec();
        let mut take = |left: &mut [f64], way: &[usize], some: bool| {
            let least = way.iter().map(|wire| left[*wire]).fold(f64::INFINITY, f64::min);
            for wire in way {
                left[*wire] -= least;
                room[*wire] += if some { whole(least) } else { 0 };
            }
        };
        let most = |left: &[f64], from: usize| {
            let out = (0..left.len()).filter(|wire| self.ends(side, *wire).0 == from);
            out.filter(|wire| whole(left[*wire]) > 0).max_by(|a, b| left[*a].total_cmp(&left[*b]))
        };
        for rank in 0..self.wires.nranks {
            while let Some(first) = most(&left, rank) {
                let mut way = vec![first];
                let mut at = self.ends(side, first).1;
                while at >= self.wires.nranks {
                    if let Some(circle) = way.iter().position(|wire| self.ends(side, *wire).0 == at)
                    {
                        take(&mut left, &way.split_off(circle), true);
                    }
                    let Some(wire) = most(&left, at) else { break };
                    way.push(wire);
                    at = self.ends(side, wire).1;
                }
                take(&mut left, &way, at < self.wires.nranks);
            }
        }
        room
    }
}
