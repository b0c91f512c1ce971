//! Orbits: ranks that some symmetry of the whole graph maps to each other: twins, and ranks that a rotation
//! exchanges.
//!
//! A permutation of the nodes that maps ranks of the run to ranks of the run, and each link to an equal one, maps
//! cuts to cuts with equal bandwidths and equal numbers of ranks. So a flow or a distance from or to a rank equals
//! that from or to its image, and one rank of an orbit stands for all. Rotations are guessed, one digit of the rank
//! at a time: of a ring, of a torus in each dimension, of islands; a switch is mapped with its ranks. Each guess is
//! checked link by link before it counts. A symmetry that is missed only costs time.

use std::collections::HashMap;

use super::twins;
use crate::Fabric;
use roundelay_base::ids::RankId;
use roundelay_base::rational::Rat;

/// A link at a node: the other end, whether the link leads there, its capacity and its latency.
type Tie = (u32, bool, Rat, u64);

/// Returns the orbits of the first `nranks` ranks, each in order; in order of their first rank.
pub(super) fn classes(topology: &Fabric, nranks: u32) -> Vec<Vec<RankId>> {
    let ranks: Vec<RankId> = (0..nranks).map(RankId).collect();
    let mut first: Vec<u32> = (0..nranks).collect();
    for class in twins::classes(topology, &ranks, None) {
        for rank in &class {
            first[rank.index()] = class[0].0;
        }
    }
    let ties = ties(topology);
    for (stride, base) in digits(nranks) {
        let rotated = |rank: u32| {
            let digit = rank / stride % base;
            rank - digit * stride + (digit + 1) % base * stride
        };
        let new = (0..nranks).any(|r| root(&first, r) != root(&first, rotated(r)));
        if new && image(&ties, nranks, rotated).is_some_and(|image| keeps(&ties, &image)) {
            for rank in 0..nranks {
                let (a, b) = (root(&first, rank), root(&first, rotated(rank)));
                first[a.max(b) as usize] = a.min(b);
            }
        }
    }
    let mut orbits: Vec<Vec<RankId>> = vec![Vec::new(); nranks as usize];
    for rank in ranks {
        orbits[root(&first, rank.0) as usize].push(rank);
    }
    orbits.retain(|orbit| !orbit.is_empty());
    orbits
}

/// Returns every way to see the ranks as numbers with a digit of some base at some stride.
pub(super) fn digits(nranks: u32) -> impl Iterator<Item = (u32, u32)> {
    let divisors = |n: u32| (1..=n).filter(move |d| n.is_multiple_of(*d));
    divisors(nranks).flat_map(move |stride| {
        divisors(nranks / stride).filter(|base| *base > 1).map(move |base| (stride, base))
    })
}

fn root(first: &[u32], mut rank: u32) -> u32 {
    while first[rank as usize] != rank {
        rank = first[rank as usize];
    }
    rank
}

fn ties(topology: &Fabric) -> Vec<Vec<Tie>> {
    let mut ties: Vec<Vec<Tie>> = vec![Vec::new(); topology.nodes().len()];
    for link in topology.links() {
        ties[link.from.index()].push((link.to.0, true, link.capacity, link.latency));
        ties[link.to.index()].push((link.from.0, false, link.capacity, link.latency));
    }
    for row in &mut ties {
        row.sort_unstable();
    }
    ties
}

/// Returns the image of each node: of a node that is no rank of the run, a node with the images of its ranks.
fn image(ties: &[Vec<Tie>], nranks: u32, rotated: impl Fn(u32) -> u32) -> Option<Vec<u32>> {
    let to_ranks = |node: usize| ties[node].iter().filter(|tie| tie.0 < nranks);
    let others = nranks as usize..ties.len();
    let mut alike: HashMap<Vec<Tie>, Vec<u32>> = HashMap::new();
    for node in others.clone().rev() {
        alike.entry(to_ranks(node).copied().collect()).or_default().push(node as u32);
    }
    let mut image: Vec<u32> = (0..nranks).map(&rotated).collect();
    for node in others {
        let mut moved: Vec<Tie> =
            to_ranks(node).map(|tie| (rotated(tie.0), tie.1, tie.2, tie.3)).collect();
        moved.sort_unstable();
        image.push(alike.get_mut(&moved)?.pop()?);
    }
    Some(image)
}

/// Whether a permutation maps every link to an equal one.
fn keeps(ties: &[Vec<Tie>], image: &[u32]) -> bool {
    let moved = |tie: &Tie| (image[tie.0 as usize], tie.1, tie.2, tie.3);
    ties.iter().zip(image).all(|(row, to)| {
        let target = &ties[*to as usize];
        let mut row: Vec<Tie> = row.iter().map(moved).collect();
        row.sort_unstable();
        row == *target
    })
}
