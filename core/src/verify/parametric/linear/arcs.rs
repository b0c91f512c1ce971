//! The value at a place: the inputs of an arc of ranks, each exactly once, for every nranks.

use super::Region;
use crate::verify::parametric::terms::{Affine, Facts, N, S};

/// An arc of `len` ranks from `start`, which counts from the rank that holds the value, modulo nranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RankArc {
    pub(super) start: Affine,
    pub(super) len: Affine,
}

/// The sum of contributions: of each rank in each arc, region `home` of its input. A rank in two arcs has
/// contributed twice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ArcValue {
    pub(super) arcs: Vec<RankArc>,
    pub(super) home: Region,
}

impl ArcValue {
    /// Returns the input of one rank.
    pub(super) fn of(rank: Affine, home: Region) -> Self {
        Self { arcs: vec![RankArc { start: rank.residue(), len: Affine::int(1) }], home }
    }

    /// Returns the inputs of all ranks.
    pub(super) fn complete(home: Region) -> Self {
        Self { arcs: vec![RankArc { start: Affine::ZERO, len: N }], home }
    }

    /// Returns the value as counted from a rank `by` further back, with `round` for the round.
    pub(super) fn seen(&self, by: Affine, round: Affine) -> Self {
        let arc = |arc: &RankArc| RankArc {
            start: (arc.start.at(round) + by).residue(),
            len: arc.len.at(round),
        };
        Self { arcs: self.arcs.iter().map(arc).collect(), home: seen(self.home, by, round) }
    }

    /// Returns the sum of both values, where they are contributions of one region. As a multiset, adjoining arcs are
    /// one arc, also where it runs around the ring and over itself.
    pub(super) fn plus(&self, other: &Self, facts: &Facts) -> Option<Self> {
        same_home(&self.home, &other.home, facts).then_some(())?;
        let mut arcs = self.arcs.clone();
        for arc in &other.arcs {
            let mut arc = *arc;
            while let Some(i) = arcs.iter().position(|a| joined(a, &arc, facts).is_some()) {
                let known = arcs.remove(i);
                arc = joined(&known, &arc, facts)?;
            }
            arcs.push(arc);
        }
        for arc in &mut arcs {
            // The start of an arc of all ranks is of no importance.
            if facts.prove_zero(arc.len - N) {
                *arc = RankArc { start: Affine::ZERO, len: N };
            }
        }
        Some(Self { arcs, home: self.home })
    }

    /// Whether the two values are equal wherever `facts` hold.
    pub(super) fn is(&self, other: &Self, facts: &Facts) -> bool {
        let arc = |(a, b): (&RankArc, &RankArc)| {
            facts.prove_zero(a.len - b.len)
                && (facts.prove_congruent(a.start - b.start) || facts.prove_zero(a.len - N))
        };
        self.arcs.len() == other.arcs.len()
            && self.arcs.iter().zip(&other.arcs).all(arc)
            && same_home(&self.home, &other.home, facts)
    }

    /// Returns the value in any round, if it continues as from round `first` with value `self` to the next round with
    /// `next`.
    pub(super) fn continued(&self, next: &Self, first: Affine) -> Option<Self> {
        let since = S - first;
        let slope = |from: Affine, to: Affine| (to - from).constant().filter(|by| by.abs() <= 4);
        let residue = |from: Affine, to: Affine| {
            slope(from.residue(), to.residue()).map(|by| (from + since * by).residue())
        };
        if self.arcs.len() != next.arcs.len() {
            return None;
        }
        let arc = |(a, b): (&RankArc, &RankArc)| {
            let len = a.len + since * slope(a.len, b.len)?;
            Some(RankArc { start: residue(a.start, b.start)?, len })
        };
        let arcs = self.arcs.iter().zip(&next.arcs).map(arc).collect::<Option<_>>()?;
        let block = match (self.home.block, next.home.block) {
            (Some(a), Some(b)) => Some(residue(a, b)?),
            _ => self.home.block,
        };
        Some(Self { arcs, home: Region { block, ..self.home } })
    }
}

/// Returns the region as counted from a rank that stands `by` further back, in round `round`.
fn seen(region: Region, by: Affine, round: Affine) -> Region {
    Region { block: region.block.map(|block| block.at(round) + by), ..region }
}

fn joined(a: &RankArc, b: &RankArc, facts: &Facts) -> Option<RankArc> {
    let len = a.len + b.len;
    if facts.prove_congruent(a.start + a.len - b.start) {
        return Some(RankArc { start: a.start, len });
    }
    facts.prove_congruent(b.start + b.len - a.start).then_some(RankArc { start: b.start, len })
}

fn same_home(a: &Region, b: &Region, facts: &Facts) -> bool {
    (a.buffer, a.outer, a.inner) == (b.buffer, b.outer, b.inner)
        && match (a.block, b.block) {
            (Some(a), Some(b)) => facts.prove_congruent(a - b),
            (a, b) => a == b,
        }
}
