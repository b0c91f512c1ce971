//! The memory that the proof uses: every unit of every buffer is cut at equal fractions, namely all those at which some
//! region begins or ends, so a region is a run of cells and cells map one to one. Where every count is a multiple of a
//! number m, the m-ths of units are cut at equal fractions.

use std::collections::BTreeMap;
use std::ops::Range;

use rustc_hash::FxHashMap;

use super::values::{CellValue, Leaf, ValueId, Values};
use crate::collective::Alias;
use crate::ids::{RankId, ScratchId};
use crate::rational::Rat;
use crate::schedule::{Buffer, Operand, Region, Schedule};

/// The limit of cell numbers; well below the numbers that have a special meaning.
const NUMBERED: u64 = 1 << 31;

/// The position in its buffer of the data that a slot of a rank's scratch holds, for slots that hold data of several
/// places.
pub(crate) type SlotOrigins = FxHashMap<(RankId, Buffer, u32), Rat>;

/// A slot of scratch, as an operand takes it.
pub(crate) struct Slot {
    pub(crate) key: (RankId, Buffer, u32),
    /// The position in its buffer at which the data of the operand begins.
    pub(crate) base: Rat,
    /// The cells of the slot in memory.
    pub(crate) cells: Range<u32>,
}

impl Slot {
    /// Returns the whole slot as the cells of an access where the slot holds data of another place than the operand's:
    /// data of different places lies at different cells of a slot.
    pub(crate) fn at_stake(self, origins: &mut SlotOrigins, writes: bool) -> Option<Range<u32>> {
        let held = origins.entry(self.key).or_insert(self.base);
        if *held == self.base {
            return None;
        }
        if writes {
            *held = self.base;
        }
        Some(self.cells)
    }
}

/// Whether input and output share memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BufferMode {
    OutOfPlace,
    InPlace,
}

impl BufferMode {
    pub(crate) const BOTH: [Self; 2] = [Self::OutOfPlace, Self::InPlace];
}

/// The cells of a schedule's regions, for all ranks alike.
pub(crate) struct Cells {
    /// Cells of a unit.
    pub(crate) per_unit: u32,
    /// Parts of a unit that are cut alike: the number that divides every count.
    parts: u64,
    /// The position within a part at which each of its cells begins.
    cuts: Vec<Rat>,
    /// Each region: first cell within its buffer, and number of cells.
    regions: Vec<(u32, u32)>,
    /// Cells of a slot, for each scratch buffer.
    slot: Vec<u32>,
    /// Whether the slots of a scratch buffer hold data of different shapes: the race check then treats a slot as one
    /// cell.
    pub(crate) reshaped: Vec<bool>,
}

impl Cells {
    /// Cuts the regions of a schedule; the error is the number of cells that a unit would have, where cells cannot be
    /// numbered.
    pub(crate) fn new(schedule: &Schedule) -> Result<Self, u32> {
        let parts = schedule.multiple;
        let mut cuts = BTreeMap::from([(Rat::ZERO, 0_u32)]);
        for region in &schedule.regions {
            for at in [region.base, region.lo, region.hi] {
                cuts.insert(at.times(parts).ok_or(u32::MAX)?.fraction(), 0);
            }
        }
        for (index, cut) in cuts.values_mut().enumerate() {
            *cut = index as u32;
        }
        let per_part = cuts.len() as u32;
        let per_unit = u64::from(per_part).saturating_mul(parts);
        let per_unit = u32::try_from(per_unit).map_err(|_| u32::MAX)?;
        let units = schedule.regions.iter().map(|region| region.hi.floor()).max().unwrap_or(0);
        let inputs = u64::from(schedule.collective.max_input_units(schedule.nranks));
        let most = units.saturating_add(1).max(inputs);
        let leaves = most.saturating_mul(per_unit.into()).saturating_mul(schedule.nranks.into());
        if leaves >= NUMBERED {
            return Err(per_unit);
        }
        let cell = |at: Rat| {
            let at = at.times(parts).unwrap_or(at);
            at.floor() as u32 * per_part + cuts[&at.fraction()]
        };
        let mut slot = vec![0; schedule.scratch.len()];
        let mut bases: Vec<Option<Rat>> = vec![None; schedule.scratch.len()];
        let mut reshaped = vec![false; schedule.scratch.len()];
        for region in &schedule.regions {
            if let Buffer::Scratch(id) = region.buffer {
                let need = cell(region.hi) - cell(region.base);
                slot[id.index()] = need.max(slot[id.index()]);
                let base = bases[id.index()].get_or_insert(region.base);
                reshaped[id.index()] |= *base != region.base;
            }
        }
        let slots = schedule.scratch.iter().zip(&slot);
        if slots.into_iter().any(|(s, cells)| u64::from(s.slots) * u64::from(*cells) >= NUMBERED) {
            return Err(per_unit);
        }
        let place = |region: &Region| {
            let from = match region.buffer {
                Buffer::Scratch(id) => region.slot * slot[id.index()],
                _ => 0,
            };
            (from + cell(region.lo) - cell(region.base), cell(region.hi) - cell(region.lo))
        };
        let regions = schedule.regions.iter().map(place).collect();
        let cuts = cuts.into_keys().collect();
        Ok(Self { per_unit, parts, cuts, regions, slot, reshaped })
    }

    /// Returns the stretch of a user buffer that `cell` covers.
    pub(crate) fn region(&self, cell: u32, buffer: Buffer) -> Region {
        let (lo, hi) = (self.boundary(cell), self.boundary(cell + 1));
        Region { buffer, slot: 0, base: Rat::ZERO, lo, hi }
    }

    /// Returns the position where a cell of a user buffer begins, in units.
    pub(crate) fn boundary(&self, cell: u32) -> Rat {
        let per_part = self.cuts.len() as u32;
        let (part, cut) = (cell / per_part, self.cuts[(cell % per_part) as usize]);
        let num = cut.num() + u64::from(part) * cut.den();
        cut.den().checked_mul(self.parts).and_then(|den| Rat::new(num, den)).unwrap_or(Rat::ZERO)
    }

    /// Returns a region's slot within its scratch buffer: first cell, and number of cells.
    pub(crate) fn slot(&self, region: &Region, id: ScratchId) -> (u32, u32) {
        (region.slot * self.slot[id.index()], self.slot[id.index()])
    }

    /// Returns the slot of a region of a rank, where slots of its buffer hold data of several places; `first` is the first
    /// cell of the buffer.
    pub(crate) fn reshaped_slot(&self, rank: RankId, region: &Region, first: u32) -> Option<Slot> {
        let Buffer::Scratch(id) = region.buffer else { return None };
        if !self.reshaped[id.index()] {
            return None;
        }
        let (slot, len) = self.slot(region, id);
        let cells = first + slot..first + slot + len;
        Some(Slot { key: (rank, region.buffer, region.slot), base: region.base, cells })
    }

    /// Returns the first cell of an operand within its buffer, and the number of cells.
    pub(crate) fn of(&self, operand: Operand) -> (u32, u32) {
        self.regions[operand.region.index()]
    }
}

/// The positions of each rank's buffers in one memory of cells.
pub(crate) struct MemoryLayout {
    /// The first cell of buffer b of rank r, at `r * buffers + b`.
    first: Vec<u32>,
    buffers: usize,
    /// The number of cells.
    pub(crate) size: u32,
}

impl MemoryLayout {
    /// Lays out the memory; `None` where it is larger than cells can be numbered.
    pub(crate) fn new(schedule: &Schedule, cells: &Cells, mode: BufferMode) -> Option<Self> {
        let buffers = 2 + schedule.scratch.len();
        let mut first = vec![0; schedule.nranks as usize * buffers];
        let mut size = 0_u64;
        for rank in (0..schedule.nranks).map(RankId) {
            let units = |buffer| {
                let units = schedule.units(buffer, rank);
                units.floor() * u64::from(cells.per_unit)
            };
            let (input, output) = (units(Buffer::Input), units(Buffer::Output));
            let per_unit = u64::from(cells.per_unit);
            let alias = match mode {
                BufferMode::OutOfPlace => Alias::Apart,
                BufferMode::InPlace => schedule.collective.alias(rank, schedule.root),
            };
            let (at_input, at_output, both) = match alias {
                Alias::Apart => (0, input, input + output),
                Alias::InputInOutput(unit) => (u64::from(unit) * per_unit, 0, output),
                Alias::OutputInInput(unit) => (0, u64::from(unit) * per_unit, input),
            };
            let row = &mut first[rank.index() * buffers..][..buffers];
            row[0] = u32::try_from(size + at_input).ok()?;
            row[1] = u32::try_from(size + at_output).ok()?;
            size += both;
            for (id, scratch) in schedule.scratch.iter().enumerate() {
                row[2 + id] = u32::try_from(size).ok()?;
                size += u64::from(cells.slot[id]) * u64::from(scratch.slots);
            }
        }
        // A cell takes 12 bytes; a larger proof would not fit this machine's memory.
        let size = u32::try_from(size).ok().filter(|size| *size < 1 << 28)?;
        Some(Self { first, buffers, size })
    }

    /// Lays out the memory of one rank, from the first cell of each buffer and the number of all cells.
    pub(crate) fn one(first: &[u64], size: u64) -> Self {
        let first: Vec<u32> = first.iter().map(|first| *first as u32).collect();
        Self { buffers: first.len(), first, size: size as u32 }
    }

    /// Returns the first cell of `buffer` of `rank`.
    pub(crate) fn buffer(&self, rank: RankId, buffer: Buffer) -> u32 {
        let buffer = match buffer {
            Buffer::Input => 0,
            Buffer::Output => 1,
            Buffer::Scratch(id) => 2 + id.index(),
        };
        self.first[rank.index() * self.buffers + buffer]
    }
}

/// Returns the values in memory when all ranks have entered: their inputs, and nothing else.
pub(crate) fn entered(schedule: &Schedule, cells: &Cells, layout: &MemoryLayout) -> Vec<ValueId> {
    let mut memory = vec![ValueId::NONE; layout.size as usize];
    for rank in (0..schedule.nranks).map(RankId) {
        let first = layout.buffer(rank, Buffer::Input);
        let units = schedule.units(Buffer::Input, rank).floor() as u32;
        for cell in 0..units * cells.per_unit {
            memory[(first + cell) as usize] = Values::leaf(Leaf { rank, cell });
        }
    }
    memory
}
