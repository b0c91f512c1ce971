//! One rank's program in relative coordinates: the actions of every rank, with the rank as the origin.

use super::linear::Affine;
use crate::collective::Collective;
use crate::rational::Rat;
use crate::schedule::{Buffer, SignalKind};
use crate::source::Span;

/// A construct that the class does not cover, or a claim that could not be shown for every nranks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotCovered {
    /// The construct.
    pub at: Span,
    /// The reason, in words.
    pub what: String,
    /// Whether the construct is not covered only because a ring may have any order.
    pub ring: bool,
}

impl NotCovered {
    pub(super) fn new(at: Span, what: impl Into<String>) -> Self {
        Self { at, what: what.into(), ring: false }
    }

    /// Returns a construct that is not covered because a ring may have any order.
    pub(super) fn of_rings(at: Span, what: impl Into<String>) -> Self {
        Self { ring: true, ..Self::new(at, what) }
    }
}

/// A stretch of a unit or buffer, as fractions of it.
pub(super) type Interval = (Rat, Rat);

/// The whole of a unit or buffer.
pub(super) const WHOLE: Interval = (Rat::ZERO, Rat::ONE);

/// Whether `outer` covers `inner`.
pub(super) fn covers(outer: Interval, inner: Interval) -> bool {
    outer.0 <= inner.0 && inner.1 <= outer.1
}

/// Whether the two intervals overlap.
pub(super) fn meet(a: Interval, b: Interval) -> bool {
    a.0 < b.1 && b.0 < a.1
}

/// A region of a rank's buffer: `outer` is a part of the buffer, `block` one of its nranks blocks, `inner` a part of
/// the block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Region {
    pub(super) buffer: Buffer,
    /// Whether the buffer has nranks units, not one.
    pub(super) many: bool,
    pub(super) outer: Interval,
    /// The block, counted from the rank that runs the statement, modulo nranks.
    pub(super) block: Option<Affine>,
    /// The part of the block; `WHOLE` where there is no block.
    pub(super) inner: Interval,
}

impl Region {
    /// Returns the interval that was cut last.
    pub(super) fn finest(&mut self) -> &mut Interval {
        if self.block.is_some() { &mut self.inner } else { &mut self.outer }
    }

    /// Returns the region as counted from a rank that stands `by` further back, in round `round`.
    pub(super) fn seen(mut self, by: Affine, round: Affine) -> Self {
        self.block = self.block.map(|block| block.at(round) + by);
        self
    }
}

/// A region and its owner: `owner` is counted from the rank that runs the statement, modulo nranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Owned {
    pub(super) owner: Affine,
    pub(super) region: Region,
}

/// Statements that run in text order in each of the rounds `first..=last`; statements outside every loop have one
/// round, 0. A rank runs the parts of one stream in order, and sections in order.
#[derive(Clone, Debug)]
pub(super) struct RoundPart {
    pub(super) section: usize,
    pub(super) stream: usize,
    pub(super) lane: Option<i64>,
    pub(super) first: Affine,
    pub(super) last: Affine,
}

/// A statement of a part; the statements of a part stand in text order.
#[derive(Clone, Debug)]
pub(super) struct RoundStep {
    pub(super) at: Span,
    pub(super) part: usize,
    pub(super) action: Action,
}

/// The action of a statement; offsets count from the rank that runs the statement, modulo nranks.
#[derive(Clone, Debug)]
pub(super) enum Action {
    Post(SignalKind, Affine),
    Wait(SignalKind, Affine),
    /// Folds the sources into each destination; for a reduce, the first source is the destination.
    Move(Vec<Owned>, Vec<Owned>),
}

/// The program of every rank, as parts that run in rounds.
#[derive(Clone, Debug)]
pub(super) struct Rounds {
    pub(super) collective: Collective,
    pub(super) header: Span,
    pub(super) out_of_place: bool,
    pub(super) parts: Vec<RoundPart>,
    pub(super) steps: Vec<RoundStep>,
}

impl Rounds {
    /// Whether a move touches memory that outlives a run.
    pub(super) fn uses_scratch(&self) -> bool {
        self.steps.iter().any(|step| match &step.action {
            Action::Move(srcs, dsts) => {
                srcs.iter().chain(dsts).any(|p| matches!(p.region.buffer, Buffer::Scratch(_)))
            }
            _ => false,
        })
    }

    /// Returns a program of two runs in sequence.
    pub(super) fn twice(&self) -> Self {
        let mut twice = self.clone();
        let sections = 1 + self.parts.iter().map(|part| part.section).max().unwrap_or(0);
        twice.parts.extend(self.parts.iter().map(|part| {
            let mut part = part.clone();
            part.section += sections;
            part
        }));
        twice.steps.extend(self.steps.iter().map(|step| {
            let mut step = step.clone();
            step.part += self.parts.len();
            step
        }));
        twice
    }
}
