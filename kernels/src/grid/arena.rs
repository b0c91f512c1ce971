//! The layout of a plan's block of memory on one device.

use std::ops::Range;

use super::launch::RankMemory;
use super::layout::{GridLayout, TooLarge};

/// The layout of a device's block of memory: the byte at which each part begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arena {
    /// The facts.
    pub facts: usize,
    /// The tables of the addresses of all ranks' memory: one for direct launches, one for launches that graphs of the
    /// callers replay, and one for launches of a graph of the plan's own.
    pub tables: [usize; Self::TABLES],
    /// The numbers of launches of CTAs.
    pub launches: usize,
    /// The memory of each rank on this device: its counters of posts and of waits, and its scratch.
    pub ranks: Vec<Home>,
    /// The range that is zero before the first launch, and after a launch that gave up.
    pub cleared: Range<usize>,
    /// The size of the block in bytes.
    pub bytes: usize,
}

/// The parts of a device's block that belong to one rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Home {
    /// Counters of posts.
    pub posted: usize,
    /// Counters of waits.
    pub waited: usize,
    /// Scratch.
    pub scratch: usize,
}

impl Arena {
    /// The alignment of the parts: vectors, cache lines and other ranks' accesses do not share it.
    const ALIGN: usize = 256;
    /// The number of tables of addresses.
    pub const TABLES: usize = 3;

    /// Lays out the block of a device with `ranks_here` of the ranks.
    pub fn new(
        layout: &GridLayout,
        facts_words: usize,
        nranks: usize,
        ranks_here: usize,
    ) -> Result<Self, TooLarge> {
        let mut bytes: usize = 0;
        let mut take = |count: usize, size: usize| {
            let at = bytes.checked_next_multiple_of(Self::ALIGN).ok_or(TooLarge)?;
            bytes = count.checked_mul(size).and_then(|len| at.checked_add(len)).ok_or(TooLarge)?;
            Ok(at)
        };
        let facts = take(facts_words, 8)?;
        let mut tables = [0; Self::TABLES];
        for table in &mut tables {
            let rows = nranks.checked_mul(layout.tables).ok_or(TooLarge)? + layout.switches;
            *table = take(rows, RankMemory::BYTES)?;
        }
        let launches = take(layout.launches_words, 8)?;
        let ranks = (0..ranks_here).map(|_| {
            Ok(Home {
                posted: take(layout.posted_words, 8)?,
                waited: take(layout.waited_words, 8)?,
                scratch: take(layout.scratch_bytes, 1)?,
            })
        });
        let ranks = ranks.collect::<Result<_, _>>()?;
        Ok(Self { facts, tables, launches, ranks, cleared: launches..bytes, bytes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAYOUT: GridLayout = GridLayout {
        groups: 4,
        parts: 2,
        posted_words: 10,
        waited_words: 20,
        launches_words: 4,
        tables: 1,
        switches: 0,
        scratch_bytes: 1000,
        control_words: 40,
    };

    #[test]
    fn nothing_overlaps_and_everything_is_aligned() {
        let arena = Arena::new(&LAYOUT, 100, 3, 2).expect("it fits");
        let mut spans = vec![
            (arena.facts, 800),
            (arena.tables[0], 120),
            (arena.tables[1], 120),
            (arena.launches, 32),
        ];
        for rank in &arena.ranks {
            spans.extend([(rank.posted, 80), (rank.waited, 160), (rank.scratch, 1000)]);
        }
        assert_eq!(spans.len(), 4 + 2 * 3);
        for pair in spans.windows(2) {
            assert!(pair[0].0 + pair[0].1 <= pair[1].0, "{pair:?}");
        }
        assert!(spans.iter().all(|(at, _)| at % Arena::ALIGN == 0));
        let (at, len) = spans[spans.len() - 1];
        assert_eq!(arena.bytes, at + len);
        assert_eq!(arena.cleared, arena.launches..arena.bytes, "neither facts nor addresses");
    }

    #[test]
    fn what_has_no_address_is_refused() {
        let huge = GridLayout { scratch_bytes: usize::MAX - 300, ..LAYOUT };
        assert_eq!(Arena::new(&huge, 1, 1, 1), Err(TooLarge));
    }
}
