//! A schedule lowered for one count, dtype and op: elements instead of fractions, table indices instead of
//! names, and every access checked once against the length of its buffer.

use roundelay_core::diagnostics::Code as ErrorCode;
use roundelay_core::dtype::{DType, ReduceOp};
use roundelay_core::ids::{OpId, RankId, ScratchId, StreamId};
use roundelay_core::schedule::{Buffer, Op, OpKind, Schedule};
use roundelay_core::verify::Proof;

use super::error::Error;
use crate::reduce::Kernel;

/// Sources of a move, and destinations: at most so many of each.
pub(super) const MAX_OPERANDS: usize = 8;

/// What the workers execute.
#[derive(Clone)]
pub(super) struct Code {
    pub(super) instrs: Box<[Instr]>,
    pub(super) operands: Box<[Operand]>,
    /// One for each stream of the schedule.
    pub(super) tasks: Box<[Task]>,
    pub(super) channels: usize,
    pub(super) buffers: Buffers,
    pub(super) kernel: Kernel,
    pub(super) nranks: u32,
    /// Bytes that all moves together write.
    pub(super) bytes: u64,
}

/// A stream's instructions; instruction `k` stands for op `k` of the stream.
#[derive(Clone, Copy)]
pub(super) struct Task {
    pub(super) first: u32,
    pub(super) len: u32,
}

#[derive(Clone, Copy)]
pub(super) struct Instr {
    pub(super) kind: Kind,
    pub(super) srcs: u8,
    pub(super) dsts: u8,
    /// The first operand, the channel, or milliseconds.
    pub(super) arg: u32,
    /// Elements.
    pub(super) len: usize,
}

#[derive(Clone, Copy, PartialEq)]
pub(super) enum Kind {
    Move,
    /// A move whose result is divided by the rank count.
    Finish,
    /// Divides its one operand, in place.
    Divide,
    Post,
    Wait,
    /// For tests of the failure paths.
    Panic,
    /// For tests of the failure paths.
    Sleep,
}

/// An address, once the buffers are known.
#[derive(Clone, Copy)]
pub(super) struct Operand {
    /// Index in the table of buffers.
    pub(super) buffer: u32,
    /// Bytes.
    pub(super) offset: usize,
}

/// The table of buffers: for each rank its input, its output, its scratch buffers.
#[derive(Clone)]
pub(super) struct Buffers {
    per_rank: u32,
    /// Lengths in elements.
    pub(super) len: Box<[usize]>,
}

impl Buffers {
    pub(super) fn index(&self, buffer: Buffer, rank: RankId) -> u32 {
        let which = match buffer {
            Buffer::Input => 0,
            Buffer::Output => 1,
            Buffer::Scratch(id) => 2 + id.0,
        };
        rank.0 * self.per_rank + which
    }

    pub(super) fn len(&self, buffer: Buffer, rank: RankId) -> usize {
        self.len[self.index(buffer, rank) as usize]
    }

    /// The scratch entries of the table.
    pub(super) fn scratch(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.len.len()).filter(|at| *at as u32 % self.per_rank >= 2)
    }

    fn new(schedule: &Schedule, count: u64, dtype: DType) -> Result<Self, Error> {
        let kinds: Vec<Buffer> = [Buffer::Input, Buffer::Output]
            .into_iter()
            .chain((0..schedule.scratch.len()).map(|s| Buffer::Scratch(ScratchId(s as u32))))
            .collect();
        let mut len = Vec::new();
        for rank in (0..schedule.nranks).map(RankId) {
            for &buffer in &kinds {
                let elements = schedule.elements(buffer, rank, count);
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

fn bad(code: ErrorCode, what: String) -> Error {
    Error::BadSchedule { code, what }
}

impl Code {
    pub(super) fn new(
        schedule: &Schedule,
        proof: &Proof,
        count: u64,
        dtype: DType,
        op: ReduceOp,
    ) -> Result<Self, Error> {
        if schedule.nranks == 0 {
            return Err(Error::NoRanks);
        }
        let averages = op == ReduceOp::Avg && schedule.collective.reduces();
        let mut code = Self {
            instrs: Box::default(),
            operands: Box::default(),
            tasks: Box::default(),
            channels: schedule.channels.len(),
            buffers: Buffers::new(schedule, count, dtype)?,
            kernel: Kernel::new(dtype, op),
            nranks: schedule.nranks,
            bytes: 0,
        };
        // Where each region begins and how long it is; regions are interned, so this is done once for all ranks.
        let extents: Vec<(u64, u64)> =
            schedule.regions.iter().map(|region| schedule.extent(region, count)).collect();
        let mut finishes = vec![false; schedule.ops.len()];
        if averages {
            for id in &proof.finish {
                *finishes.get_mut(id.index()).ok_or_else(|| {
                    bad(
                        ErrorCode::OutOfBounds,
                        format!("the proof names op {id}, which does not exist"),
                    )
                })? = true;
            }
        }
        let mut lower =
            Lower { schedule, code: &mut code, extents, size: dtype.size(), operands: Vec::new() };
        let mut instrs = Vec::with_capacity(schedule.ops.len());
        let mut tasks = Vec::with_capacity(schedule.streams.len());
        for (at, stream) in schedule.streams.iter().enumerate() {
            let first = instrs.len() as u32;
            let ids = stream.first.0..stream.first.0.saturating_add(stream.len);
            if ids.end as usize > schedule.ops.len() || stream.rank.0 >= schedule.nranks {
                return Err(bad(
                    ErrorCode::OutOfBounds,
                    format!("stream {at} has ops or a rank that do not exist"),
                ));
            }
            for id in ids.map(OpId) {
                instrs.push(lower.op(
                    schedule.op(id),
                    finishes[id.index()],
                    StreamId(at as u32),
                )?);
            }
            if averages && proof.scale_outputs && stream.index == 0 {
                instrs.push(lower.scale(stream.rank));
            }
            tasks.push(Task { first, len: instrs.len() as u32 - first });
        }
        let operands = lower.operands;
        code.instrs = instrs.into();
        code.operands = operands.into();
        code.tasks = tasks.into();
        Ok(code)
    }
}

struct Lower<'a> {
    schedule: &'a Schedule,
    code: &'a mut Code,
    extents: Vec<(u64, u64)>,
    size: usize,
    operands: Vec<Operand>,
}

impl Lower<'_> {
    fn op(&mut self, op: &Op, finish: bool, stream: StreamId) -> Result<Instr, Error> {
        let kind = match op.kind {
            OpKind::Move => return self.data(op, finish),
            OpKind::Post => Kind::Post,
            OpKind::Wait => Kind::Wait,
        };
        if op.arg as usize >= self.code.channels {
            return Err(bad(
                ErrorCode::OutOfBounds,
                format!("stream {stream} uses channel {}, which does not exist", op.arg),
            ));
        }
        Ok(Instr { kind, srcs: 0, dsts: 0, arg: op.arg, len: 0 })
    }

    fn data(&mut self, op: &Op, finish: bool) -> Result<Instr, Error> {
        let fits = |n: u8| (1..=MAX_OPERANDS).contains(&(n as usize));
        let all = op.arg as usize..op.arg as usize + op.srcs as usize + op.dsts as usize;
        if !fits(op.srcs) || !fits(op.dsts) || all.end > self.schedule.operands.len() {
            return Err(bad(
                ErrorCode::TooManyOperands,
                format!("a move of {} sources and {} destinations", op.srcs, op.dsts),
            ));
        }
        let first = self.operands.len();
        let mut len = None;
        for at in all {
            let operand = self.schedule.operands[at];
            let (place, elements) = self.place(operand.rank, operand.region.index())?;
            if *len.get_or_insert(elements) != elements {
                return Err(bad(
                    ErrorCode::LengthMismatch,
                    format!("a move of {elements} elements next to {}", len.unwrap_or(0)),
                ));
            }
            let is_destination = self.operands.len() - first >= op.srcs as usize;
            if is_destination && self.schedule.region(operand).buffer == Buffer::Input {
                return Err(bad(
                    ErrorCode::InputWritten,
                    format!("a move writes the input of rank {}", operand.rank),
                ));
            }
            self.operands.push(place);
        }
        let len = len.unwrap_or(0);
        self.disjoint(&self.operands[first..], len)?;
        let written = (len * self.size) as u64 * u64::from(op.dsts);
        self.code.bytes = self.code.bytes.saturating_add(written);
        let kind = if finish { Kind::Finish } else { Kind::Move };
        Ok(Instr { kind, srcs: op.srcs, dsts: op.dsts, arg: first as u32, len })
    }

    fn place(&self, rank: RankId, region: usize) -> Result<(Operand, usize), Error> {
        let missing =
            || bad(ErrorCode::OutOfBounds, "a move of a region that does not exist".into());
        let buffer = self.schedule.regions.get(region).ok_or_else(missing)?.buffer;
        let known = match buffer {
            Buffer::Scratch(id) => id.index() < self.schedule.scratch.len(),
            _ => true,
        };
        if rank.0 >= self.schedule.nranks || !known {
            return Err(missing());
        }
        let whole = self.code.buffers.len(buffer, rank) as u64;
        let (first, len) = self.extents[region];
        if first.checked_add(len).is_none_or(|end| end > whole) {
            let name = self.schedule.buffer_name(buffer);
            return Err(bad(
                ErrorCode::OutOfBounds,
                format!(
                    "elements {first}..{first}+{len} of {name} of rank {rank}, which has {whole}"
                ),
            ));
        }
        let offset = first as usize * self.size;
        Ok((Operand { buffer: self.code.buffers.index(buffer, rank), offset }, len as usize))
    }

    /// The kernels take operands that are equal or apart.
    fn disjoint(&self, operands: &[Operand], len: usize) -> Result<(), Error> {
        for (at, a) in operands.iter().enumerate() {
            for b in &operands[at + 1..] {
                let distance = a.offset.abs_diff(b.offset);
                if a.buffer == b.buffer && distance != 0 && distance < len * self.size {
                    return Err(bad(
                        ErrorCode::RepeatedDestination,
                        "a move between overlapping regions".into(),
                    ));
                }
            }
        }
        Ok(())
    }

    fn scale(&mut self, rank: RankId) -> Instr {
        let arg = self.operands.len() as u32;
        self.operands
            .push(Operand { buffer: self.code.buffers.index(Buffer::Output, rank), offset: 0 });
        let len = self.code.buffers.len(Buffer::Output, rank);
        Instr { kind: Kind::Divide, srcs: 0, dsts: 1, arg, len }
    }
}
