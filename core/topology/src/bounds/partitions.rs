//! The partition bound of AllReduce.
//!
//! Cut the ranks into k >= 2 groups. Every item has to be combined with its counterparts of all groups and to return
//! to all groups: at least k-1 messages between groups until the first group has the whole, then one more to each
//! other group. So T >= 2(k-1) S / (sum of the bandwidths that can leave the groups), the same for the bandwidths
//! that can enter, and T >= S / (bandwidth that can leave, or enter, any one group). With reduction inside switches
//! none of this holds.

use std::collections::BTreeMap;

use super::cuts::Graph;
use super::fraction::Fraction;
use super::{orbits, twins};
use roundelay_base::ids::RankId;
use roundelay_base::rational::Rat;

/// The most ranks up to which every partition is tried: there are 115 975 of ten.
pub(super) const ALL: usize = 10;

/// The bound, the partition that sets it, and whether all partitions were tried.
pub(super) struct Partition {
    pub(super) bound: Fraction,
    pub(super) groups: Vec<Vec<RankId>>,
    pub(super) exact: bool,
}

pub(super) fn all_reduce(graph: &Graph<'_>) -> Partition {
    if graph.ranks.len() <= ALL { every(graph) } else { likely(graph) }
}

/// Returns the bandwidth that can leave each set of ranks, by bit mask. The bandwidth that can enter a set equals
/// that of its complement.
pub(super) fn kappas(graph: &Graph<'_>) -> Vec<u128> {
    let n = graph.ranks.len();
    (0..1_usize << n)
        .map(|mask| {
            let group: Vec<_> = members(mask).collect();
            if group.is_empty() || group.len() == n { 0 } else { graph.kappa(&group) }
        })
        .collect()
}

pub(super) fn members(mask: usize) -> impl Iterator<Item = RankId> {
    (0..usize::BITS).filter(move |bit| mask >> bit & 1 == 1).map(RankId)
}

struct Search<'g> {
    kappa: &'g [u128],
    unit: u128,
    full: usize,
    best: Fraction,
    best_groups: Vec<usize>,
    groups: Vec<usize>,
}

fn every(graph: &Graph<'_>) -> Partition {
    let kappa = kappas(graph);
    let full = kappa.len() - 1;
    let mut search = Search {
        kappa: &kappa,
        unit: graph.unit,
        full,
        best: Fraction::ZERO,
        best_groups: Vec::new(),
        groups: Vec::new(),
    };
    search.extend(full, 0, 0);
    let groups = search.best_groups.iter().map(|mask| members(*mask).collect()).collect();
    Partition { bound: search.best, groups, exact: true }
}

impl Search<'_> {
    /// Puts the lowest remaining rank into every group that it could be in.
    fn extend(&mut self, left: usize, out: u128, into: u128) {
        if left == 0 {
            let k = self.groups.len() as u128;
            if k > 1 {
                let bound = total(k, self.unit, out.min(into));
                self.note(bound);
            }
            return;
        }
        let lowest = left & left.wrapping_neg();
        let rest = left ^ lowest;
        let mut others = rest;
        loop {
            let group = lowest | others;
            if group != self.full {
                let (leaves, enters) = (self.kappa[group], self.kappa[self.full ^ group]);
                self.groups.push(group);
                self.extend(rest & !others, out + leaves, into + enters);
                self.groups.pop();
                if self.groups.is_empty() {
                    // The group against all other ranks together.
                    let alone = Fraction::new(self.unit, leaves.min(enters));
                    self.groups.extend([group, self.full ^ group]);
                    self.note(alone);
                    self.groups.clear();
                }
            }
            if others == 0 {
                return;
            }
            others = (others - 1) & rest;
        }
    }

    /// Of equal bounds the partition with fewer groups is kept, as it tells more.
    fn note(&mut self, bound: Fraction) {
        if bound > self.best || bound == self.best && self.groups.len() < self.best_groups.len() {
            (self.best, self.best_groups) = (bound, self.groups.clone());
        }
    }
}

fn total(k: u128, unit: u128, kappa: u128) -> Fraction {
    Fraction::new(2 * (k - 1) * unit, kappa)
}

/// Tries partitions that are likely to bind: single ranks, groups of the topology, sets connected by links of at
/// least some capacity, classes of equal ranks, halves; and each of these groups against the rest. Each gives a valid
/// bound.
fn likely(graph: &Graph<'_>) -> Partition {
    let mut known: BTreeMap<Vec<RankId>, u128> = BTreeMap::new();
    let classes = twins::classes(graph.topology, &graph.ranks, None);
    let mut orbit_of = vec![0; graph.ranks.len()];
    let orbits = orbits::classes(graph.topology, graph.ranks.len() as u32);
    for (i, orbit) in orbits.iter().enumerate() {
        for rank in orbit {
            orbit_of[rank.index()] = i;
        }
    }
    let mut single: Vec<Option<u128>> = vec![None; orbits.len()];
    let mut kappa = |group: &[RankId]| match group {
        [rank] => *single[orbit_of[rank.index()]].get_or_insert_with(|| graph.kappa(group)),
        _ => *known.entry(group.to_vec()).or_insert_with(|| graph.kappa(group)),
    };
    let turned = graph.topology.reverse();
    let back = Graph::new(&turned, graph.ranks.len() as u32);
    let mut back_single: Vec<Option<u128>> = vec![None; orbits.len()];
    let mut back_known: BTreeMap<Vec<RankId>, u128> = BTreeMap::new();
    let mut enters = |group: &[RankId]| match group {
        [rank] => *back_single[orbit_of[rank.index()]].get_or_insert_with(|| back.kappa(group)),
        _ => *back_known.entry(group.to_vec()).or_insert_with(|| back.kappa(group)),
    };
    let mut best = Partition { bound: Fraction::ZERO, groups: Vec::new(), exact: false };
    for groups in candidates(graph, &classes) {
        let (mut out, mut into) = (0, 0);
        for group in &groups {
            let (leaves, comes) = (kappa(group), enters(group));
            out += leaves;
            into += comes;
            let alone = Fraction::new(graph.unit, leaves.min(comes));
            if alone > best.bound {
                let rest = graph.ranks.iter().copied().filter(|r| !group.contains(r)).collect();
                best = Partition { bound: alone, groups: vec![group.clone(), rest], exact: false };
            }
        }
        let bound = total(groups.len() as u128, graph.unit, out.min(into));
        if bound > best.bound || bound == best.bound && groups.len() < best.groups.len() {
            best = Partition { bound, groups, exact: false };
        }
    }
    best
}

/// Returns the partitions that [`likely`] tries, each once.
pub(super) fn candidates(graph: &Graph<'_>, classes: &[Vec<RankId>]) -> Vec<Vec<Vec<RankId>>> {
    let ranks = &graph.ranks;
    let mut all: Vec<Vec<Vec<RankId>>> = vec![ranks.iter().map(|r| vec![*r]).collect()];
    let group = |r: &RankId| graph.topology.nodes()[r.index()].group;
    all.push(by_key(ranks, |r| group(r).map_or((1, r.0), |g| (0, g))));
    all.push(classes.to_vec());
    let mut capacities: Vec<Rat> = graph.topology.links().iter().map(|l| l.capacity).collect();
    capacities.sort_unstable();
    capacities.dedup();
    for least in capacities.into_iter().rev().take(64) {
        let part = graph.hang_together(least);
        all.push(by_key(ranks, |r| part[r.index()]));
    }
    for (stride, base) in orbits::digits(ranks.len() as u32) {
        all.push(by_key(ranks, |r| r.0 / stride % base >= base / 2));
    }
    all.retain(|groups| groups.len() > 1 && groups.iter().all(|g| !g.is_empty()));
    all.sort();
    all.dedup();
    all
}

fn by_key<K: Ord>(ranks: &[RankId], key: impl Fn(&RankId) -> K) -> Vec<Vec<RankId>> {
    let mut groups: BTreeMap<K, Vec<RankId>> = BTreeMap::new();
    for rank in ranks {
        groups.entry(key(rank)).or_default().push(*rank);
    }
    groups.into_values().collect()
}

impl Graph<'_> {
    /// Returns the component of each node, where components are connected by links of at least `least`.
    fn hang_together(&self, least: Rat) -> Vec<u32> {
        let mut part: Vec<u32> = (0..self.topology.nodes().len() as u32).collect();
        fn root(part: &mut [u32], mut node: u32) -> u32 {
            while part[node as usize] != node {
                part[node as usize] = part[part[node as usize] as usize];
                node = part[node as usize];
            }
            node
        }
        for link in self.topology.links().iter().filter(|l| l.capacity >= least) {
            let (a, b) = (root(&mut part, link.from.0), root(&mut part, link.to.0));
            part[a.max(b) as usize] = a.min(b);
        }
        (0..part.len() as u32).map(|node| root(&mut part, node)).collect()
    }
}
