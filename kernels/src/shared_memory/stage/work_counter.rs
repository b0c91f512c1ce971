//! Counters of work that any rank can do and one rank does: the chunks of a tile of the common output. A rank that is
//! in the call takes the next chunk, so with more ranks than cores no rank waits for another rank's turn.

use crate::shared_memory::world::memory::shared_state::SharedState;
use crate::sync::{AtomicU64, Ordering};

const CHUNKS: u32 = 24;
const MASK: u64 = (1 << CHUNKS) - 1;

/// The counters of the taken and the finished chunks of one tile.
pub(crate) struct WorkCounter<'b> {
    taken: &'b AtomicU64,
    done: &'b AtomicU64,
    /// The number of the tile among all tiles that the ranks make together, counted from 1.
    tile: u64,
    chunks: u64,
}

impl<'b> WorkCounter<'b> {
    pub(crate) fn new(shared: &'b SharedState, tile: u64, chunks: usize) -> Self {
        let [taken, done] = shared.arena.layout.claims(tile);
        Self {
            taken: shared.arena.word(taken),
            done: shared.arena.word(done),
            tile,
            chunks: chunks as u64,
        }
    }

    /// Returns the count of this tile in `word`; all chunks if `word` is at a later tile.
    fn count(&self, word: u64) -> u64 {
        match (word >> CHUNKS).cmp(&self.tile) {
            std::cmp::Ordering::Less => 0,
            std::cmp::Ordering::Equal => word & MASK,
            std::cmp::Ordering::Greater => self.chunks,
        }
    }

    fn raised(&self, count: u64) -> u64 {
        self.tile << CHUNKS | (count + 1)
    }

    /// Takes the next chunk that no rank has taken.
    pub(crate) fn take(&self) -> Option<usize> {
        let mut word = self.taken.load(Ordering::Relaxed);
        loop {
            let next = self.count(word);
            if next >= self.chunks {
                return None;
            }
            let taken = (Ordering::Relaxed, Ordering::Relaxed);
            match self.taken.compare_exchange_weak(word, self.raised(next), taken.0, taken.1) {
                Ok(_) => return Some(next as usize),
                Err(now) => word = now,
            }
        }
    }

    /// Counts a chunk as done.
    pub(crate) fn done(&self) {
        let mut word = self.done.load(Ordering::Relaxed);
        loop {
            let raised = self.raised(self.count(word));
            // Release: the chunk is written. Acquire: a rank that sees the last chunk done sees the chunks of all
            // ranks.
            match self.done.compare_exchange_weak(word, raised, Ordering::AcqRel, Ordering::Relaxed)
            {
                Ok(_) => return,
                Err(now) => word = now,
            }
        }
    }

    /// Whether all chunks are done.
    pub(crate) fn are_done(&self) -> bool {
        self.count(self.done.load(Ordering::Acquire)) >= self.chunks
    }
}
