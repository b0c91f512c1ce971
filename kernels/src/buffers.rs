//! The lengths of a rank's buffers, and their offsets in the one buffer of a call in place.

use roundelay_core::ids::RankId;
use roundelay_core::schedule::{Buffer, Schedule};
use roundelay_core::verify::Proof;

use crate::error::Error;

/// The sizes of a rank's buffers as callers pass them, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Buffers {
    /// Bytes of the input.
    pub input: usize,
    /// Bytes of the output.
    pub output: usize,
    /// Bytes of the one buffer of a call in place.
    pub shared: usize,
    /// The offset of the input in that buffer.
    pub input_at: usize,
    /// The offset of the output in that buffer.
    pub output_at: usize,
}

impl Buffers {
    /// Returns the buffers of `rank` for `count` elements a unit, of `element_size` bytes each.
    pub fn new(schedule: &Schedule, rank: RankId, count: u64, element_size: usize) -> Self {
        let bytes = |buffer| schedule.elements(buffer, rank, count) as usize * element_size;
        let (input, output) = (bytes(Buffer::Input), bytes(Buffer::Output));
        let starts = schedule.in_place_starts(rank, count);
        let [input_at, output_at] = [starts.0, starts.1].map(|start| start as usize * element_size);
        Self { input, output, shared: input.max(output), input_at, output_at }
    }

    /// Checks that a schedule has an in-place form.
    ///
    /// # Errors
    /// E0408 if it has none.
    pub fn check_in_place(schedule: &Schedule, proof: &Proof) -> Result<(), Error> {
        let why = match () {
            () if !schedule.collective.has_in_place() => "AllToAll has no in-place form",
            () if schedule.out_of_place => "the algorithm is marked `out_of_place`",
            () if !proof.in_place => "the algorithm was not proved in place",
            () => return Ok(()),
        };
        Err(Error::NoInPlace { why })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_in_place_lie_as_the_collective_has_them() {
        let text = "schedule Empty ReduceScatter nranks 3 root 0\n";
        let schedule = roundelay_core::schedule::text::parse(text).expect("a schedule");
        let buffers = Buffers::new(&schedule, RankId(2), 5, 4);
        let expected = Buffers { input: 60, output: 20, shared: 60, input_at: 0, output_at: 40 };
        assert_eq!(buffers, expected);
    }
}
