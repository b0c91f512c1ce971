//! The call that a plan was made for, and the checks of its callers' buffers.

use std::fmt::DebugStruct;
use std::sync::Arc;

use roundelay_core::certificate::Certificate;
use roundelay_core::collective::Collective;
use roundelay_core::counts::Counts;
use roundelay_core::dtype::{DType, ReduceOp};
use roundelay_core::ids::RankId;
use roundelay_core::schedule::{Buffer, Schedule};
use roundelay_core::trace::Data;
use roundelay_core::verify::{Proof, Proved, Signals};

use crate::buffers::Buffers;
use crate::error::Error;
use crate::recorder::CallRecordShape;

/// The call that a plan runs: a proved schedule with a count, a dtype and an op.
#[derive(Clone)]
pub struct PlannedCall {
    pub(crate) schedule: Arc<Schedule>,
    pub(crate) proof: Arc<Proof>,
    pub(crate) count: u64,
    pub(crate) dtype: DType,
    pub(crate) op: ReduceOp,
    /// The proof for equal counts and the counts of the blocks, where the schedule is for a vector of counts.
    pub(crate) even: Option<(Proved, Counts)>,
}

impl PlannedCall {
    pub(crate) fn new(proved: &Proved, count: u64, dtype: DType, op: ReduceOp) -> Self {
        let (schedule, proof) = (proved.schedule().clone(), proved.proof().clone());
        Self { schedule, proof, count, dtype, op, even: proved.even().cloned() }
    }

    /// Returns the certificate of the algorithm; for a vector of counts, that of its proof for equal counts.
    pub(crate) fn certificate(&self) -> Certificate {
        let (schedule, proof) = match &self.even {
            Some((even, _)) => (even.schedule(), even.proof()),
            None => (&self.schedule, &self.proof),
        };
        Certificate::direct(schedule, proof, Signals::default())
    }

    /// Adds the call to the text of a plan for debugging.
    pub(crate) fn describe(&self, of: &mut DebugStruct<'_, '_>) {
        of.field("algorithm", &self.schedule.algorithm)
            .field("count", &self.count)
            .field("dtype", &self.dtype)
            .field("op", &self.op);
    }

    /// Returns the name of the call in messages.
    pub(crate) fn name(&self) -> String {
        let Self { schedule, count, dtype, op, .. } = self;
        call_name((schedule.collective, schedule.root), (Some(*count), *dtype, *op))
    }

    /// Returns the shape of the calls for a record, where each runs the schedule `running`.
    pub(crate) fn recorded(&self, running: &Arc<Schedule>) -> CallRecordShape {
        let (schedule, data) = (running.clone(), Data { count: self.count, dtype: self.dtype });
        CallRecordShape { key: [0; 3], schedule, data, name: self.name() }
    }

    pub(crate) fn ranks(&self) -> impl Iterator<Item = RankId> + use<> {
        (0..self.schedule.nranks).map(RankId)
    }

    /// Returns the elements of the input of `rank`.
    pub(crate) fn input_len(&self, rank: RankId) -> usize {
        self.schedule.elements(Buffer::Input, rank, self.count) as usize
    }

    /// Returns the elements of the output of `rank`.
    pub(crate) fn output_len(&self, rank: RankId) -> usize {
        self.schedule.elements(Buffer::Output, rank, self.count) as usize
    }

    /// Returns the elements of the one buffer of `rank` in place.
    pub(crate) fn in_place_len(&self, rank: RankId) -> usize {
        self.input_len(rank).max(self.output_len(rank))
    }

    pub(crate) fn check_dtype(&self, given: DType) -> Result<(), Error> {
        let expected = self.dtype;
        if given == expected { Ok(()) } else { Err(Error::WrongDType { given, expected }) }
    }

    /// Checks that there is a buffer for each rank.
    pub(crate) fn check_count(&self, what: &'static str, given: usize) -> Result<(), Error> {
        let nranks = self.schedule.nranks;
        if given == nranks as usize {
            Ok(())
        } else {
            Err(Error::WrongBufferCount { what, given, nranks })
        }
    }

    /// Checks that a buffer of `rank`, of `len` elements at `address`, has `expected` elements and begins at an aligned
    /// address; `per_element` is 1 for typed slices, and the element's size for bytes.
    pub(crate) fn check_buffer(
        &self,
        what: &'static str,
        rank: RankId,
        (len, address): (usize, u64),
        per_element: usize,
        expected: usize,
    ) -> Result<(), Error> {
        let expected = expected * per_element;
        if len != expected {
            return Err(Error::WrongBufferLength {
                what,
                rank,
                given: len as u64,
                expected: expected as u64,
                unit: if per_element == 1 { "elements" } else { "bytes" },
            });
        }
        if expected != 0 && !address.is_multiple_of(self.dtype.size() as u64) {
            return Err(Error::MisalignedBuffer { what, rank, dtype: self.dtype });
        }
        Ok(())
    }

    /// Returns the bytes of a rank's input and output.
    #[cfg_attr(
        not(all(feature = "cuda", target_os = "linux")),
        allow(dead_code, reason = "only ranks of processes with a GPU map whole buffers")
    )]
    pub(crate) fn bytes(&self, rank: RankId) -> [usize; 2] {
        [self.input_len(rank), self.output_len(rank)].map(|len| len * self.dtype.size())
    }

    /// Checks that there is an in-place form.
    pub(crate) fn check_in_place(&self) -> Result<(), Error> {
        Buffers::check_in_place(&self.schedule, &self.proof)
    }

    /// Returns the offsets of input and output of `rank` in its one buffer, in bytes.
    pub(crate) fn in_place(&self, rank: RankId) -> (usize, usize) {
        let buffers = Buffers::new(&self.schedule, rank, self.count, self.dtype.size());
        (buffers.input_at, buffers.output_at)
    }

    /// Returns the addresses of input and output of `rank` in its one buffer, which was found long enough.
    pub(crate) fn split(&self, rank: RankId, whole: *mut u8) -> (*mut u8, *mut u8) {
        let (input, output) = self.in_place(rank);
        // `wrapping` for buffers of no elements.
        (whole.wrapping_add(input), whole.wrapping_add(output))
    }
}

/// Refuses a count for which nothing was proved.
pub(crate) fn check_multiple(schedule: &Schedule, count: u64) -> Result<(), Error> {
    match schedule.refuses(count) {
        Some(what) => Err(Error::BadOption { what, fix: "choose such a count" }),
        None => Ok(()),
    }
}

/// Returns the name of a call in messages, which has a count for each block where there is no one count.
pub(crate) fn call_name(
    (collective, root): (Collective, RankId),
    (count, dtype, op): (Option<u64>, DType, ReduceOp),
) -> String {
    let op = if collective.reduces() { format!(", {op}") } else { String::new() };
    let root = if collective.is_rooted() { format!(", root {root}") } else { String::new() };
    match count {
        Some(count) => format!("{collective} of {count} {dtype}{op}{root}"),
        None => format!("{collective}V of {dtype}{op}{root}"),
    }
}

/// Returns the name of a check in messages.
pub(crate) fn check_name(call: &str) -> String {
    format!("the check of {call}")
}

/// Returns the length and the address of a slice.
pub(crate) fn extent<T>(slice: &[T]) -> (usize, u64) {
    (slice.len(), slice.as_ptr().addr() as u64)
}
