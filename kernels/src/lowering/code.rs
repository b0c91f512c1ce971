//! A schedule lowered for one count, dtype and op: elements instead of fractions, table indices instead of
//! names.

use roundelay_core::diagnostics::Code as ErrorCode;
use roundelay_core::dtype::DType;
use roundelay_core::ids::{RankId, ScratchId};
use roundelay_core::schedule::{Buffer, Schedule};

use super::segments::Segments;
use crate::error::Error;

/// The code that workers execute.
#[derive(Clone)]
pub(crate) struct Code {
    pub(crate) instrs: Box<[Instr]>,
    /// A task for each stream of the schedule.
    pub(crate) tasks: Box<[Task]>,
    pub(crate) segments: Segments,
    pub(crate) channels: usize,
    pub(crate) buffers: Buffers,
    /// Ops of the schedule.
    pub(crate) ops: u64,
    /// Bytes that all moves together write, partials left aside.
    pub(crate) bytes: u64,
    /// Whether no signals are left, and segments can run in any order and at once.
    pub(crate) independent: bool,
}

impl Code {
    /// Returns the number of the first op behind the segment of an instruction, which stands for several ops where
    /// they hand partials to each other; beyond all ops for the last segment of the stream.
    pub(crate) fn step_after(&self, stream: u32, instr: Instr) -> u32 {
        let task = self.tasks[stream as usize];
        let instrs = &self.instrs[task.first as usize..][..task.len as usize];
        let next = instrs.partition_point(|other| other.step <= instr.step);
        instrs.get(next).map_or(u32::MAX, |next| next.step)
    }
}

/// A stream's instructions.
#[derive(Clone, Copy)]
pub(crate) struct Task {
    pub(crate) first: u32,
    pub(crate) len: u32,
}

#[derive(Clone, Copy)]
pub(crate) struct Instr {
    pub(crate) kind: InstrKind,
    /// The segment, the channel, or milliseconds.
    pub(crate) arg: u32,
    /// The number of ops of the stream before it.
    pub(crate) step: u32,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum InstrKind {
    Data,
    Post,
    Wait,
    /// A panic, for tests of the failure paths.
    Panic,
    /// A pause, for tests of the failure paths.
    Sleep,
}

/// The table of buffers: for each rank its input, its output, its scratch buffers.
#[derive(Clone)]
pub(crate) struct Buffers {
    per_rank: u32,
    /// Lengths in elements; scratch that keeps narrow floats as f32 is as long as its bytes.
    pub(crate) len: Box<[usize]>,
}

impl Buffers {
    pub(crate) fn index(&self, buffer: Buffer, rank: RankId) -> u32 {
        let which = match buffer {
            Buffer::Input => 0,
            Buffer::Output => 1,
            Buffer::Scratch(id) => 2 + id.0,
        };
        self.of_rank(rank).start + which
    }

    pub(crate) fn len(&self, buffer: Buffer, rank: RankId) -> usize {
        self.len[self.index(buffer, rank) as usize]
    }

    /// Returns the entries of a rank: its input, its output, its scratch buffers.
    pub(crate) fn of_rank(&self, rank: RankId) -> std::ops::Range<u32> {
        rank.0 * self.per_rank..(rank.0 + 1) * self.per_rank
    }

    /// Returns the scratch entries of the table.
    pub(crate) fn scratch(&self) -> impl Iterator<Item = u32> + Clone + '_ {
        (0..self.len.len() as u32).filter(|at| at % self.per_rank >= 2)
    }

    /// Returns the number of a buffer among its rank's buffers, 0 for the input and 1 for the output, and the rank.
    pub(crate) fn of(&self, index: u32) -> (u32, RankId) {
        (index % self.per_rank, RankId(index / self.per_rank))
    }

    /// Makes the table, with `scratch` scratch buffers a rank: none where all scratch is partials.
    pub(crate) fn new(
        schedule: &Schedule,
        scratch: usize,
        count: u64,
        (dtype, width): (DType, usize),
    ) -> Result<Self, Error> {
        let kinds: Vec<Buffer> = [Buffer::Input, Buffer::Output]
            .into_iter()
            .chain((0..scratch).map(|s| Buffer::Scratch(ScratchId(s as u32))))
            .collect();
        let mut len = Vec::new();
        for rank in (0..schedule.nranks).map(RankId) {
            for &buffer in &kinds {
                let width = if schedule.is_wide_buffer(buffer) { width as u64 } else { 1 };
                let elements = schedule.elements(buffer, rank, count).saturating_mul(width);
                let bytes = elements.checked_mul(dtype.size() as u64);
                if bytes.is_none_or(|bytes| isize::try_from(bytes).is_err()) {
                    let name = schedule.buffer_name(buffer);
                    return Err(Error::TooLarge {
                        what: format!(
                            "{name} of rank {rank} would have {elements} elements of {dtype}, more than memory can address"
                        ),
                    });
                }
                len.push(elements as usize);
            }
        }
        Ok(Self { per_rank: kinds.len() as u32, len: len.into() })
    }
}

pub(crate) fn bad(code: ErrorCode, what: String) -> Error {
    Error::BadSchedule { code, what }
}
