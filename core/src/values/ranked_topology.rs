//! Topologies as values of a program: the links between the ranks of a run.

use std::sync::Arc;

use super::arith::Fault;
use crate::ids::RankId;
use crate::topology::Topology;

/// A topology with the number of ranks of the run, which are the first of its ranks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RankedTopology {
    /// The topology, which may have more ranks than run.
    pub topology: Arc<Topology>,
    /// The number of ranks that run.
    pub nranks: u32,
}

impl RankedTopology {
    fn rank(&self, rank: i64) -> Result<RankId, Fault> {
        let nranks = self.nranks;
        let known = u32::try_from(rank).ok().filter(|r| *r < nranks);
        known.map(RankId).ok_or(Fault::Rank { rank, nranks })
    }

    /// Whether a link joins two ranks; a fault where one of them does not run.
    pub(crate) fn linked(&self, a: i64, b: i64) -> Result<bool, Fault> {
        Ok(self.topology.are_linked(self.rank(a)?, self.rank(b)?))
    }

    /// Returns the ranks that a link joins to `rank`; a fault where `rank` does not run.
    pub(crate) fn neighbors(&self, rank: i64) -> Result<Vec<i64>, Fault> {
        Ok(self.members(self.topology.neighbors(self.rank(rank)?)))
    }

    /// Returns the ranks that have a link to both `a` and `b`; a fault where one of these does not run.
    pub(crate) fn relays(&self, a: i64, b: i64) -> Result<Vec<i64>, Fault> {
        Ok(self.members(self.topology.relays(self.rank(a)?, self.rank(b)?)))
    }

    /// Returns the ranks of the pairs without a link, pair by pair.
    pub(crate) fn missing(&self) -> Vec<i64> {
        let pairs = self.topology.missing(self.nranks).into_iter();
        pairs.flat_map(|(a, b)| [a, b]).map(|rank| rank.0.into()).collect()
    }

    /// Returns the parts of the data that ring, relays and hubs take of it, as the topology has them.
    pub(crate) fn shares(&self) -> Vec<i64> {
        self.topology.shares(self.nranks).into_iter().map(i64::from).collect()
    }

    /// Returns the ranks with a link to every other rank.
    pub(crate) fn hubs(&self) -> Vec<i64> {
        self.members(self.topology.hubs(self.nranks))
    }

    /// Returns the ranks that run, as numbers.
    pub(crate) fn members(&self, ranks: Vec<RankId>) -> Vec<i64> {
        ranks.into_iter().filter(|r| r.0 < self.nranks).map(|r| i64::from(r.0)).collect()
    }
}
