//! The memory that acts touch, as cells: of all ranks, or of rank 0, whose acts stand for those of all ranks.
//!
//! Where rank 0 stands for all, an act stands for its turned images at all ranks, and the memory of rank 0 is touched by
//! those images that touch it: a region of another rank is taken to rank 0 by the turn that undoes the rank.

use std::ops::Range;

use super::Message;
use crate::ids::RankId;
use crate::schedule::{Buffer, Operand, Schedule};
use crate::symmetry::space::{CellRange, Space, number};
use crate::turns::Turns;
use crate::verify::layout::{BufferMode, Cells, MemoryLayout};

/// The ranks whose acts are followed.
#[derive(Clone, Copy)]
pub(super) enum Followed<'a> {
    /// All ranks.
    All,
    /// Rank 0, which stands for all.
    One(&'a Turns),
}

impl Followed<'_> {
    /// The number of followed ranks, of `nranks`.
    pub(super) fn many(self, nranks: u32) -> usize {
        match self {
            Self::All => nranks as usize,
            Self::One(_) => 1,
        }
    }

    /// Returns the followed rank that stands for a rank.
    pub(super) fn home(self, rank: RankId) -> RankId {
        match self {
            Self::All => rank,
            Self::One(_) => RankId(0),
        }
    }

    /// Returns the followed pair of ranks that stands for a sender and a receiver.
    pub(super) fn pair(self, from: RankId, to: RankId) -> (RankId, RankId) {
        match self {
            Self::All => (from, to),
            Self::One(turns) => (RankId(0), RankId(turns.turn_between(from.0, to.0))),
        }
    }

    /// Returns the sender and the receiver of the image of a message that the followed sender sends.
    pub(super) fn sent(self, message: &Message) -> (RankId, RankId) {
        self.pair(message.from, message.to)
    }

    /// Returns the sender and the receiver of the image of a message that the followed receiver receives.
    pub(super) fn received(self, message: &Message) -> (RankId, RankId) {
        match self {
            Self::All => (message.from, message.to),
            Self::One(turns) => {
                (RankId(turns.turn_between(message.to.0, message.from.0)), RankId(0))
            }
        }
    }
}

/// The cells of the followed ranks' memory, in any mode.
pub(super) enum FormCells<'a> {
    /// Of all ranks.
    All(Cells),
    /// Of rank 0, with the scratch buffers whose slots hold data that begins at different places.
    One(&'a Space, Vec<bool>),
}

impl<'a> FormCells<'a> {
    /// Cuts the memory of all ranks; the error is the number of cells that a unit would have.
    pub(super) fn all(tables: &Schedule) -> Result<Self, u32> {
        Cells::new(tables).map(Self::All)
    }

    /// Cuts the memory of rank 0 alone.
    pub(super) fn one(tables: &Schedule, space: &'a Space) -> Self {
        let mut bases = vec![None; tables.scratch.len()];
        let mut reshaped = vec![false; tables.scratch.len()];
        for (region, moves) in tables.regions.iter().zip(space.moving_bases()) {
            if let Buffer::Scratch(id) = region.buffer {
                let base = bases[id.index()].get_or_insert(region.base);
                reshaped[id.index()] |= *base != region.base || *moves;
            }
        }
        Self::One(space, reshaped)
    }

    fn in_mode<'m>(
        &'m self,
        tables: &'m Schedule,
        mode: BufferMode,
    ) -> Result<FormMemory<'m>, u32> {
        let (kind, size) = match self {
            Self::All(cells) => {
                let layout = MemoryLayout::new(tables, cells, mode).ok_or(cells.per_unit)?;
                let size = layout.size;
                (Kind::All(cells, layout), size)
            }
            Self::One(space, reshaped) => {
                let (first, size) = space.layout(tables, mode);
                (Kind::One(space, reshaped, first), size as u32)
            }
        };
        Ok(FormMemory { tables, kind, size })
    }
}

/// A form in the making: its schedule without ops, the followed ranks, and their memory.
pub(super) struct FollowedForm<'a> {
    pub(super) tables: &'a Schedule,
    pub(super) ranks: Followed<'a>,
    pub(super) cells: &'a FormCells<'a>,
    pub(super) modes: &'a [BufferMode],
}

impl FollowedForm<'_> {
    /// Lays out the memory in a mode; the error is the number of cells of a unit, where they are too many.
    pub(super) fn in_mode(&self, mode: BufferMode) -> Result<FormMemory<'_>, u32> {
        self.cells.in_mode(self.tables, mode)
    }
}

enum Kind<'a> {
    All(&'a Cells, MemoryLayout),
    /// The space, the buffers whose slots hold data of several places, and the first cell of each buffer.
    One(&'a Space, &'a [bool], Vec<u64>),
}

/// The memory of the followed ranks in one mode.
pub(super) struct FormMemory<'a> {
    tables: &'a Schedule,
    kind: Kind<'a>,
    /// The number of cells.
    pub(super) size: u32,
}

impl FormMemory<'_> {
    /// Returns the cells of an operand.
    pub(super) fn of(&self, operand: Operand) -> Vec<Range<u32>> {
        self.ranges(operand, false)
    }

    /// Returns the cells of an operand that an access to it may touch: all cells of its slot where the slot holds data of
    /// several places, which lie at different cells of it.
    pub(super) fn at_stake(&self, operand: Operand) -> Vec<Range<u32>> {
        self.ranges(operand, true)
    }

    fn ranges(&self, operand: Operand, at_stake: bool) -> Vec<Range<u32>> {
        let region = self.tables.region(operand);
        match &self.kind {
            Kind::All(cells, layout) => {
                let first = layout.buffer(operand.rank, region.buffer);
                let (from, len) = match region.buffer {
                    Buffer::Scratch(id) if at_stake && cells.reshaped[id.index()] => {
                        cells.slot(region, id)
                    }
                    _ => cells.of(operand),
                };
                std::iter::once(first + from..first + from + len).collect()
            }
            Kind::One(space, reshaped, first) => {
                let back = space.turns.back(operand.rank.0);
                let whole = match region.buffer {
                    Buffer::Scratch(id) if at_stake && reshaped[id.index()] => space.slot(region),
                    _ => None,
                };
                let piece = whole.unwrap_or_else(|| space.piece(self.tables, operand));
                let first = first[number(region.buffer)];
                let range = |image: CellRange| {
                    let from = (first + image.first) as u32;
                    from..from + image.len as u32
                };
                space.images(piece, back).into_iter().map(range).collect()
            }
        }
    }
}
