//! One rank's program with its peers and blocks named by the round's distance, 2^k.

use super::terms::RoundSeat;
use crate::collective::Collective;
use crate::schedule::{Buffer, SignalKind};
use crate::source::Span;
use crate::verify::parametric::rounds::NotCovered;

/// The blocks of a buffer that a region has; seats count from the rank that runs the statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Blocks {
    /// The whole buffer.
    All,
    /// The block with the number of that rank.
    One(RoundSeat),
    /// The aligned group of 2^k blocks that contains the block of that rank, for a power of two nranks.
    Group(RoundSeat),
    /// The blocks from that rank's on, as many as `Quantity::Lacking` says, modulo nranks.
    Run(RoundSeat),
    /// The blocks of a run up to the last block of the buffer.
    Front(RoundSeat),
    /// The blocks of a run behind the last block of the buffer, from block 0 on.
    Wrapped(RoundSeat),
}

/// Blocks of the buffer of a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SeatPlace {
    pub(super) owner: RoundSeat,
    pub(super) buffer: Buffer,
    pub(super) blocks: Blocks,
}

/// A move: the sources are folded into each destination, and a reduce folds them into what the destination holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Move {
    pub(super) sources: Vec<SeatPlace>,
    pub(super) destinations: Vec<SeatPlace>,
    pub(super) reduces: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Action {
    Post(SignalKind, RoundSeat),
    Wait(SignalKind, RoundSeat),
    Move(Move),
}

/// A statement; the statements of a part stand in text order, and the parts too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RoundStep {
    pub(super) at: Span,
    pub(super) part: usize,
    pub(super) action: Action,
}

/// The program of every rank.
#[derive(Clone, Debug)]
pub(super) struct Doubling {
    pub(super) collective: Collective,
    pub(super) header: Span,
    pub(super) out_of_place: bool,
    /// Whether the program refuses an nranks that is no power of two.
    pub(super) powers_of_two: bool,
    /// For each part whether it is a loop over all rounds; another part runs once.
    pub(super) parts: Vec<bool>,
    pub(super) steps: Vec<RoundStep>,
    /// For each scratch buffer whether it has nranks blocks, and not one.
    pub(super) scratch: Vec<bool>,
}

/// Whether a buffer has nranks blocks, and not one; `scratch` says this of each scratch buffer.
pub(super) fn has_blocks(collective: Collective, scratch: &[bool], buffer: Buffer) -> bool {
    match buffer {
        Buffer::Input => false,
        Buffer::Output => collective == Collective::AllGather,
        Buffer::Scratch(id) => scratch[id.index()],
    }
}

impl Doubling {
    pub(super) fn in_rounds(&self, step: usize) -> bool {
        self.parts[self.steps[step].part]
    }

    pub(super) fn has_blocks(&self, buffer: Buffer) -> bool {
        has_blocks(self.collective, &self.scratch, buffer)
    }

    /// Returns the place as it lies in memory: in place, the input is the output or its own block.
    pub(super) fn located(&self, place: SeatPlace, in_place: bool) -> SeatPlace {
        if !in_place || place.buffer != Buffer::Input {
            return place;
        }
        let blocks = match self.collective {
            Collective::AllGather => Blocks::One(place.owner),
            _ => place.blocks,
        };
        SeatPlace { buffer: Buffer::Output, blocks, ..place }
    }

    pub(super) fn fault<T>(&self, step: usize, what: &str) -> Result<T, NotCovered> {
        Err(NotCovered::new(self.steps[step].at, what))
    }
}

/// Blocks as the owner of their buffer sees them, in round k. Two families of programs share the names: where partners
/// are `rank ^ 2^k`, the blocks known in round k are the aligned group of 2^k ranks; where peers are
/// `rank ± 2^k`, they are the arc of 2^k ranks from the owner on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stretch {
    All,
    /// The owner's block.
    Own,
    /// Blocks among those known in round k.
    Known,
    /// The block of the partner, or of the rank ahead: one of those that round k adds.
    Other,
    /// The blocks that round k adds: as many as are known, or as many as are lacking.
    Next,
    /// Any other blocks.
    Elsewhere,
}

impl SeatPlace {
    /// Returns the blocks as their owner sees them.
    pub(super) fn stretch(self) -> Stretch {
        let seat = match self.blocks {
            Blocks::All => return Stretch::All,
            Blocks::Front(_) | Blocks::Wrapped(_) => return Stretch::Elsewhere,
            Blocks::One(seat) | Blocks::Group(seat) | Blocks::Run(seat) => seat,
        };
        let one = matches!(self.blocks, Blocks::One(_));
        match (self.owner, seat) {
            (owner, seat) if owner == seat => {
                if one {
                    Stretch::Own
                } else {
                    Stretch::Known
                }
            }
            (RoundSeat::Own, RoundSeat::Partner | RoundSeat::Ahead)
            | (RoundSeat::Partner | RoundSeat::Behind, RoundSeat::Own) => {
                if one {
                    Stretch::Other
                } else {
                    Stretch::Next
                }
            }
            _ => Stretch::Elsewhere,
        }
    }
}
