//! The shares of the buffer that the roots of an AllReduce take, so that its trees are as fast as any.
//!
//! Each tree reduces to its root and then broadcasts from it, and a link has the same capacity in both directions; so
//! both phases take the same time. In each, all trees reach every rank if and only if every set of ranks receives, from
//! the roots in it and over the links into it, all trees (Edmonds). A root's share may be lowered as long as that holds
//! of the sets around it, that is by the flow that reaches it beyond all trees. As lowered shares never become
//! possible again, shares that can be lowered no further have the least sum (Frank). Where the sum is too large, sets
//! that are exhausted and do not overlap prove that more time is needed; that they do not reach the sum for the time
//! that they ask is Newton's method again.

use super::rate::Wires;
use super::{Problem, too_fine};
use crate::topology::flow::gcd;

/// Shares that are too large together: sets of ranks that do not overlap, and the weight that their links carry in.
pub(super) struct Short {
    sets: u128,
    carried: u128,
}

impl Wires {
    /// Returns the room of each wire and the shares of all ranks for the least time, which is at least p / q.
    pub(super) fn best_shares(
        &self,
        capacity: &[u128],
        (mut p, mut q): (u128, u128),
    ) -> Result<(Vec<u128>, Vec<u128>), Problem> {
        loop {
            let common = capacity.iter().fold(q, |all, capacity| gcd(all, *capacity));
            let room = capacity.iter().map(|c| (c / common).checked_mul(p));
            let room: Option<Vec<u128>> = room.collect();
            let all = q / common;
            let fits = |of: &u128| *of < 1 << 64;
            let room =
                room.filter(|room| room.iter().chain([&all]).all(fits)).ok_or_else(too_fine)?;
            match self.shares(&room, all) {
                Ok(shares) => return Ok((room, shares)),
                Err(Short { carried: 0, .. }) => return Err(self.apart(0)),
                Err(Short { sets, carried }) => {
                    // The capacity of the links into the sets is common * carried / p.
                    let more = (sets - 1).checked_mul(p).ok_or_else(too_fine)?;
                    let all = carried.checked_mul(common).ok_or_else(too_fine)?;
                    let common = gcd(more, all);
                    (p, q) = (more / common, all / common);
                }
            }
        }
    }

    /// Returns a share for each rank, `trees` together, all as even as the wires allow.
    pub(super) fn shares(&self, room: &[u128], trees: u128) -> Result<Vec<u128>, Short> {
        let mut shares = vec![trees; self.nranks];
        let mut over = trees * (self.nranks as u128 - 1);
        let mut open: Vec<usize> = (0..self.nranks).collect();
        while over > 0 && !open.is_empty() {
            let each = over.div_ceil(open.len() as u128);
            open.retain(|&rank| {
                let wanted = each.min(shares[rank]).min(over);
                let (mut network, source) = self.network(room, 1, &shares);
                let less = network.max_flow(source, rank, trees + wanted) - trees;
                shares[rank] -= less;
                over -= less;
                less == wanted && shares[rank] > 0
            });
        }
        if over == 0 { Ok(shares) } else { Err(self.short(room, trees, &shares)) }
    }

    /// Returns the proof that shares which cannot be lowered are too large.
    fn short(&self, room: &[u128], trees: u128, shares: &[u128]) -> Short {
        // Exhausted sets that overlap are exhausted together.
        let mut sets: Vec<Vec<bool>> = Vec::new();
        for rank in (0..self.nranks).filter(|rank| shares[*rank] > 0) {
            let (mut network, source) = self.network(room, 1, shares);
            network.max_flow(source, rank, u128::MAX);
            let reached = network.reached(source);
            let mut set: Vec<bool> = (0..self.nranks).map(|rank| !reached[rank]).collect();
            sets.retain(|other| {
                let overlaps = set.iter().zip(other).any(|(a, b)| *a && *b);
                if overlaps {
                    set.iter_mut().zip(other).for_each(|(a, b)| *a |= b);
                }
                !overlaps
            });
            sets.push(set);
        }
        let inside: u128 = shares.iter().sum();
        let sets = sets.len() as u128;
        Short { sets, carried: trees * sets - inside }
    }
}
