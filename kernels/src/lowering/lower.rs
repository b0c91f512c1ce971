//! From ops to instructions: every access is checked once against the length of its buffer, and moves in a row
//! are cut into segments.

use std::collections::HashSet;

use roundelay_core::collective::Alias;
use roundelay_core::diagnostics::Code as ErrorCode;
use roundelay_core::dtype::{DType, ReduceOp};
use roundelay_core::ids::{OpId, RankId, StreamId};
use roundelay_core::optimize::{Level, Optimized};
use roundelay_core::schedule::{Buffer, Op, OpKind, Schedule};

use super::code::{Buffers, Code, Instr, InstrKind, Task, bad};
use super::plan_call::check_multiple;
use super::segments::{MAX_OPERANDS, Move, Operand, PARTIAL, Segment, Segments, TILE};
use crate::error::Error;
use crate::reduce::{Kernel, Stores, last_level_cache};

/// Lowers a schedule to code. If `optimized` is fused, at level O2, all its scratch is partials. The plans of all
/// engines are made of this code, so every engine refuses an op that `dtype` does not have.
pub(crate) fn lower(
    optimized: &Optimized,
    count: u64,
    dtype: DType,
    op: ReduceOp,
) -> Result<Code, Error> {
    let (schedule, proof) = (&*optimized.schedule, &*optimized.proof);
    if schedule.nranks == 0 {
        return Err(Error::NoRanks { nranks: 0 });
    }
    check_multiple(schedule, count)?;
    let in_memory = if optimized.level == Level::O2 { 0 } else { schedule.scratch.len() };
    let kernel = Kernel::new(dtype, op)?;
    let buffers = Buffers::new(schedule, in_memory, count, (dtype, kernel.width()))?;
    let averages = op == ReduceOp::Avg && schedule.collective.reduces();
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
    let mut lower = Lower::new(optimized, &buffers, kernel, count);
    let mut tasks = Vec::with_capacity(schedule.streams.len());
    for (at, stream) in schedule.streams.iter().enumerate() {
        let first = lower.instrs.len() as u32;
        let ids = stream.first.0..stream.first.0.saturating_add(stream.len);
        if ids.end as usize > schedule.ops.len() || stream.rank.0 >= schedule.nranks {
            return Err(bad(
                ErrorCode::OutOfBounds,
                format!("stream {at} has ops or a rank that do not exist"),
            ));
        }
        for (step, id) in (0..).zip(ids.map(OpId)) {
            lower.op(schedule.op(id), finishes[id.index()], (StreamId(at as u32), step))?;
        }
        if averages && proof.scale_outputs && stream.index == 0 {
            lower.scale(stream.rank, stream.len);
        }
        lower.cut()?;
        tasks.push(Task { first, len: lower.instrs.len() as u32 - first });
    }
    let independent =
        lower.instrs.iter().all(|instr| instr.kind == InstrKind::Data) && lower.independent();
    let Lower { instrs, segments, moves, operands, bytes, .. } = lower;
    let partials = if optimized.level == Level::O2 {
        schedule.scratch.iter().map(|scratch| scratch.slots).sum()
    } else {
        0
    };
    let elements = buffers.len.iter().fold(0_usize, |all, len| all.saturating_add(*len));
    let memory = elements.saturating_mul(dtype.size());
    // Somewhat above the cache's size, enough of the data is still found in the cache: measured, see the book's page on
    // the engine.
    let large = memory > last_level_cache() / 4 * 5;
    Ok(Code {
        instrs: instrs.into(),
        tasks: tasks.into(),
        segments: Segments {
            kernel,
            nranks: schedule.nranks,
            all: segments.into(),
            moves: moves.into(),
            operands: operands.into(),
            partials,
            partial: TILE
                * if schedule.scratch.iter().any(|s| s.wide) { kernel.width() } else { 1 },
            stores: if large && independent { Stores::Streaming } else { Stores::Cached },
        },
        channels: schedule.channels.len(),
        ops: schedule.ops.len() as u64,
        buffers,
        bytes,
        independent,
    })
}

/// The lowering of a schedule under way, with the instructions so far.
struct Lower<'a> {
    schedule: &'a Schedule,
    buffers: &'a Buffers,
    /// First element and length of each region; regions are interned, so this is done once for all ranks.
    extents: Vec<(u64, u64)>,
    count: u64,
    size: usize,
    /// Elements that a wide element takes the place of.
    width: usize,
    /// Whether all scratch is partials.
    fused: bool,
    /// Whether input and output may share memory.
    in_place: bool,
    instrs: Vec<Instr>,
    segments: Vec<Segment>,
    moves: Vec<Move>,
    operands: Vec<Operand>,
    bytes: u64,
    /// Elements and step of the moves since the last signal.
    row: Vec<(usize, u32)>,
}

impl<'a> Lower<'a> {
    fn new(optimized: &'a Optimized, buffers: &'a Buffers, kernel: Kernel, count: u64) -> Self {
        let schedule = &*optimized.schedule;
        Self {
            schedule,
            buffers,
            extents: schedule.regions.iter().map(|region| schedule.extent(region, count)).collect(),
            count,
            size: kernel.size(),
            width: kernel.width(),
            fused: optimized.level == Level::O2,
            in_place: optimized.proof.in_place,
            instrs: Vec::with_capacity(schedule.ops.len()),
            segments: Vec::new(),
            moves: Vec::new(),
            operands: Vec::with_capacity(schedule.operands.len()),
            bytes: 0,
            row: Vec::new(),
        }
    }

    /// Lowers the next op of a stream.
    fn op(&mut self, op: &Op, finish: bool, (stream, step): (StreamId, u32)) -> Result<(), Error> {
        let kind = match op.kind {
            OpKind::Move => return self.data(op, finish, step),
            OpKind::Post => InstrKind::Post,
            OpKind::Wait => InstrKind::Wait,
        };
        if op.arg as usize >= self.schedule.channels.len() {
            let what = format!("stream {stream} uses channel {}, which does not exist", op.arg);
            return Err(bad(ErrorCode::OutOfBounds, what));
        }
        self.cut()?;
        self.instrs.push(Instr { kind, arg: op.arg, step });
        Ok(())
    }

    fn data(&mut self, op: &Op, finish: bool, step: u32) -> Result<(), Error> {
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
            if is_destination {
                if self.schedule.region(operand).buffer == Buffer::Input {
                    return Err(bad(
                        ErrorCode::InputWritten,
                        format!("a move writes the input of rank {}", operand.rank),
                    ));
                }
                if place.buffer != PARTIAL {
                    self.bytes = self.bytes.saturating_add(self.bytes_of(place, elements) as u64);
                }
            }
            self.operands.push(place);
        }
        let len = len.unwrap_or(0);
        self.apart(&self.operands[first..], len)?;
        let (first, Op { srcs, dsts, chain, .. }) = (first as u32, *op);
        self.moves.push(Move { first, srcs, dsts, finish, chain });
        self.row.push((len, step));
        Ok(())
    }

    fn place(&self, rank: RankId, region: usize) -> Result<(Operand, usize), Error> {
        let missing =
            || bad(ErrorCode::OutOfBounds, "a move of a region that does not exist".into());
        let place = self.schedule.regions.get(region).ok_or_else(missing)?;
        let known = match place.buffer {
            Buffer::Scratch(id) => self.schedule.scratch.get(id.index()).map(|s| s.slots),
            _ => Some(1),
        };
        if rank.0 >= self.schedule.nranks || known.is_none_or(|slots| place.slot >= slots) {
            return Err(missing());
        }
        let (first, len) = self.extents[region];
        let wide = self.schedule.is_wide_buffer(place.buffer);
        if let (true, Buffer::Scratch(id)) = (self.fused, place.buffer) {
            // A tile begins where its slot does.
            if place.lo != place.base {
                let what = "a part of a partial".to_owned();
                return Err(bad(ErrorCode::OutOfBounds, what));
            }
            let before: u32 = self.schedule.scratch[..id.index()].iter().map(|s| s.slots).sum();
            let offset = (before + place.slot) as usize;
            return Ok((Operand { buffer: PARTIAL, offset, wide }, len as usize));
        }
        let width = if wide { self.width } else { 1 };
        let whole = self.buffers.len(place.buffer, rank) as u64;
        let end = first.checked_add(len).and_then(|end| end.checked_mul(width as u64));
        if end.is_none_or(|end| end > whole) {
            let name = self.schedule.buffer_name(place.buffer);
            return Err(bad(
                ErrorCode::OutOfBounds,
                format!(
                    "elements {first}..{first}+{len} of {name} of rank {rank}, which has {whole}"
                ),
            ));
        }
        let offset = first as usize * self.size * width;
        let buffer = self.buffers.index(place.buffer, rank);
        Ok((Operand { buffer, offset, wide }, len as usize))
    }

    /// Returns the bytes of elements of an operand.
    fn bytes_of(&self, operand: Operand, elements: usize) -> usize {
        elements * self.size * if operand.wide { self.width } else { 1 }
    }

    /// Returns a move's operands, sources first.
    fn of(&self, m: Move) -> &[Operand] {
        &self.operands[m.first as usize..][..(m.srcs + m.dsts) as usize]
    }

    /// Checks that operands are equal or apart, as the kernels need them.
    fn apart(&self, operands: &[Operand], len: usize) -> Result<(), Error> {
        for (at, a) in operands.iter().enumerate() {
            for b in &operands[at + 1..] {
                let distance = a.offset.abs_diff(b.offset);
                let user = a.buffer == b.buffer && a.buffer != PARTIAL;
                if user && distance != 0 && distance < self.bytes_of(*a, len) {
                    return Err(bad(
                        ErrorCode::RepeatedDestination,
                        "a move between overlapping regions".into(),
                    ));
                }
            }
        }
        Ok(())
    }

    /// Divides a rank's whole output, where completion is not uniform.
    fn scale(&mut self, rank: RankId, step: u32) {
        let first = self.operands.len() as u32;
        let buffer = self.buffers.index(Buffer::Output, rank);
        self.operands.extend([Operand { buffer, offset: 0, wide: false }; 2]);
        self.moves.push(Move { first, srcs: 1, dsts: 1, finish: true, chain: false });
        self.row.push((self.buffers.len(Buffer::Output, rank), step));
    }

    /// Cuts a row of moves into segments: partials begin and end within a segment.
    fn cut(&mut self) -> Result<(), Error> {
        let row = std::mem::take(&mut self.row);
        let begin = self.moves.len() - row.len();
        let mut ends = vec![true; row.len()];
        let mut live = HashSet::new();
        if self.fused {
            for (at, m) in self.moves[begin..].iter().enumerate().rev() {
                ends[at] = live.is_empty();
                let operands = self.of(*m);
                let (srcs, dsts) = operands.split_at(m.srcs as usize);
                let partials = |all: &[Operand]| {
                    let all = all.iter().filter(|o| o.buffer == PARTIAL);
                    all.map(|o| o.offset).collect::<Vec<_>>()
                };
                for slot in partials(dsts) {
                    live.remove(&slot);
                }
                live.extend(partials(srcs));
            }
        }
        if !live.is_empty() {
            return Err(bad(
                ErrorCode::UninitializedRead,
                "a partial is read before it is written".into(),
            ));
        }
        let mut first = 0;
        for (at, _) in ends.iter().enumerate().filter(|(_, end)| **end) {
            let (elements, step) = row[first];
            if row[first..=at].iter().any(|(len, _)| *len != elements) {
                return Err(bad(
                    ErrorCode::LengthMismatch,
                    "moves that share a partial differ in length".into(),
                ));
            }
            let moves = begin + first..begin + at + 1;
            let partials = self.moves[moves.clone()]
                .iter()
                .any(|m| self.of(*m).iter().any(|operand| operand.buffer == PARTIAL));
            let (first_move, len) = (moves.start as u32, moves.len() as u32);
            let segment = Segment { first: first_move, len, elements, partials };
            self.aligned(segment)?;
            let arg = self.segments.len() as u32;
            self.instrs.push(Instr { kind: InstrKind::Data, arg, step });
            self.segments.push(segment);
            first = at + 1;
        }
        Ok(())
    }

    /// Checks that each element's moves touch that element alone: only then do moves tile by tile have the results of
    /// moves one by one.
    fn aligned(&self, segment: Segment) -> Result<(), Error> {
        if segment.len == 1 {
            return Ok(());
        }
        let mut touched = Vec::new();
        for m in &self.moves[segment.first as usize..][..segment.len as usize] {
            let operands = self.of(*m);
            for (at, operand) in operands.iter().enumerate().filter(|(_, o)| o.buffer != PARTIAL) {
                let bytes = self.bytes_of(*operand, segment.elements);
                touched.push((self.home(*operand), at >= m.srcs as usize, bytes));
            }
        }
        touched.sort_unstable();
        let astray = touched.windows(2).any(|pair| {
            let [((buffer, at), writes, bytes), ((other, from), also, _)] = [pair[0], pair[1]];
            buffer == other && at != from && from - at < bytes && (writes || also)
        });
        if astray {
            return Err(bad(
                ErrorCode::RepeatedDestination,
                "moves that share a partial overlap".into(),
            ));
        }
        Ok(())
    }

    /// Returns the buffer and the offset of an operand, with input and output in one memory if they may be in place.
    fn home(&self, operand: Operand) -> (u32, usize) {
        let (buffer, rank) = self.buffers.of(operand.buffer);
        if !self.in_place {
            return (operand.buffer, operand.offset);
        }
        let starts = self.schedule.in_place_starts(rank, self.count);
        let output = self.buffers.index(Buffer::Output, rank);
        let input = self.buffers.index(Buffer::Input, rank);
        match (self.schedule.collective.alias(rank, self.schedule.root), buffer) {
            (Alias::InputInOutput(_), 0) => {
                (output, operand.offset + starts.0 as usize * self.size)
            }
            (Alias::OutputInInput(_), 1) => (input, operand.offset + starts.1 as usize * self.size),
            _ => (operand.buffer, operand.offset),
        }
    }

    /// Whether no segment writes memory that another segment touches, so that segments can run in any order and at
    /// once.
    fn independent(&self) -> bool {
        let mut touched = Vec::new();
        for (id, segment) in self.segments.iter().enumerate() {
            for m in &self.moves[segment.first as usize..][..segment.len as usize] {
                let operands = self.of(*m);
                for (at, operand) in operands.iter().enumerate() {
                    if operand.buffer != PARTIAL && segment.elements > 0 {
                        let (buffer, from) = self.home(*operand);
                        let to = from + self.bytes_of(*operand, segment.elements);
                        touched.push((buffer, from, to, id, at >= m.srcs as usize));
                    }
                }
            }
        }
        touched.sort_unstable();
        let mut here = u32::MAX;
        let (mut written, mut any) = (Furthest::default(), Furthest::default());
        for (buffer, from, to, id, writes) in touched {
            if buffer != here {
                (here, written, any) = (buffer, Furthest::default(), Furthest::default());
            }
            if from < written.by_others(id) || writes && from < any.by_others(id) {
                return false;
            }
            any.add(to, id);
            if writes {
                written.add(to, id);
            }
        }
        true
    }
}

/// The furthest end of accesses so far, its segment, and the furthest end of all other segments.
#[derive(Clone, Copy, Default)]
struct Furthest {
    end: usize,
    by: usize,
    others: usize,
}

impl Furthest {
    fn add(&mut self, end: usize, by: usize) {
        if self.by == by {
            self.end = self.end.max(end);
        } else if end > self.end {
            self.others = self.others.max(self.end);
            (self.end, self.by) = (end, by);
        } else {
            self.others = self.others.max(end);
        }
    }

    fn by_others(&self, id: usize) -> usize {
        if self.by == id { self.others } else { self.end }
    }
}
