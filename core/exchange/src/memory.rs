//! The places of chunks. The data of a call is cut into equal chunks, in every buffer; in place, input and output are
//! parts of one buffer, all of which a program may write.

use super::terms::{Memory, Mode, Place};
use roundelay_core::collective::{Alias, Collective};
use roundelay_core::ids::{RankId, ScratchId};
use roundelay_core::rational::Rat;
use roundelay_core::schedule::{Buffer, Region, Scratch};

/// The sizes of a program's memory, and the mode in which the program is called.
pub(super) struct MemoryShape {
    /// The collective that the program promises; `None` if its result cannot be compared.
    pub(super) collective: Option<Collective>,
    pub(super) nranks: u32,
    /// Chunks of the data of a call.
    pub(super) chunks: u32,
    /// The most chunks of scratch of a rank.
    pub(super) scratch: u32,
    pub(super) mode: Mode,
}

/// The buffers of a program that is called in one mode.
pub(super) struct Memories {
    collective: Collective,
    /// Whether the collective is the program's own, and not `AllToAll` as a substitute.
    pub(super) promised: bool,
    nranks: u32,
    /// The width of a chunk, in units of the count.
    width: Rat,
    in_place: bool,
    both: bool,
    scratch: Vec<Scratch>,
    /// The program's scratch, and a scratch that replaces a buffer which the program may write.
    own: Option<ScratchId>,
    home: Option<ScratchId>,
}

impl Memories {
    pub(super) fn new(shape: &MemoryShape) -> Self {
        let MemoryShape { nranks, mode, .. } = *shape;
        // A program without a promise gets input and output of one block for each rank.
        let collective = shape.collective.unwrap_or(Collective::AllToAll);
        let promised = shape.collective.is_some();
        let whole = match collective {
            Collective::AllReduce => 1,
            _ => u64::from(nranks),
        };
        let chunks = if promised {
            shape.chunks
        } else {
            // Each block has the same number of chunks: then a unit is a whole number of chunks.
            shape.chunks.div_ceil(nranks).saturating_mul(nranks)
        };
        let width = Rat::new(whole, u64::from(chunks.max(1))).unwrap_or(Rat::ONE);
        let in_place = mode == Mode::InPlace;
        let mut memories = Self {
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
        if shape.scratch > 0 {
            memories.own = Some(memories.declare("scratch", memories.chunks(shape.scratch)));
        }
        let staged = !promised || collective == Collective::ReduceScatter && in_place;
        if staged {
            memories.home = Some(memories.declare("buffer", Rat::whole(nranks.into())));
        }
        memories
    }

    /// Declares a scratch buffer.
    pub(super) fn declare(&mut self, name: &str, width: Rat) -> ScratchId {
        self.scratch.push(Scratch { name: name.to_owned(), slots: 1, width, wide: false });
        ScratchId(self.scratch.len() as u32 - 1)
    }

    pub(super) fn scratch(&self) -> Vec<Scratch> {
        self.scratch.clone()
    }

    pub(super) fn collective(&self) -> Collective {
        self.collective
    }

    /// Returns the number that every count is a multiple of, so that all chunks are equally long.
    pub(super) fn multiple(&self) -> u64 {
        self.width.den()
    }

    /// Returns the width of `count` chunks.
    pub(super) fn chunks(&self, count: u32) -> Rat {
        self.width.times(count.into()).unwrap_or(Rat::ZERO)
    }

    /// Returns the region of chunks `first..first + count` of a place, which must lie within its buffer.
    pub(super) fn region(&self, rank: RankId, place: Place, (first, count): (u32, u32)) -> Region {
        let offset = u32::try_from(place.offset).unwrap_or(0).saturating_add(first);
        let (buffer, begins) = self.lies(rank, place.memory);
        let at = |chunk: u32| begins.plus(self.chunks(chunk)).unwrap_or(Rat::ZERO);
        let (lo, hi) = (at(offset), at(offset.saturating_add(count)));
        Region { buffer, slot: 0, base: Rat::ZERO, lo, hi }
    }

    /// Returns the buffer that holds a memory of the program, and the memory's start in it.
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

    /// Returns how input and output overlap in place. The runtime calls programs for `AllToAll` in place, too.
    fn collective_alias(&self, rank: RankId) -> Alias {
        match self.collective {
            Collective::AllToAll => Alias::InputInOutput(0),
            collective => collective.alias(rank, RankId(0)),
        }
    }

    /// Returns the units of the count that a rank's buffer has.
    pub(super) fn units(&self, rank: RankId, buffer: Buffer) -> u32 {
        match buffer {
            Buffer::Input => self.collective.input_units(rank, self.nranks, RankId(0)),
            _ => self.collective.output_units(rank, self.nranks, RankId(0)),
        }
    }

    /// Returns the regions of the copy that puts the input where the program may write it, before the first step.
    pub(super) fn entry(&self, rank: RankId) -> Option<[Region; 2]> {
        if !self.in_place && self.home.is_none() {
            return None;
        }
        let whole = Rat::whole(self.units(rank, Buffer::Input).into());
        let (buffer, begins) = self.lies(rank, Memory::Input);
        let from = region(Buffer::Input, Rat::ZERO, whole);
        Some([from, region(buffer, begins, whole)])
    }

    /// Returns the regions of the copy that fills the output after the last step.
    pub(super) fn exit(&self, rank: RankId) -> Option<[Region; 2]> {
        let whole = Rat::whole(self.units(rank, Buffer::Output).into());
        let (buffer, begins) = self.lies(rank, Memory::Output);
        let to = region(Buffer::Output, Rat::ZERO, whole);
        (buffer != Buffer::Output).then(|| [region(buffer, begins, whole), to])
    }

    /// Returns the chunks of a rank's input or output.
    pub(super) fn room(&self, rank: RankId, buffer: Buffer) -> u64 {
        u64::from(self.units(rank, buffer)) * self.width.den() / self.width.num().max(1)
    }

    /// Returns the chunks of all buffers of all ranks, if each rank uses `scratch` chunks of scratch.
    pub(super) fn places(&self, scratch: u64) -> u64 {
        let of_unit = self.width.den() / self.width.num().max(1) + 1;
        let units = self.collective.max_units(self.nranks) * 2;
        let rank = of_unit.saturating_mul(units).saturating_add(scratch);
        rank.saturating_mul(self.nranks.into())
    }

    /// Whether the program may not write the input.
    pub(super) fn keeps_input(&self) -> bool {
        !self.in_place && self.promised
    }

    /// Whether two different places have chunks in common.
    pub(super) fn overlap(&self, rank: RankId, (src, dst): (Place, Place), count: u32) -> bool {
        let part = |memories: &Self| {
            let [src, dst] = [src, dst].map(|place| memories.region(rank, place, (0, count)));
            src != dst && src.buffer == dst.buffer && src.lo < dst.hi && dst.lo < src.hi
        };
        let aliased = || part(&Self { in_place: true, both: false, scratch: Vec::new(), ..*self });
        part(self) || self.both && aliased()
    }
}

/// Returns a region of a buffer without slots.
fn region(buffer: Buffer, lo: Rat, width: Rat) -> Region {
    let hi = lo.plus(width).unwrap_or(lo);
    Region { buffer, slot: 0, base: Rat::ZERO, lo, hi }
}
