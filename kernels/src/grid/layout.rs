//! The sizes of the memory that a launch needs besides the callers' buffers.

use roundelay_export::cuda::Facts;

/// Control words before those of the first group.
pub(crate) const CONTROL_HEAD: usize = 8;
/// Control words of a group.
pub(crate) const CONTROL_GROUP: usize = 8;

/// Sizes of a launch's own memory, for all ranks and groups of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GridLayout {
    /// Streams of all ranks.
    pub groups: usize,
    /// CTAs of each stream.
    pub parts: usize,
    /// 8-byte counters at each rank that other ranks raise.
    pub posted_words: usize,
    /// 8-byte counters at each rank of waits done.
    pub waited_words: usize,
    /// 8-byte numbers of launches, one for each CTA that counts them.
    pub launches_words: usize,
    /// Tables of the addresses of all ranks' memory, one after the other: ranks choose in each launch whose buffers they
    /// use.
    pub tables: usize,
    /// Groups of ranks that a switch reaches: each has addresses behind the tables.
    pub switches: usize,
    /// Bytes of scratch at each rank.
    pub scratch_bytes: usize,
    /// 8-byte words of the control block.
    pub control_words: usize,
}

/// The error where memory does not fit the machine's address space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLarge;

impl GridLayout {
    /// The layout for `parts` CTAs a stream and elements of `element_size` bytes.
    pub fn new(facts: &Facts, parts: u32, element_size: usize) -> Result<Self, TooLarge> {
        let word = |words: u64| usize::try_from(words).map_err(|_| TooLarge);
        let times = |a: usize, b: usize| a.checked_mul(b).ok_or(TooLarge);
        let (groups, parts) = (facts.groups.len(), parts as usize);
        // Each part has a counter at either end: with one sum, one part's posts would count for another's.
        let counters = times(word(facts.posted_words)?, parts)?;
        Ok(Self {
            groups,
            parts,
            posted_words: counters,
            waited_words: counters,
            launches_words: if facts.counts_launches { times(groups, parts)? } else { 0 },
            tables: 1,
            switches: facts.switches.len(),
            scratch_bytes: times(word(facts.scratch_elements)?, element_size)?,
            control_words: CONTROL_HEAD + CONTROL_GROUP * groups,
        })
    }

    /// The layout for a kernel with `ROUNDELAY_REGISTERED`, for `nranks` ranks with `tables` tables each: each rank has a
    /// word from each part of each other one, and launches are counted.
    pub fn with_tables(self, tables: usize, nranks: usize) -> Result<Self, TooLarge> {
        let words = nranks.checked_mul(self.parts).ok_or(TooLarge)?;
        Ok(Self {
            posted_words: self.posted_words.checked_add(words).ok_or(TooLarge)?,
            launches_words: self.groups * self.parts,
            tables,
            ..self
        })
    }
}

#[cfg(test)]
mod tests {
    use roundelay_core::ids::RankId;
    use roundelay_export::cuda::Group;

    use super::*;

    fn facts() -> Facts {
        Facts {
            words: vec![0; 24],
            groups: (0..6).map(|at| Group { rank: RankId(at / 2), stream: at % 2 }).collect(),
            lanes: vec![Vec::new()],
            posted_words: 100,
            counts_launches: true,
            scratch_elements: 1000,
            scale_outputs: false,
            switches: Vec::new(),
        }
    }

    #[test]
    fn everything_that_a_part_has_of_its_own_grows_with_the_parts() {
        let one = GridLayout::new(&facts(), 1, 4).expect("it fits");
        assert_eq!((one.waited_words, one.launches_words), (100, 6));
        assert_eq!((one.scratch_bytes, one.control_words), (4000, 8 + 6 * 8));
        let four = GridLayout::new(&facts(), 4, 4).expect("it fits");
        assert_eq!((four.posted_words, four.waited_words, four.launches_words), (400, 400, 24));
        assert_eq!(four.scratch_bytes, one.scratch_bytes);
    }

    #[test]
    fn what_has_no_address_is_refused() {
        let huge = Facts { scratch_elements: 1 << 62, ..facts() };
        assert_eq!(GridLayout::new(&huge, 1, 8), Err(TooLarge));
    }
}
