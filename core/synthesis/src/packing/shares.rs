//! The shares of the buffer that the roots of an AllReduce take, so that its trees are as fast as any.
//!
//! Each tree reduces to its root and broadcasts from it, and a link has the same capacity in both directions. So half of
//! each link carries what goes down, and the other half what goes up the same trees, be it one after the other or at
//! once. All trees reach every rank if and only if every set of ranks receives, from the roots in it and over the halves
//! of the links into it, all trees (Edmonds). A root's share may be lowered as long as that holds of the sets around it,
//! that is by the flow that reaches it beyond all trees. As lowered shares never become possible again, shares that can
//! be lowered no further have the least sum (Frank). Where the sum is too large, sets that are exhausted and do not overlap
//! prove that more time is needed; that they do not reach the sum for the time that they ask is Newton's method again.
//!
//! Where data goes up and down at once, the halves need not be equal: a share below zero means that links carry less
//! towards the rank than half, and more away from it. Then the sets that are exhausted hold all ranks, and the time that
//! they ask is the bound of partitions, which holds for every AllReduce: this is the theorem of Tutte and Nash-Williams on
//! spanning trees that share no edge, with switches, for switches carry as much towards a set as they may.

use super::rate::{Passes, Scaled, Wires};
use super::{Problem, bug, too_fine};
use roundelay_topology::bounds::Fraction;
use roundelay_topology::flow::{Network, gcd};

/// Shares that are too large together: sets of ranks that do not overlap, and the weight that their links carry in.
pub(super) struct Short {
    sets: u128,
    carried: u128,
}

impl Wires {
    /// Returns the capacities and shares of all ranks for the least time, and the time of one way, which is at least
    /// p / q.
    pub(super) fn best_shares(
        &self,
        capacity: &[u128],
        (mut p, mut q): (u128, u128),
    ) -> Result<(Scaled, Fraction), Problem> {
        loop {
            let common = capacity.iter().fold(q, |all, capacity| gcd(all, *capacity));
            let room = capacity.iter().map(|c| (c / common).checked_mul(p));
            let room: Option<Vec<u128>> = room.collect();
            let all = q / common;
            let fits = |of: &u128| *of < 1 << 64;
            let room =
                room.filter(|room| room.iter().chain([&all]).all(fits)).ok_or_else(too_fine)?;
            match self.shares(&room, all) {
                Ok(shares) => return Ok((self.turned(room, &shares)?, Fraction::new(p, q))),
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

    /// Returns a share for each rank, `trees` together, all as even as the wires allow; below zero only where data goes
    /// up and down at once, and only if it must.
    pub(super) fn shares(&self, room: &[u128], trees: u128) -> Result<Vec<i128>, Short> {
        let all = trees as i128;
        let mut shares = vec![all; self.nranks];
        let mut over = all * (self.nranks as i128 - 1);
        let least = if self.passes == Passes::AtOnce { i128::MIN >> 1 } else { 0 };
        for floor in [0, least] {
            let mut open: Vec<usize> = (0..self.nranks).collect();
            while over > 0 && !open.is_empty() {
                let each = over.unsigned_abs().div_ceil(open.len() as u128) as i128;
                open.retain(|&rank| {
                    let wanted = each.min(shares[rank] - floor).min(over);
                    let (mut network, source, below) = self.fed(room, &shares, rank);
                    let needed = trees + below;
                    let flow = network.max_flow(source, rank, needed + wanted.unsigned_abs());
                    let less = (flow - needed) as i128;
                    shares[rank] -= less;
                    over -= less;
                    less == wanted && shares[rank] > floor
                });
            }
        }
        if over == 0 { Ok(shares) } else { Err(self.short(room, trees, &shares)) }
    }

    /// Returns the network of these shares for a flow to a rank, the node that feeds it, and what flows beside all
    /// trees: a share below zero flows to the rank by itself, where its rank is on the side of the source.
    fn fed(&self, room: &[u128], shares: &[i128], rank: usize) -> (Network, usize, u128) {
        let feed: Vec<u128> = shares.iter().map(|share| (*share).max(0).unsigned_abs()).collect();
        let (mut network, source) = self.network(room, 1, &feed);
        let mut below = 0;
        for (other, share) in shares.iter().enumerate().filter(|(_, share)| **share < 0) {
            below += share.unsigned_abs();
            if other != rank {
                network.arc(other, rank, share.unsigned_abs());
            }
        }
        (network, source, below)
    }

    /// Returns the proof that shares which cannot be lowered are too large.
    fn short(&self, room: &[u128], trees: u128, shares: &[i128]) -> Short {
        // Exhausted sets that overlap are exhausted together.
        let mut sets: Vec<Vec<bool>> = Vec::new();
        let exhausted = |rank: &usize| self.passes == Passes::AtOnce || shares[*rank] > 0;
        for rank in (0..self.nranks).filter(exhausted) {
            let (mut network, source, _) = self.fed(room, shares, rank);
            network.max_flow(source, rank, u128::MAX);
            let reached = network.reach(source);
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
        let inside: i128 = shares.iter().sum();
        let sets = sets.len() as u128;
        Short { sets, carried: trees * sets - inside.unsigned_abs() }
    }

    /// Turns capacity towards ranks whose share is below zero away from them, up to ranks that then need less of a share;
    /// so no share is below zero.
    pub(super) fn turned(&self, mut room: Vec<u128>, shares: &[i128]) -> Result<Scaled, Problem> {
        let mut shares = shares.to_vec();
        if shares.iter().any(|share| *share < 0) {
            // A wire carries more by what the opposite one has.
            let opposite: Vec<u128> =
                self.back.iter().map(|back| back.map_or(0, |b| room[b])).collect();
            let (mut network, source) = self.network(&opposite, 1, &[]);
            let sink = source + 1;
            let ends = shares.iter().enumerate().map(|(rank, share)| match share {
                0.. => network.arc(rank, sink, share.unsigned_abs()),
                _ => network.arc(source, rank, share.unsigned_abs()),
            });
            let ends: Vec<usize> = ends.collect();
            network.max_flow(source, sink, u128::MAX);
            for (share, arc) in shares.iter_mut().zip(ends) {
                *share -= share.signum() * network.flow(arc) as i128;
            }
            for (wire, back) in self.back.iter().enumerate() {
                let Some(back) = *back else { continue };
                let turned = network.flow(2 * wire);
                room[wire] += turned;
                room[back] -= turned;
            }
        }
        let trees: Option<Vec<u128>> = shares.into_iter().map(|s| u128::try_from(s).ok()).collect();
        Scaled::new(room.into_iter().map(Some), &trees.ok_or_else(bug)?)
    }
}
