//! The share of the data that each rank should own, where all links work at once.

use std::collections::HashSet;

use super::{Fabric, flow, paths};
use roundelay_base::ids::RankId;

/// The greatest share, where bandwidths have no small common measure.
const MOST: u128 = 1000;

impl Fabric {
    /// Returns the shares of the first `nranks` ranks: in proportion to the bandwidth of the links that leave each of
    /// them to the others, or to switches, in lowest terms; with links of several kinds, only links on paths to other
    /// ranks count. Where these shares do not fit in 1000, they are rounded to that.
    ///
    /// An AllReduce in which each rank fetches its own share from all neighbors and sends out the sum then loads the
    /// links of a mesh alike, if the traffic of a cut link is spread over all ranks that are linked to both its ends:
    /// a rank that lost one of n - 1 links owns (n - 2) / (n - 1) of a whole rank's share, and its links carry the
    /// rest for other ranks. The time is that of the bound where no rank lost two links, and a few percent more where
    /// some did.
    pub fn shares(&self, nranks: u32) -> Vec<u32> {
        let (_, capacities) = flow::whole(self);
        let mut leaving = vec![0_u128; nranks.min(self.nranks()) as usize];
        let taken = self.has_kinds().then(|| {
            let paths = self.ranks().flat_map(|rank| paths::to_ranks(self, rank.into()));
            paths.filter_map(|path| path.links.first().copied()).collect::<HashSet<u32>>()
        });
        for ((index, link), capacity) in (0..).zip(self.links()).zip(capacities) {
            if let Some(sum) = leaving.get_mut(link.from.index())
                && (link.to.0 < nranks || !self.is_rank(link.to))
                && taken.as_ref().is_none_or(|taken| taken.contains(&index))
            {
                *sum += capacity;
            }
        }
        let most = leaving.iter().copied().max().unwrap_or(0);
        let common = leaving.iter().copied().fold(0, flow::gcd);
        if most == 0 {
            return vec![1; leaving.len()];
        }
        let share = |sum: u128| match most / common {
            0..=MOST => sum / common,
            _ => (sum as f64 / most as f64 * MOST as f64).round() as u128,
        };
        leaving.into_iter().map(|sum| share(sum).max(1) as u32).collect()
    }

    /// The pairs of the first `nranks` ranks of which the first is not linked to the second, in order.
    pub fn missing(&self, nranks: u32) -> Vec<(RankId, RankId)> {
        let ranks = || (0..nranks.min(self.nranks())).map(RankId);
        let of = |a: RankId| {
            let mut linked = self.neighbors(a).into_iter().peekable();
            let others = ranks().filter(move |b| *b != a);
            others.filter(move |b| linked.next_if_eq(b).is_none()).map(move |b| (a, b))
        };
        ranks().flat_map(of).collect()
    }

    /// Returns those of the first `nranks` ranks that are linked to all the others, both ways, in order.
    pub fn hubs(&self, nranks: u32) -> Vec<RankId> {
        let ranks = || (0..nranks.min(self.nranks())).map(RankId);
        let both = |a, b| self.are_linked(a, b) && self.are_linked(b, a);
        ranks().filter(|hub| ranks().all(|other| other == *hub || both(*hub, other))).collect()
    }
}
