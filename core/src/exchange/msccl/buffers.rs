//! Where chunks lie. The data of a call is cut into `nchunksperloop` chunks, whatever buffer they are of; in place,
//! input and output are parts of one buffer, which a program may write everywhere.

use super::Program;
use super::program::{Gpu, Kind, Memory, Mode, Operation, Place};
use super::report::span;
use crate::collective::{Alias, Collective};
use crate::diagnostics::{Code, Diagnostic};
use crate::ids::{RankId, ScratchId, SpanId};
use crate::rational::Rat;
use crate::schedule::{Buffer, Region, Scratch};

/// The buffers of a program that is called in one mode.
pub(super) struct Buffers {
    collective: Collective,
    /// Whether the collective is that of the program, and not one that stands in for it.
    promised: bool,
    nranks: u32,
    /// The width of a chunk, in units of the count.
    width: Rat,
    in_place: bool,
    both: bool,
    scratch: Vec<Scratch>,
    /// The program's scratch, and the buffer that stands for one that the program may write.
    own: Option<ScratchId>,
    home: Option<ScratchId>,
}

impl Buffers {
    pub(super) fn new(program: &Program, mode: Mode) -> Self {
        let header = &program.header;
        let nranks = header.nranks;
        // A program that promises nothing is laid out over blocks of input and output, as many as there are ranks.
        let collective = header.collective.unwrap_or(Collective::AllToAll);
        let promised = header.collective.is_some();
        let whole = match collective {
            Collective::AllReduce => 1,
            _ => u64::from(nranks),
        };
        let named = |gpu: &Gpu| gpu.chunks[0].max(gpu.chunks[1]);
        let chunks = if promised {
            header.chunks
        } else {
            // As many a block as will do: then a chunk is a whole part of a unit.
            let most = program.gpus.iter().map(named).fold(header.chunks, u32::max);
            most.div_ceil(nranks).saturating_mul(nranks)
        };
        let width = Rat::new(whole, u64::from(chunks.max(1))).unwrap_or(Rat::ONE);
        let in_place = mode == Mode::InPlace;
        let mut buffers = Self {
            collective,
            promised,
            nranks,
            width,
            in_place,
            both: mode == Mode::Both,
            scratch: Vec::new(),
            own: None,
            home: None,
        };
        let own = program.gpus.iter().map(|gpu| gpu.chunks[2]).max().unwrap_or(0);
        if own > 0 {
            buffers.own = Some(buffers.declare("scratch", buffers.chunks(own)));
        }
        let staged = !promised || collective == Collective::ReduceScatter && in_place;
        if staged {
            buffers.home = Some(buffers.declare("buffer", Rat::whole(nranks.into())));
        }
        buffers
    }

    fn declare(&mut self, name: &str, width: Rat) -> ScratchId {
        self.scratch.push(Scratch { name: name.to_owned(), slots: 1, width });
        ScratchId(self.scratch.len() as u32 - 1)
    }

    pub(super) fn scratch(&self) -> Vec<Scratch> {
        self.scratch.clone()
    }

    pub(super) fn collective(&self) -> Collective {
        self.collective
    }

    /// Every count is a multiple of this: then all chunks are equally long.
    pub(super) fn multiple(&self) -> u64 {
        self.width.den()
    }

    /// The width of so many chunks.
    pub(super) fn chunks(&self, count: u32) -> Rat {
        self.width.times(count.into()).unwrap_or(Rat::ZERO)
    }

    /// Chunks `first..first + count` of a place, as a region of the schedule; the place must lie within its buffer.
    pub(super) fn region(&self, rank: RankId, place: Place, (first, count): (u32, u32)) -> Region {
        let offset = u32::try_from(place.offset).unwrap_or(0).saturating_add(first);
        let (buffer, begins) = self.lies(rank, place.memory);
        let at = |chunk: u32| begins.plus(self.chunks(chunk)).unwrap_or(Rat::ZERO);
        let (lo, hi) = (at(offset), at(offset.saturating_add(count)));
        Region { buffer, slot: 0, base: Rat::ZERO, lo, hi }
    }

    /// The buffer that a memory of the program is part of, and where it begins there.
    fn lies(&self, rank: RankId, memory: Memory) -> (Buffer, Rat) {
        let shared = self.in_place && self.promised;
        let alias = if shared { self.collective_alias(rank) } else { Alias::Apart };
        let (input, output) = alias.starts();
        let home = self.home.map(Buffer::Scratch);
        let whole = |units: u32| Rat::whole(units.into());
        match (memory, alias) {
            (Memory::Scratch, _) => (self.own.map_or(Buffer::Output, Buffer::Scratch), Rat::ZERO),
            (Memory::Input, Alias::Apart) => (home.unwrap_or(Buffer::Input), Rat::ZERO),
            (Memory::Output, Alias::Apart) => (Buffer::Output, Rat::ZERO),
            (Memory::Input, _) => (home.unwrap_or(Buffer::Output), whole(input)),
            (Memory::Output, _) => (home.unwrap_or(Buffer::Output), whole(output)),
        }
    }

    /// How input and output lie in place. The runtime calls programs for `AllToAll` in place, too.
    fn collective_alias(&self, rank: RankId) -> Alias {
        match self.collective {
            Collective::AllToAll => Alias::InputInOutput(0),
            collective => collective.alias(rank, RankId(0)),
        }
    }

    fn units(&self, rank: RankId, buffer: Buffer) -> u32 {
        match buffer {
            Buffer::Input => self.collective.input_units(rank, self.nranks, RankId(0)),
            _ => self.collective.output_units(rank, self.nranks, RankId(0)),
        }
    }

    /// Chunks of the buffers of all ranks, as far as the program uses them.
    pub(super) fn places(&self, program: &Program) -> u64 {
        let end = |place: Place, count: u32| match place.memory {
            Memory::Scratch => place.offset.saturating_add(count.into()),
            _ => 0,
        };
        let all = program.gpus.iter().flat_map(|gpu| &gpu.blocks).flat_map(|b| &b.operations);
        let ends = all.map(|o| end(o.src, o.count).max(end(o.dst, o.count)));
        let scratch = u64::try_from(ends.max().unwrap_or(0)).unwrap_or(0);
        let of_unit = self.width.den() / self.width.num().max(1) + 1;
        let units = self.collective.max_units(self.nranks) * 2;
        let rank = of_unit.saturating_mul(units).saturating_add(scratch);
        rank.saturating_mul(self.nranks.into())
    }

    /// Where the input is brought before all else, so that the program may write there.
    pub(super) fn entry(&self, rank: RankId) -> Option<[Region; 2]> {
        if !self.in_place && self.home.is_none() {
            return None;
        }
        let whole = Rat::whole(self.units(rank, Buffer::Input).into());
        let (buffer, begins) = self.lies(rank, Memory::Input);
        let from = region(Buffer::Input, Rat::ZERO, whole);
        Some([from, region(buffer, begins, whole)])
    }

    /// Where the output is taken from at the end.
    pub(super) fn exit(&self, rank: RankId) -> Option<[Region; 2]> {
        let whole = Rat::whole(self.units(rank, Buffer::Output).into());
        let (buffer, begins) = self.lies(rank, Memory::Output);
        let to = region(Buffer::Output, Rat::ZERO, whole);
        (buffer != Buffer::Output).then(|| [region(buffer, begins, whole), to])
    }

    /// Chunks of a memory that a rank has.
    fn room(&self, rank: RankId, gpu: &Gpu, memory: Memory) -> u64 {
        let buffer = match memory {
            Memory::Input => Buffer::Input,
            Memory::Output => Buffer::Output,
            Memory::Scratch => return gpu.chunks_of(memory).into(),
        };
        if !self.promised {
            return gpu.chunks_of(memory).into();
        }
        u64::from(self.units(rank, buffer)) * self.width.den() / self.width.num().max(1)
    }

    /// What operations do that no schedule can say.
    pub(super) fn wrong(&self, program: &Program) -> Vec<Diagnostic> {
        let mut wrong = Vec::new();
        for (rank, gpu) in (0..).map(RankId).zip(&program.gpus) {
            for operation in gpu.blocks.iter().flat_map(|block| &block.operations) {
                wrong.extend(self.wrong_operation(program, (rank, gpu), operation));
                if wrong.len() >= MOST {
                    return wrong;
                }
            }
        }
        wrong
    }

    fn wrong_operation(
        &self,
        program: &Program,
        (rank, gpu): (RankId, &Gpu),
        operation: &Operation,
    ) -> Option<Diagnostic> {
        let Operation { kind, src, dst, count, at, .. } = *operation;
        let name = |at| program.step(at).map(|step| step.to_string()).unwrap_or_default();
        let more =
            operation.more.iter().map(|(offset, at)| (Place { offset: *offset, ..src }, *at));
        let sources = kind.reads().then_some((src, at)).into_iter().chain(more);
        let target = kind.writes().then_some((dst, at));
        for (place, at) in sources.clone().chain(target) {
            let room = self.room(rank, gpu, place.memory);
            let end = place.offset.saturating_add(count.into());
            if count > 0 && (place.offset < 0 || end as u64 > room) {
                let letter = place.memory.letter();
                let title = format!(
                    "chunks {}..{end} of `{letter}`, of which gpu {rank} has {room}",
                    place.offset
                );
                let diagnostic = Diagnostic::new(Code::OutOfBounds, span(at), title);
                return Some(diagnostic.note(name(at)));
            }
        }
        let (dst, at) = target?;
        if dst.memory == Memory::Input && !self.in_place && self.promised && count > 0 {
            let title = "out of place, the input is written";
            return Some(Diagnostic::new(Code::InputWritten, span(at), title).note(name(at)).help(
                "write `o`, or say that the program is called in place alone: `outofplace=\"0\"`",
            ));
        }
        let overlapping = |(src, at): (Place, SpanId)| {
            self.overlap(rank, (src, dst), count).then(|| {
                let title = format!("a `{}` whose source and destination overlap", kind.word());
                Diagnostic::new(Code::RepeatedDestination, span(at), title).note(name(at))
            })
        };
        // What is received and not reduced comes from the connection.
        sources.filter(|_| kind != Kind::ReceiveCopySend).find_map(overlapping)
    }

    /// Whether two places have chunks in common, and are not the same.
    fn overlap(&self, rank: RankId, (src, dst): (Place, Place), count: u32) -> bool {
        let part = |buffers: &Self| {
            let [src, dst] = [src, dst].map(|place| buffers.region(rank, place, (0, count)));
            src != dst && src.buffer == dst.buffer && src.lo < dst.hi && dst.lo < src.hi
        };
        let aliased = || part(&Self { in_place: true, both: false, scratch: Vec::new(), ..*self });
        part(self) || self.both && aliased()
    }
}

/// Errors that are told.
const MOST: usize = 16;

/// A stretch of a buffer that has no slots.
fn region(buffer: Buffer, lo: Rat, width: Rat) -> Region {
    let hi = lo.plus(width).unwrap_or(lo);
    Region { buffer, slot: 0, base: Rat::ZERO, lo, hi }
}
