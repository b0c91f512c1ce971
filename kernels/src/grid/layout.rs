//! Where everything lies that a launch needs besides the callers' buffers.

use roundelay_core::emit::cuda::Facts;
use roundelay_core::ids::RankId;
use roundelay_core::schedule::{Buffer, Schedule};

/// Control words before those of the first group.
pub(crate) const CONTROL_HEAD: usize = 8;
/// Control words of a group.
pub(crate) const CONTROL_GROUP: usize = 8;

/// Sizes of a launch's own memory, for all ranks and groups of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Streams of all ranks.
    pub groups: usize,
    /// CTAs of each.
    pub parts: usize,
    /// 8-byte counters at each rank that others raise.
    pub posted_words: usize,
    /// 8-byte counters at each rank of waits done.
    pub waited_words: usize,
    /// 8-byte words of each CTA's own.
    pub work_words: usize,
    /// 8-byte step numbers of the links of fifos.
    pub steps_words: usize,
    /// Bytes of scratch at each rank.
    pub scratch_bytes: usize,
    /// 8-byte words of the control block.
    pub control_words: usize,
}

/// What does not fit the machine's address space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLarge;

impl Layout {
    /// The layout for `parts` CTAs a stream and elements of `element_size` bytes.
    pub fn new(facts: &Facts, parts: u32, element_size: usize) -> Result<Self, TooLarge> {
        let word = |words: u64| usize::try_from(words).map_err(|_| TooLarge);
        let times = |a: usize, b: usize| a.checked_mul(b).ok_or(TooLarge);
        let (groups, parts) = (facts.groups.len(), parts as usize);
        // A counter for each part at either end: a sum would let one part's posts stand for another's.
        let counters = times(word(facts.posted_words)?, parts)?;
        Ok(Self {
            groups,
            parts,
            posted_words: counters,
            waited_words: counters,
            work_words: word(facts.work_words)?,
            steps_words: times(word(facts.links)?, 2 * parts)?,
            scratch_bytes: times(word(facts.scratch_elements)?, element_size)?,
            control_words: CONTROL_HEAD + CONTROL_GROUP * groups,
        })
    }
}

/// A rank's buffers as callers have them, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Buffers {
    /// Bytes of the input.
    pub input: usize,
    /// Bytes of the output.
    pub output: usize,
    /// Bytes of the one buffer in place.
    pub shared: usize,
    /// Where the input begins in that.
    pub input_at: usize,
    /// Where the output begins in that.
    pub output_at: usize,
}

impl Buffers {
    /// The buffers of `rank` for `count` elements a unit, of `element_size` bytes each.
    pub fn new(schedule: &Schedule, rank: RankId, count: u64, element_size: usize) -> Self {
        let bytes = |buffer| schedule.elements(buffer, rank, count) as usize * element_size;
        let (input, output) = (bytes(Buffer::Input), bytes(Buffer::Output));
        let unit = count as usize * element_size;
        let starts = schedule.collective.alias(rank, schedule.root).starts();
        let (input_at, output_at) = (starts.0 as usize * unit, starts.1 as usize * unit);
        Self { input, output, shared: input.max(output), input_at, output_at }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use roundelay_core::emit::cuda::Group;

    use super::*;

    fn facts() -> Facts {
        Facts {
            words: vec![0; 24],
            groups: (0..6).map(|at| Group { rank: RankId(at / 2), stream: at % 2 }).collect(),
            lanes: vec![Vec::new()],
            posted_words: 100,
            work_words: 12,
            links: 3,
            scratch_elements: 1000,
            scale_outputs: false,
        }
    }

    #[test]
    fn everything_that_a_part_has_of_its_own_grows_with_the_parts() {
        let one = Layout::new(&facts(), 1, 4).expect("it fits");
        assert_eq!((one.waited_words, one.steps_words), (100, 6));
        assert_eq!((one.scratch_bytes, one.control_words), (4000, 8 + 6 * 8));
        let four = Layout::new(&facts(), 4, 4).expect("it fits");
        assert_eq!((four.posted_words, four.waited_words, four.steps_words), (400, 400, 24));
        assert_eq!(four.scratch_bytes, one.scratch_bytes);
    }

    #[test]
    fn what_has_no_address_is_refused() {
        let huge = Facts { scratch_elements: 1 << 62, ..facts() };
        assert_eq!(Layout::new(&huge, 1, 8), Err(TooLarge));
    }

    #[test]
    fn buffers_in_place_lie_as_the_collective_has_them() {
        let text = "schedule Empty ReduceScatter nranks 3 root 0\n";
        let schedule = roundelay_core::schedule::text::parse(text).expect("a schedule");
        let buffers = Buffers::new(&schedule, RankId(2), 5, 4);
        let expected = Buffers { input: 60, output: 20, shared: 60, input_at: 0, output_at: 40 };
        assert_eq!(buffers, expected);
    }
}
