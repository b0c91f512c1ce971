//! The reason why no ring passes through all ranks, in a form that a person can check by hand.
//!
//! It is separate from the search, which only knows that it has tried everything.

use std::fmt;

use super::cover;
use super::pairs::Pairs;
use roundelay_base::ids::RankId;

/// The number of ranks listed before the rest is only counted.
const LISTED: usize = 12;
/// The number of ways to remove ranks that are tried before the search itself is the proof.
const CUTS: usize = 100_000;

/// The reason why no ring of links passes through all ranks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoRing {
    /// A ring enters and leaves a rank by two neighbors; this rank has fewer.
    DeadEnd {
        /// The rank.
        rank: RankId,
        /// Its neighbors.
        cables: Vec<RankId>,
    },
    /// There is no path from one rank to another.
    Unreachable {
        /// The rank at which the path would start.
        from: RankId,
        /// The rank at which the path would end.
        to: RankId,
    },
    /// Some ranks send only to fewer ranks, and each needs a receiver of its own.
    Crowded {
        /// The ranks that send.
        senders: Vec<RankId>,
        /// All ranks that they may send to.
        receivers: Vec<RankId>,
    },
    /// A ring without k of its ranks falls into at most k parts; this graph falls into more.
    Cut {
        /// The removed ranks.
        removed: Vec<RankId>,
        /// A rank of each remaining part.
        parts: Vec<RankId>,
    },
    /// Every order was tried.
    Exhausted {
        /// Number of ranks.
        nranks: u32,
    },
}

impl NoRing {
    /// Returns a proof that costs less than a search: neighbors of each rank, reach, and receivers for all senders.
    pub(super) fn cheap(pairs: &Pairs) -> Option<Self> {
        let cables = pairs.cables();
        let least = pairs.nranks().saturating_sub(1).min(2);
        if let Some(rank) = pairs.ranks().find(|r| cables.degree(*r) < least) {
            return Some(Self::DeadEnd { rank, cables: cables.out(rank).collect() });
        }
        let (zero, nothing) = (RankId(0), pairs.set(&[]));
        let missing = |graph: &Pairs| {
            let seen = graph.flood(zero, &nothing);
            graph.ranks().find(|r| seen[r.index() / 64] >> (r.index() % 64) & 1 == 0)
        };
        if let Some(to) = missing(pairs) {
            return Some(Self::Unreachable { from: zero, to });
        }
        if let Some(from) = missing(&pairs.reverse()) {
            return Some(Self::Unreachable { from, to: zero });
        }
        let order: Vec<_> = pairs.ranks().collect();
        cover::successors(pairs, &order)
            .err()
            .map(|(senders, receivers)| Self::Crowded { senders, receivers })
    }

    /// Returns at most `most` ranks whose removal leaves more parts than ranks were removed.
    pub(super) fn cut(pairs: &Pairs, most: u32) -> Option<Self> {
        let cables = pairs.cables();
        let mut left = CUTS;
        (1..=most).find_map(|k| {
            let mut removed = Vec::new();
            cut_of(&cables, k, 0, &mut removed, &mut left)
        })
    }
}

/// Tries every `k` more ranks from `next` on.
fn cut_of(
    cables: &Pairs,
    k: u32,
    next: u32,
    removed: &mut Vec<RankId>,
    left: &mut usize,
) -> Option<NoRing> {
    if k == 0 {
        *left = left.checked_sub(1)?;
        let parts = parts_without(cables, removed);
        return (parts.len() > removed.len())
            .then(|| NoRing::Cut { removed: removed.clone(), parts });
    }
    for rank in next..cables.nranks() {
        removed.push(RankId(rank));
        let found = cut_of(cables, k - 1, rank + 1, removed, left);
        removed.pop();
        if found.is_some() || *left == 0 {
            return found;
        }
    }
    None
}

/// Returns the smallest rank of each remaining part.
fn parts_without(cables: &Pairs, removed: &[RankId]) -> Vec<RankId> {
    let mut gone = cables.set(removed);
    let mut parts = Vec::new();
    for rank in cables.ranks() {
        if gone[rank.index() / 64] >> (rank.index() % 64) & 1 == 0 {
            parts.push(rank);
            let seen = cables.flood(rank, &gone);
            gone.iter_mut().zip(seen).for_each(|(gone, seen)| *gone |= seen);
        }
    }
    parts
}

/// `rank 3`, or `ranks 3, 4 and 5`.
fn named(ranks: &[RankId]) -> String {
    let shown = ranks.len().min(LISTED);
    let mut words: Vec<_> = ranks[..shown].iter().map(ToString::to_string).collect();
    if shown < ranks.len() {
        words.push(format!("{} more", ranks.len() - shown));
    }
    match words.split_last() {
        None => "no rank".into(),
        Some((only, [])) => format!("rank {only}"),
        Some((last, rest)) => format!("ranks {} and {last}", rest.join(", ")),
    }
}

impl fmt::Display for NoRing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DeadEnd { rank, cables } if cables.is_empty() => {
                write!(f, "rank {rank} is joined to no other rank")
            }
            Self::DeadEnd { rank, cables } => {
                write!(
                    f,
                    "rank {rank} is joined to {} only; a ring needs two neighbors",
                    named(cables)
                )
            }
            Self::Unreachable { from, to } => {
                write!(f, "nothing gets from rank {from} to rank {to}")
            }
            Self::Crowded { senders, receivers } if receivers.is_empty() => {
                write!(f, "{} may send to nobody", named(senders))
            }
            Self::Crowded { senders, receivers } => write!(
                f,
                "the {} {} may send only to the {} {}, and each needs one for itself",
                senders.len(),
                named(senders),
                receivers.len(),
                named(receivers)
            ),
            Self::Cut { removed, parts } => write!(
                f,
                "without {} the rest falls into {} parts, those of {}; a ring would fall into {} at most",
                named(removed),
                parts.len(),
                named(parts),
                removed.len()
            ),
            Self::Exhausted { nranks } => write!(f, "exhaustive search of {nranks} ranks"),
        }
    }
}
