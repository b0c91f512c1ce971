//! A count for each block of a collective, as `AllGatherV`, `ReduceScatterV`, `GatherV`, `ScatterV` and `AllToAllV` take them.

use std::ops::Range;
use std::sync::Arc;

use crate::collective::Collective;
use crate::diagnostics::Code;
use crate::ids::RankId;
use crate::topology::Problem;

/// The most elements of all blocks together.
const MOST: u64 = 1 << 46;

/// A count for each block of a collective, in elements.
///
/// ```
/// use roundelay_core::collective::Collective;
/// use roundelay_core::counts::Counts;
///
/// let counts = Counts::new(Collective::AllGather, 3, &[5, 0, 7])?;
/// assert_eq!(counts.output_block(2.into(), 2), 5..12); // on every rank the third block lies behind the first
/// assert_eq!(counts.input_block(2.into(), 0), 0..7);
/// # Ok::<(), roundelay_core::topology::Problem>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counts {
    collective: Collective,
    nranks: u32,
    all: Arc<[u64]>,
}

impl Counts {
    /// Makes a vector of counts: one for each rank, or for an AllToAll one for each pair of ranks, where the count from
    /// rank i to rank j has the number `i * nranks + j`.
    ///
    /// # Errors
    /// E0432 for a collective without blocks of ranks, a vector of another length, and counts whose sum is beyond 2^46.
    pub fn new(collective: Collective, nranks: u32, counts: &[u64]) -> Result<Self, Problem> {
        let wrong = |title: String| Problem::new(Code::BadCounts, title);
        let Some(blocks) = collective.blocks(nranks) else {
            return Err(wrong(has_one_count(collective)).help(ONE_COUNT));
        };
        if counts.len() as u64 != blocks {
            let given = counts.len();
            let title = format!(
                "{given} counts for {collective} on {nranks} ranks, which has {blocks} blocks"
            );
            return Err(wrong(title).help(match collective {
                Collective::AllToAll => "give one for each pair of ranks, those of sender 0 first",
                _ => "give one for each rank, in the order of ranks",
            }));
        }
        let sum = counts.iter().try_fold(0_u64, |sum, count| sum.checked_add(*count));
        if sum.is_none_or(|sum| sum > MOST) {
            return Err(wrong("the counts add up to more than 2^46 elements".to_owned()));
        }
        Ok(Self { collective, nranks, all: counts.into() })
    }

    /// Returns the collective.
    pub fn collective(&self) -> Collective {
        self.collective
    }

    /// Returns the number of ranks.
    pub fn nranks(&self) -> u32 {
        self.nranks
    }

    /// Returns the counts, by the numbers of their blocks.
    pub fn all(&self) -> &[u64] {
        &self.all
    }

    /// Returns the largest count.
    pub fn largest(&self) -> u64 {
        self.all.iter().copied().max().unwrap_or(0)
    }

    /// Returns the elements of a rank's input that one of its blocks has.
    pub fn input_block(&self, rank: RankId, unit: u32) -> Range<u64> {
        self.range(unit, |unit| self.collective.input_block(rank, unit, self.nranks))
    }

    /// Returns the elements of a rank's output that one of its blocks has.
    pub fn output_block(&self, rank: RankId, unit: u32) -> Range<u64> {
        self.range(unit, |unit| self.collective.output_block(rank, unit, self.nranks))
    }

    fn range(&self, unit: u32, block: impl Fn(u32) -> Option<u32>) -> Range<u64> {
        let count = |unit| block(unit).map_or(0, |block| self.all[block as usize]);
        let start = (0..unit).map(count).sum();
        start..start + count(unit)
    }
}

/// Returns the reason why a collective has no count for each block.
pub(crate) fn has_one_count(collective: Collective) -> String {
    format!("{collective} has one count, as its ranks own no blocks")
}

/// The collectives that have a count for each block, as advice.
pub(crate) const ONE_COUNT: &str =
    "a count for each rank is for AllGather, ReduceScatter, Gather, Scatter and AllToAll";
