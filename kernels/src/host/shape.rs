//! What a plan expects of its callers' buffers.

use std::sync::Arc;

use roundelay_core::dtype::{DType, ReduceOp};
use roundelay_core::ids::RankId;
use roundelay_core::schedule::{Buffer, Schedule};
use roundelay_core::verify::{Proof, Proved};

use super::error::Error;

/// A proved schedule with a count, a dtype and an op.
#[derive(Clone)]
pub(super) struct Shape {
    pub(super) schedule: Arc<Schedule>,
    pub(super) proof: Arc<Proof>,
    pub(super) count: u64,
    pub(super) dtype: DType,
    pub(super) op: ReduceOp,
}

impl Shape {
    pub(super) fn new(proved: &Proved, count: u64, dtype: DType, op: ReduceOp) -> Self {
        let (schedule, proof) = (proved.schedule().clone(), proved.proof().clone());
        Self { schedule, proof, count, dtype, op }
    }

    pub(super) fn ranks(&self) -> impl Iterator<Item = RankId> + use<> {
        (0..self.schedule.nranks).map(RankId)
    }

    /// Elements of the input of `rank`.
    pub(super) fn input_len(&self, rank: RankId) -> usize {
        self.schedule.elements(Buffer::Input, rank, self.count) as usize
    }

    /// Elements of the output of `rank`.
    pub(super) fn output_len(&self, rank: RankId) -> usize {
        self.schedule.elements(Buffer::Output, rank, self.count) as usize
    }

    /// Elements of the one buffer of `rank` in place.
    pub(super) fn in_place_len(&self, rank: RankId) -> usize {
        self.input_len(rank).max(self.output_len(rank))
    }

    pub(super) fn check_dtype(&self, given: DType) -> Result<(), Error> {
        let expected = self.dtype;
        if given == expected { Ok(()) } else { Err(Error::WrongDType { given, expected }) }
    }

    /// Whether there is a buffer for each rank.
    pub(super) fn check_count(&self, what: &'static str, given: usize) -> Result<(), Error> {
        let nranks = self.schedule.nranks;
        if given == nranks as usize {
            Ok(())
        } else {
            Err(Error::WrongBufferCount { what, given, nranks })
        }
    }

    /// Whether a buffer of `rank` has `expected` elements and begins where one can; `per_element` is 1 for typed
    /// slices, and the element's size for bytes.
    pub(super) fn check_buffer<T>(
        &self,
        what: &'static str,
        rank: RankId,
        buffer: &[T],
        per_element: usize,
        expected: usize,
    ) -> Result<(), Error> {
        let expected = expected * per_element;
        if buffer.len() != expected {
            return Err(Error::WrongBufferLength {
                what,
                rank,
                given: buffer.len() as u64,
                expected: expected as u64,
                unit: if per_element == 1 { "elements" } else { "bytes" },
            });
        }
        if expected != 0 && !buffer.as_ptr().addr().is_multiple_of(self.dtype.size()) {
            return Err(Error::MisalignedBuffer { what, rank, dtype: self.dtype });
        }
        Ok(())
    }

    /// Whether there is an in-place form.
    pub(super) fn check_in_place(&self) -> Result<(), Error> {
        let why = match () {
            () if !self.schedule.collective.has_in_place() => "AllToAll has no in-place form",
            () if self.schedule.out_of_place => "the algorithm is marked `out_of_place`",
            () if !self.proof.in_place => "the algorithm was not proved in place",
            () => return Ok(()),
        };
        Err(Error::NoInPlace { why })
    }

    /// Where input and output of `rank` are in its one buffer, which was found long enough.
    pub(super) fn in_place(&self, rank: RankId, whole: *mut u8) -> (*mut u8, *mut u8) {
        let unit = self.count as usize * self.dtype.size();
        // `wrapping` for buffers of no elements.
        let part = |units: u32| whole.wrapping_add(units as usize * unit);
        let (input, output) = self.schedule.collective.alias(rank, self.schedule.root).starts();
        (part(input), part(output))
    }
}
