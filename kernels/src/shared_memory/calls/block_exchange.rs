//! The counts and places of blocks that each rank tells for its call, before it publishes the call, and their comparison.

use roundelay_core::counts::RankBlocks;
use roundelay_core::ids::RankId;

use super::ActiveCall;
use crate::shared_memory::world::memory::shared_state::{CallHeader, SharedState};
use crate::sync::{AtomicU64, Ordering};

impl SharedState {
    fn block(&self, rank: usize, number: u64, which: usize, block: usize) -> &AtomicU64 {
        self.arena.word(self.arena.layout.block(rank, number, which, block))
    }

    /// Writes the blocks of this process's rank, for a call that is then published.
    pub(crate) fn tell(&self, rank: usize, number: u64, blocks: &RankBlocks) {
        for (at, count) in blocks.compared_counts().enumerate() {
            self.block(rank, number, 0, at).store(count, Ordering::Relaxed);
        }
        for (at, block) in blocks.input().iter().enumerate() {
            self.block(rank, number, 1, at).store(block.start, Ordering::Relaxed);
        }
    }

    /// Returns a count that a rank told for its call, which it has published according to [`Self::staged`].
    pub(crate) fn told(&self, rank: usize, number: u64, at: usize) -> u64 {
        self.block(rank, number, 0, at).load(Ordering::Relaxed)
    }

    /// Returns the first element of a block of a rank's input, as that rank told.
    pub(crate) fn start(&self, rank: usize, number: u64, at: usize) -> u64 {
        self.block(rank, number, 1, at).load(Ordering::Relaxed)
    }
}

impl ActiveCall<'_> {
    /// Returns the first block for which rank `other` told another count than this rank knows, with the count of this
    /// rank and that of the other.
    pub(crate) fn counts_differ(
        &self,
        other: usize,
        theirs: &CallHeader,
    ) -> Option<(u64, [u64; 2])> {
        let blocks = self.blocks.filter(|_| theirs.differs_in_count_alone(&self.header))?;
        let (collective, nranks) = (blocks.collective(), self.world.nranks());
        let told = |at: usize| self.world.shared.told(other, self.number, at);
        if blocks.all_known() {
            // The headers have a digest of all.
            if theirs.count == self.header.count {
                return None;
            }
            let mut known = (0..).zip(blocks.compared_counts());
            return known.find_map(|(block, count)| {
                let theirs = told(block as usize);
                (theirs != count).then_some((block, [count, theirs]))
            });
        }
        // The one block that the other rank has in its input and this rank in its output.
        let units = collective.input_units(RankId(other as u32), nranks, self.root()) as usize;
        let at = |len: usize, rank: usize| if len == 1 { 0 } else { rank };
        let unit = at(blocks.output().len(), other);
        let count = blocks.output().get(unit).filter(|_| units > 0)?.count;
        let theirs = told(at(units, blocks.rank().index()));
        let block = collective.output_block(blocks.rank(), unit as u32, nranks)?;
        (theirs != count).then_some((block, [count, theirs]))
    }
}
