//! One rank's program with its peers and blocks named by the round's distance, 2^k.

use super::super::rounds::NotCovered;
use super::terms::Seat;
use crate::collective::Collective;
use crate::schedule::{Buffer, SignalKind};
use crate::source::Span;

/// The blocks of a buffer that a region has; seats count from the rank that runs the statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Blocks {
    /// The whole buffer.
    All,
    /// The block with the number of that rank.
    One(Seat),
    /// The aligned group of 2^k blocks that contains the block of that rank, for a power of two nranks.
    Group(Seat),
    /// The blocks from that rank's on, as many as `Quantity::Lacking` says, modulo nranks.
    Run(Seat),
    /// The blocks of a run up to the last block of the buffer.
    Front(Seat),
    /// The blocks of a run behind the last block of the buffer, from block 0 on.
    Wrapped(Seat),
}

/// Blocks of the buffer of a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) owner: Seat,
    pub(super) buffer: Buffer,
    pub(super) blocks: Blocks,
}

/// A move: the sources are folded into each destination, and a reduce folds them into what the destination holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Move {
    pub(super) sources: Vec<Place>,
    pub(super) destinations: Vec<Place>,
    pub(super) reduces: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Action {
    Post(SignalKind, Seat),
    Wait(SignalKind, Seat),
    Move(Move),
}

/// A statement; the statements of a part stand in text order, and the parts too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Step {
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
    pub(super) steps: Vec<Step>,
    /// For each scratch buffer whether it has nranks blocks, and not one.
    pub(super) scratch: Vec<bool>,
}

impl Doubling {
    pub(super) fn in_rounds(&self, step: usize) -> bool {
        self.parts[self.steps[step].part]
    }

    /// Whether a buffer has nranks blocks, and not one.
    pub(super) fn has_blocks(&self, buffer: Buffer) -> bool {
        match buffer {
            Buffer::Input => false,
            Buffer::Output => self.collective == Collective::AllGather,
            Buffer::Scratch(id) => self.scratch[id.index()],
        }
    }

    /// Returns the place as it lies in memory: in place, the input is the output or its own block.
    pub(super) fn located(&self, place: Place, in_place: bool) -> Place {
        if !in_place || place.buffer != Buffer::Input {
            return place;
        }
        let blocks = match self.collective {
            Collective::AllGather => Blocks::One(place.owner),
            _ => place.blocks,
        };
        Place { buffer: Buffer::Output, blocks, ..place }
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

impl Place {
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
            (Seat::Own, Seat::Partner | Seat::Ahead)
            | (Seat::Partner | Seat::Behind, Seat::Own) => {
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
