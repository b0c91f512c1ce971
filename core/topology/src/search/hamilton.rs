//! A ring through all ranks: exact up to 24 ranks, with a proof where there is none; beyond, a heuristic that says
//! so.
//!
//! Up to [`EXACT`] ranks a search in order of ranks, which prunes branches that cannot succeed, has a budget of
//! steps; if that is used up, a table of all sets of ranks decides (Held and Karp's). Both give one result, the first
//! ring in alphabetical order.

use super::heuristic;
use super::pairs::Pairs;
use super::proof::NoRing;
use roundelay_base::ids::RankId;

/// The most ranks up to which the answer is exact.
pub const EXACT: u32 = 24;
/// Steps of the search in order before the table is filled.
const STEPS: u32 = 20_000;
/// Steps of the heuristic, each of a few operations.
const STEPS_BEYOND: u64 = 40_000_000;
/// The most ranks removed at once in search of a cut that proves that there is no ring.
const CUT: u32 = 6;

/// The quality of a ring as the answer to the question for the first ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// No ring comes before it in alphabetical order, starting with rank 0.
    Exact,
    /// It is a ring, but not known to be the first.
    Heuristic,
}

/// The result of a search for a ring.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RingSearch {
    /// A ring.
    Found {
        /// The ranks in order, rank 0 first. Each sends to the next, the last to the first.
        order: Vec<RankId>,
        /// Whether it is the first of all rings.
        how: How,
    },
    /// There is no ring.
    None {
        /// The proof that there is none.
        proof: NoRing,
    },
    /// Beyond [`EXACT`] ranks: none was found, but there may be one.
    GaveUp {
        /// Number of ranks.
        nranks: u32,
        /// Steps that were spent.
        steps: u64,
    },
}

impl RingSearch {
    /// The ring, if one was found.
    pub fn order(self) -> Option<Vec<RankId>> {
        match self {
            Self::Found { order, .. } => Some(order),
            Self::None { .. } | Self::GaveUp { .. } => None,
        }
    }
}

/// Whether `order` has every rank once and each may send to the next, the last to the first.
pub fn is_ring(pairs: &Pairs, order: &[RankId]) -> bool {
    let mut sorted = order.to_vec();
    sorted.sort_unstable();
    let next = order.iter().cycle().skip(1);
    sorted.into_iter().eq(pairs.ranks())
        && (order.len() < 2 || order.iter().zip(next).all(|(a, b)| pairs.has(*a, *b)))
}

/// Returns a ring through all ranks: the natural order where it is one. Up to [`EXACT`] ranks the first in
/// alphabetical order. Equal pairs always give equal rings.
pub fn ring(pairs: &Pairs) -> RingSearch {
    let natural: Vec<_> = pairs.ranks().collect();
    if is_ring(pairs, &natural) {
        return RingSearch::Found { order: natural, how: How::Exact };
    }
    if let Some(proof) = NoRing::cheap(pairs) {
        return RingSearch::None { proof };
    }
    let n = pairs.nranks();
    if n > EXACT {
        return match heuristic::ring(pairs, STEPS_BEYOND) {
            Ok(order) => RingSearch::Found { order, how: How::Heuristic },
            Err(steps) => NoRing::cut(pairs, 1)
                .map_or(RingSearch::GaveUp { nranks: n, steps }, |proof| RingSearch::None {
                    proof,
                }),
        };
    }
    let found = Search::new(pairs)
        .first()
        .unwrap_or_else(|OutOfSteps| HamiltonTable::new(pairs).rings(1).pop());
    match found {
        Some(order) => RingSearch::Found { order, how: How::Exact },
        None => RingSearch::None {
            proof: NoRing::cut(pairs, CUT).unwrap_or(NoRing::Exhausted { nranks: n }),
        },
    }
}

/// Returns up to `limit` rings in alphabetical order, rank 0 first; a ring and its reverse are two. `None` beyond
/// [`EXACT`] ranks.
pub fn all_rings(pairs: &Pairs, limit: usize) -> Option<Vec<Vec<RankId>>> {
    let natural: Vec<_> = pairs.ranks().collect();
    match pairs.nranks() {
        0 | 1 => Some(vec![natural; limit.min(1)]),
        n if n > EXACT => None,
        _ => Some(HamiltonTable::new(pairs).rings(limit)),
    }
}

/// Returns the rows of up to 32 ranks.
pub(super) fn rows(pairs: &Pairs) -> Vec<u32> {
    pairs.ranks().map(|rank| pairs.row(rank)[0] as u32).collect()
}

/// The budget was used up.
pub(super) struct OutOfSteps;

/// Depth-first search, smallest rank first, with the rest of the budget.
struct Search {
    out: Vec<u32>,
    steps: u32,
    path: Vec<RankId>,
}

impl Search {
    fn new(pairs: &Pairs) -> Self {
        Self { out: rows(pairs), steps: STEPS, path: vec![RankId(0)] }
    }

    fn first(mut self) -> Result<Option<Vec<RankId>>, OutOfSteps> {
        let others = ((1_u64 << self.out.len()) - 2) as u32;
        Ok(self.extend(0, others)?.then_some(self.path))
    }

    fn extend(&mut self, end: u32, open: u32) -> Result<bool, OutOfSteps> {
        if open == 0 {
            return Ok(self.out[end as usize] & 1 == 1);
        }
        self.steps = self.steps.checked_sub(1).ok_or(OutOfSteps)?;
        if !hopeful(&self.out, end, open) {
            return Ok(false);
        }
        let mut choices = self.out[end as usize] & open;
        while choices != 0 {
            let next = choices.trailing_zeros();
            choices &= choices - 1;
            self.path.push(RankId(next));
            if self.extend(next, open & !(1 << next))? {
                return Ok(true);
            }
            self.path.pop();
        }
        Ok(false)
    }
}

/// Whether every open rank can still be reached from `end` and left, and one of them leads to rank 0.
pub(super) fn hopeful(out: &[u32], end: u32, open: u32) -> bool {
    let (mut seen, mut wave, mut home) = (0, out[end as usize] & open, false);
    while wave != 0 {
        let rank = wave.trailing_zeros();
        let onward = out[rank as usize];
        if onward & (open | 1) == 0 {
            return false;
        }
        home |= onward & 1 == 1;
        seen |= 1 << rank;
        wave = (wave | onward & open) & !seen;
    }
    home && seen == open
}

/// For every set of ranks without rank 0, the ranks from which a path passes through the whole set and then to rank
/// 0. 32 MiB for [`EXACT`] ranks.
struct HamiltonTable {
    /// Bit r - 1 stands for rank r.
    out: Vec<u32>,
    from_zero: u32,
    heads: Vec<u32>,
}

impl HamiltonTable {
    fn new(pairs: &Pairs) -> Self {
        let rows = rows(pairs);
        let out: Vec<u32> = rows[1..].iter().map(|row| row >> 1).collect();
        let mut heads = vec![0; 1 << out.len()];
        for (r, row) in rows[1..].iter().enumerate() {
            heads[1 << r] = (row & 1) << r;
        }
        for set in 1..heads.len() as u32 {
            let mut members = if set.is_power_of_two() { 0 } else { set };
            while members != 0 {
                let r = members.trailing_zeros();
                members &= members - 1;
                if heads[(set & !(1 << r)) as usize] & out[r as usize] != 0 {
                    heads[set as usize] |= 1 << r;
                }
            }
        }
        Self { out, from_zero: rows[0] >> 1, heads }
    }

    /// Returns up to `limit` rings, without a wasted step.
    fn rings(&self, limit: usize) -> Vec<Vec<RankId>> {
        let mut found = Vec::new();
        let all = (self.heads.len() - 1) as u32;
        self.walk(self.from_zero, all, &mut vec![RankId(0)], limit, &mut found);
        found
    }

    fn walk(
        &self,
        next: u32,
        set: u32,
        path: &mut Vec<RankId>,
        limit: usize,
        found: &mut Vec<Vec<RankId>>,
    ) {
        if set == 0 && found.len() < limit {
            found.push(path.clone());
        }
        let mut choices = next & self.heads[set as usize];
        while choices != 0 && found.len() < limit {
            let r = choices.trailing_zeros();
            choices &= choices - 1;
            path.push(RankId(r + 1));
            self.walk(self.out[r as usize], set & !(1 << r), path, limit, found);
            path.pop();
        }
    }
}
