//! The ranks that each rank may send to: one bit for every ordered pair, which is all that the searches use.
//!
//! Pairs are separate from the topology, because rings are searched in subsets of it: pairs joined by a good path
//! only, or pairs that earlier rings left over.

use crate::{Fabric, LinkKind, NodeId};
use roundelay_base::ids::RankId;

/// The ordered pairs that may be used; none from a rank to itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pairs {
    nranks: u32,
    /// The number of words of a row.
    words: usize,
    rows: Vec<u64>,
}

impl Pairs {
    /// Pairs of `nranks` ranks, without any.
    pub fn none(nranks: u32) -> Self {
        let words = (nranks as usize).div_ceil(64);
        Self { nranks, words, rows: vec![0; words * nranks as usize] }
    }

    /// The pairs for which `allowed` holds.
    pub fn all(nranks: u32, allowed: impl Fn(RankId, RankId) -> bool) -> Self {
        let mut pairs = Self::none(nranks);
        for a in (0..nranks).map(RankId) {
            (0..nranks).map(RankId).filter(|b| allowed(a, *b)).for_each(|b| pairs.allow(a, b));
        }
        pairs
    }

    /// The pairs of a list.
    pub fn from_list(nranks: u32, list: &[(u32, u32)]) -> Self {
        let mut pairs = Self::none(nranks);
        for &(a, b) in list {
            pairs.allow(RankId(a), RankId(b));
        }
        pairs
    }

    /// The pairs among the first `nranks` ranks that are joined by a link, or through switches alone. A rank that the
    /// topology lacks has none.
    pub fn direct(topology: &Fabric, nranks: u32) -> Self {
        let within = topology.nranks();
        Self::all(nranks, |a, b| a.0 < within && topology.are_linked(a, b))
    }

    /// The pairs among the first `nranks` ranks that are joined by links of this kind or better, directly or through
    /// switches. A rank that the topology lacks has none.
    pub fn by_kind(topology: &Fabric, nranks: u32, worst: LinkKind) -> Self {
        let mut pairs = Self::none(nranks);
        for rank in topology.ranks().take(nranks as usize) {
            let mut seen = vec![false; topology.nodes().len()];
            let mut open = vec![NodeId::from(rank)];
            while let Some(node) = open.pop() {
                for link in topology.out(node).iter().filter(|l| l.kind <= worst) {
                    if topology.is_rank(link.to) {
                        pairs.allow(rank, RankId(link.to.0));
                    } else if !std::mem::replace(&mut seen[link.to.index()], true) {
                        open.push(link.to);
                    }
                }
            }
        }
        pairs
    }

    /// Number of ranks.
    pub fn nranks(&self) -> u32 {
        self.nranks
    }

    /// The ranks.
    pub fn ranks(&self) -> impl DoubleEndedIterator<Item = RankId> + use<> {
        (0..self.nranks).map(RankId)
    }

    /// Whether `a` may send to `b`.
    pub fn has(&self, a: RankId, b: RankId) -> bool {
        a.0 < self.nranks
            && b.0 < self.nranks
            && self.row(a)[b.index() / 64] >> (b.index() % 64) & 1 == 1
    }

    /// Lets `a` send to `b`; ignores a pair of one rank, or one out of range.
    pub fn allow(&mut self, a: RankId, b: RankId) {
        if a != b && a.0 < self.nranks && b.0 < self.nranks {
            self.rows[a.index() * self.words + b.index() / 64] |= 1 << (b.index() % 64);
        }
    }

    /// Removes a pair.
    pub fn forbid(&mut self, a: RankId, b: RankId) {
        if self.has(a, b) {
            self.rows[a.index() * self.words + b.index() / 64] &= !(1 << (b.index() % 64));
        }
    }

    /// The ranks to which `rank` may send, as bits.
    pub(super) fn row(&self, rank: RankId) -> &[u64] {
        &self.rows[rank.index() * self.words..][..self.words]
    }

    /// The ranks to which `rank` may send, in order.
    pub fn out(&self, rank: RankId) -> impl Iterator<Item = RankId> + '_ {
        members(self.row(rank))
    }

    /// Number of ranks to which `rank` may send.
    pub fn degree(&self, rank: RankId) -> u32 {
        self.row(rank).iter().map(|w| w.count_ones()).sum()
    }

    /// Number of pairs.
    pub fn count(&self) -> u64 {
        self.rows.iter().map(|w| u64::from(w.count_ones())).sum()
    }

    /// Returns every pair reversed.
    #[must_use]
    pub fn reverse(&self) -> Self {
        let mut back = Self::none(self.nranks);
        for a in self.ranks() {
            self.out(a).for_each(|b| back.allow(b, a));
        }
        back
    }

    /// Returns every pair in both directions, whichever direction may be used.
    #[must_use]
    pub fn cables(&self) -> Self {
        let mut both = self.reverse();
        both.rows.iter_mut().zip(&self.rows).for_each(|(to, from)| *to |= from);
        both
    }

    /// Whether every pair may be used in both directions.
    pub fn is_symmetric(&self) -> bool {
        *self == self.reverse()
    }

    /// Whether every rank may send to every other.
    pub fn is_complete(&self) -> bool {
        let n = u64::from(self.nranks);
        self.count() == n * n.saturating_sub(1)
    }

    /// Returns the ranks reached from `start` without passing through those in `removed`, as bits.
    pub(super) fn flood(&self, start: RankId, removed: &[u64]) -> Vec<u64> {
        let mut seen = vec![0; self.words];
        seen[start.index() / 64] |= 1 << (start.index() % 64);
        let mut open = vec![start];
        while let Some(rank) = open.pop() {
            for (i, row) in self.row(rank).iter().enumerate() {
                let fresh = row & !seen[i] & !removed[i];
                seen[i] |= fresh;
                open.extend(bits(i, fresh));
            }
        }
        seen
    }

    /// Returns bits for a set of ranks, as wide as a row.
    pub(super) fn set(&self, ranks: &[RankId]) -> Vec<u64> {
        let mut set = vec![0; self.words];
        for rank in ranks {
            set[rank.index() / 64] |= 1 << (rank.index() % 64);
        }
        set
    }
}

fn bits(word: usize, mut set: u64) -> impl Iterator<Item = RankId> {
    std::iter::from_fn(move || {
        let bit = (set != 0).then(|| set.trailing_zeros())?;
        set &= set - 1;
        Some(RankId((word * 64) as u32 + bit))
    })
}

/// Returns the ranks of a set of bits, in order.
pub(super) fn members(set: &[u64]) -> impl Iterator<Item = RankId> + '_ {
    set.iter().enumerate().flat_map(|(i, word)| bits(i, *word))
}
