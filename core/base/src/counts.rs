//! A count for each block of a collective, as `AllGatherV`, `ReduceScatterV`, `GatherV`, `ScatterV` and `AllToAllV` take them.

use std::ops::Range;
use std::sync::Arc;

use crate::collective::Collective;
use crate::diagnostics::Code;
use crate::diagnostics::problem::Problem;
use crate::ids::RankId;

/// The most elements of all blocks together.
const MOST: u64 = 1 << 46;

/// The place behind the last element that any buffer can have.
const FARTHEST: u64 = 1 << 59;

/// A count for each block of a collective, in elements.
///
/// ```
/// use roundelay_base::collective::Collective;
/// use roundelay_base::counts::Counts;
///
/// let counts = Counts::new(Collective::AllGather, 3, &[5, 0, 7])?;
/// assert_eq!(counts.output_block(2.into(), 2), 5..12); // on every rank the third block lies behind the first
/// assert_eq!(counts.input_block(2.into(), 0), 0..7);
/// # Ok::<(), roundelay_base::diagnostics::problem::Problem>(())
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

    /// Returns the elements of the largest buffer of any rank, with blocks one behind the other.
    pub fn largest_buffer(&self, root: RankId) -> u64 {
        let most = |rank: u32| {
            let of = self.of_rank(RankId(rank), root);
            Block::end(&of.input).max(Block::end(&of.output))
        };
        (0..self.nranks).map(most).max().unwrap_or(0)
    }

    /// Returns the blocks of one rank, one behind the other.
    pub fn of_rank(&self, rank: RankId, root: RankId) -> RankBlocks {
        let Self { collective, nranks, .. } = *self;
        let count = |block: Option<u64>| block.map_or(0, |block| self.all[block as usize]);
        let inputs = 0..collective.input_units(rank, nranks, root);
        let outputs = 0..collective.output_units(rank, nranks, root);
        let input = inputs.map(|unit| count(collective.input_block(rank, unit, nranks)));
        let output = outputs.map(|unit| count(collective.output_block(rank, unit, nranks)));
        let (input, output) = (Block::pack(input), Block::pack(output));
        RankBlocks { collective, rank, nranks, input, output }
    }

    /// Returns the elements of a rank's input that one of its blocks has.
    pub fn input_block(&self, rank: RankId, unit: u32) -> Range<u64> {
        self.range(unit, |unit| self.collective.input_block(rank, unit, self.nranks))
    }

    /// Returns the elements of a rank's output that one of its blocks has.
    pub fn output_block(&self, rank: RankId, unit: u32) -> Range<u64> {
        self.range(unit, |unit| self.collective.output_block(rank, unit, self.nranks))
    }

    fn range(&self, unit: u32, block: impl Fn(u32) -> Option<u64>) -> Range<u64> {
        let count = |unit| block(unit).map_or(0, |block| self.all[block as usize]);
        let start = (0..unit).map(count).sum();
        start..start + count(unit)
    }
}

/// One block of a rank's buffer, in elements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Block {
    /// The place of its first element, from the beginning of the buffer.
    pub start: u64,
    /// The number of its elements.
    pub count: u64,
}

impl Block {
    /// Returns blocks that lie one behind the other.
    pub fn pack(counts: impl IntoIterator<Item = u64>) -> Vec<Self> {
        let mut start = 0_u64;
        let next = |count| {
            let block = Self { start, count };
            start = start.saturating_add(count);
            block
        };
        counts.into_iter().map(next).collect()
    }

    /// Returns the place behind the last element of the blocks: the length of the shortest buffer that holds them.
    pub fn end(blocks: &[Self]) -> u64 {
        let filled = blocks.iter().filter(|block| block.count > 0);
        filled.map(|block| block.start.saturating_add(block.count)).max().unwrap_or(0)
    }
}

/// The blocks of one rank in a call with a count for each block, as far as the rank itself knows them: those of its
/// input and of its output, in the order of their ranks.
///
/// | collective | input | output |
/// |---|---|---|
/// | `AllGather` | its own | one of each rank |
/// | `ReduceScatter` | one for each rank | its own |
/// | `Gather` | its own | one of each rank at the root, else none |
/// | `Scatter` | one for each rank at the root, else none | its own |
/// | `AllToAll` | one for each rank | one of each rank |
///
/// Blocks need not be packed, and need not be in the order of their places; those of an output must be apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RankBlocks {
    collective: Collective,
    rank: RankId,
    nranks: u32,
    input: Vec<Block>,
    output: Vec<Block>,
}

impl RankBlocks {
    /// Makes the blocks of rank `rank` of `nranks`.
    ///
    /// ```
    /// use roundelay_base::collective::Collective;
    /// use roundelay_base::counts::{Block, RankBlocks};
    ///
    /// // Rank 1 of 3 gives 2 elements, and gets 5, 2 and none of the three ranks.
    /// let (input, output) = (Block::pack([2]), Block::pack([5, 2, 0]));
    /// RankBlocks::new(Collective::AllGather, 0.into(), 1.into(), 3, input, output)?;
    /// # Ok::<(), roundelay_base::diagnostics::problem::Problem>(())
    /// ```
    ///
    /// # Errors
    /// E0432 for a collective without blocks of ranks, for another number of blocks, for two different counts of one
    /// block, for blocks of the output that overlap, and for a sum of counts beyond 2^46.
    pub fn new(
        collective: Collective,
        root: RankId,
        rank: RankId,
        nranks: u32,
        input: Vec<Block>,
        output: Vec<Block>,
    ) -> Result<Self, Problem> {
        let wrong = |title: String| Problem::new(Code::BadCounts, title);
        if collective.blocks(nranks).is_none() {
            return Err(wrong(has_one_count(collective)).help(ONE_COUNT));
        }
        let units = [
            ("input", &input, collective.input_units(rank, nranks, root)),
            ("output", &output, collective.output_units(rank, nranks, root)),
        ];
        for (which, blocks, units) in units {
            if blocks.len() != units as usize {
                let given = blocks.len();
                let title = format!(
                    "{given} counts for the {which} of rank {rank}, which has {units} blocks in {collective} on {nranks} ranks"
                );
                return Err(wrong(title).help("give one for each block, in the order of ranks"));
            }
            if let Some(at) = blocks.iter().position(|block| {
                block.start.checked_add(block.count).is_none_or(|end| end > FARTHEST)
            }) {
                let title = format!("block {at} of the {which} lies beyond all memory");
                return Err(wrong(title));
            }
            let sum = blocks.iter().try_fold(0_u64, |sum, block| sum.checked_add(block.count));
            if sum.is_none_or(|sum| sum > MOST) {
                let title = format!("the counts of the {which} add up to more than 2^46 elements");
                return Err(wrong(title));
            }
        }
        let made = Self { collective, rank, nranks, input, output };
        if let Some((block, counts)) = made.twice() {
            let [given, taken] = counts;
            let title = format!(
                "{} has {given} elements in the input of rank {rank} and {taken} in its output",
                block_name(collective, nranks, block)
            );
            return Err(wrong(title));
        }
        if let Some([one, other]) = overlap(&made.output) {
            let title = format!("blocks {one} and {other} of the output of rank {rank} overlap");
            return Err(wrong(title).help("give each block elements of its own"));
        }
        Ok(made)
    }

    /// Returns the collective.
    pub fn collective(&self) -> Collective {
        self.collective
    }

    /// Returns the rank.
    pub fn rank(&self) -> RankId {
        self.rank
    }

    /// Returns the number of ranks.
    pub fn nranks(&self) -> u32 {
        self.nranks
    }

    /// Returns the blocks of the input.
    pub fn input(&self) -> &[Block] {
        &self.input
    }

    /// Returns the blocks of the output.
    pub fn output(&self) -> &[Block] {
        &self.output
    }

    /// Returns the largest count.
    pub fn largest(&self) -> u64 {
        self.input.iter().chain(&self.output).map(|block| block.count).max().unwrap_or(0)
    }

    /// Whether every rank knows all counts.
    pub fn all_known(&self) -> bool {
        matches!(self.collective, Collective::AllGather | Collective::ReduceScatter)
    }

    /// Returns the counts that other ranks compare with theirs: all of them where every rank knows all, else those of
    /// this rank's input.
    pub fn compared_counts(&self) -> impl Iterator<Item = u64> + '_ {
        let of = match self.collective {
            Collective::AllGather => &self.output,
            _ => &self.input,
        };
        of.iter().map(|block| block.count)
    }

    /// Returns the number and count of each block that this rank knows, those of the input first.
    pub fn known_counts(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let Self { collective, rank, nranks, .. } = *self;
        let input = (0..)
            .zip(&self.input)
            .map(move |(unit, block)| (collective.input_block(rank, unit, nranks), block.count));
        let output = (0..)
            .zip(&self.output)
            .map(move |(unit, block)| (collective.output_block(rank, unit, nranks), block.count));
        input.chain(output).filter_map(|(block, count)| Some((block?, count)))
    }

    /// Returns the first block that has two counts here, with both.
    fn twice(&self) -> Option<(u64, [u64; 2])> {
        let (inputs, outputs) = (self.input.len(), self.output.len());
        // One of the two has a single block, or both have the block of this rank to itself.
        let own = |blocks: usize| if blocks > 1 { self.rank.index() } else { 0 };
        let (given, taken) =
            (self.input.get(own(inputs))?.count, self.output.get(own(outputs))?.count);
        let block = self.collective.input_block(self.rank, own(inputs) as u32, self.nranks)?;
        (given != taken).then_some((block, [given, taken]))
    }
}

/// Two counts of one block, by two ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CountsDiffer {
    /// The number of the block, as in [`Counts::new`].
    pub block: u64,
    /// The two ranks.
    pub ranks: [RankId; 2],
    /// The count that each of them gave.
    pub counts: [u64; 2],
}

impl Counts {
    /// Brings together the counts that all ranks know, which must agree: the blocks of each rank, in the order of ranks.
    ///
    /// # Errors
    /// The first block with two counts.
    pub fn agree(ranks: &[RankBlocks]) -> Result<Self, CountsDiffer> {
        let (collective, nranks) = (ranks[0].collective, ranks[0].nranks);
        let blocks = collective.blocks(nranks).unwrap_or(0) as usize;
        let mut known: Vec<Option<(u64, RankId)>> = vec![None; blocks];
        let mut differ: Option<CountsDiffer> = None;
        for of in ranks {
            for (block, count) in of.known_counts() {
                let (told, by) = *known[block as usize].get_or_insert((count, of.rank));
                if told != count && differ.is_none_or(|differ| block < differ.block) {
                    let (ranks, counts) = ([by, of.rank], [told, count]);
                    differ = Some(CountsDiffer { block, ranks, counts });
                }
            }
        }
        match differ {
            Some(differ) => Err(differ),
            None => {
                let all = known.into_iter().map(|known| known.map_or(0, |(count, _)| count));
                Ok(Self { collective, nranks, all: all.collect() })
            }
        }
    }
}

/// Returns the name of a block in messages.
pub fn block_name(collective: Collective, nranks: u32, block: u64) -> String {
    match collective {
        Collective::AllToAll => {
            let n = u64::from(nranks);
            format!("the block from rank {} to rank {}", block / n, block % n)
        }
        _ => format!("the block of rank {block}"),
    }
}

/// Returns two blocks that overlap, the one with the lower place first.
fn overlap(blocks: &[Block]) -> Option<[usize; 2]> {
    let mut order: Vec<usize> = (0..blocks.len()).filter(|at| blocks[*at].count > 0).collect();
    order.sort_unstable_by_key(|at| blocks[*at].start);
    let pair = order.windows(2).find(|pair| {
        let [one, other] = [blocks[pair[0]], blocks[pair[1]]];
        one.start.saturating_add(one.count) > other.start
    })?;
    Some([pair[0], pair[1]])
}

/// Returns the reason why a collective has no count for each block.
pub fn has_one_count(collective: Collective) -> String {
    format!("{collective} has one count, as its ranks own no blocks")
}

/// The collectives that have a count for each block, as advice.
pub const ONE_COUNT: &str =
    "a count for each rank is for AllGather, ReduceScatter, Gather, Scatter and AllToAll";
