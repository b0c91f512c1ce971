//! One rank's program in relative coordinates: the actions of every rank, with the rank as the origin. A class of
//! programs says how ranks, blocks and rounds are named.

use std::fmt::Debug;

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

/// The answer to a question about a construct.
pub(super) type Answer<T> = Result<T, NotCovered>;

/// An answer that is there only for constructs of the class.
pub(super) trait Covered<T> {
    /// Returns the answer for the construct at `at`, or else the reason why there is none.
    fn covered(self, at: Span, what: &str) -> Answer<T>;
}

impl<T> Covered<T> for Option<T> {
    fn covered(self, at: Span, what: &str) -> Answer<T> {
        self.ok_or_else(|| NotCovered::new(at, what))
    }
}

/// The names of ranks, blocks and rounds in a class of programs, which hold for every rank at once, and what is known
/// of these names.
pub(super) trait Naming: Copy + Debug + PartialEq {
    /// A rank, as the rank that runs a statement names it.
    type Peer: Copy + Debug + PartialEq;
    /// Blocks of a buffer that is cut in nranks blocks.
    type Block: Copy + Debug + PartialEq;
    /// The rounds in which a part runs.
    type Rounds: Copy + Debug + PartialEq;
    /// The facts that hold in such rounds.
    type Facts;

    /// The one round of statements outside every loop.
    const ONCE: Self::Rounds;
    /// The rank itself.
    const OWN: Self::Peer;
    /// Whether the owner's signals have to stand around each access to its scratch, too; then two runs are in order
    /// without a proof of their own.
    const GUARDS_SCRATCH: bool;

    fn facts(self, rounds: Self::Rounds) -> Self::Facts;

    /// Whether a peer is always the rank itself.
    fn is_own(peer: Self::Peer) -> bool {
        peer == Self::OWN
    }

    /// Returns the block with the number of that rank.
    fn block_of(owner: Self::Peer) -> Self::Block;

    /// Whether this is one block, and not several.
    fn is_one(block: Self::Block) -> bool;

    /// Whether two peers are one rank in all cases.
    fn same_peer(_facts: &Self::Facts, a: Self::Peer, b: Self::Peer) -> bool {
        a == b
    }

    /// Whether two blocks are equal in all cases.
    fn same_block(_facts: &Self::Facts, a: Self::Block, b: Self::Block) -> bool {
        a == b
    }

    /// Whether two peers are one rank in no case.
    fn never_same_peer(facts: &Self::Facts, a: Self::Peer, b: Self::Peer) -> bool;

    /// Whether the blocks of two places are apart in all cases, also where their owners are one rank.
    fn never_same_block(facts: &Self::Facts, a: &Owned<Self>, b: &Owned<Self>) -> bool;

    /// Returns the rank that runs a statement as that peer names it; of all names that it may have, the plainest.
    fn back(peer: Self::Peer) -> Self::Peer;

    /// Whether any two of the peers are one rank in all rounds, or in no two rounds.
    fn told_apart(self, _peers: &[Self::Peer]) -> bool {
        false
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

/// A region of a rank's buffer: `outer` is a part of the buffer, `block` are blocks of its nranks blocks, `inner` a
/// part of the block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Region<B> {
    pub(super) buffer: Buffer,
    /// Whether the buffer has nranks units, not one.
    pub(super) many: bool,
    pub(super) outer: Interval,
    /// The block, counted from the rank that runs the statement, modulo nranks.
    pub(super) block: Option<B>,
    /// The part of the block; `WHOLE` where there is no block.
    pub(super) inner: Interval,
}

impl<B> Region<B> {
    /// Returns the interval that was cut last.
    pub(super) fn finest(&mut self) -> &mut Interval {
        if self.block.is_some() { &mut self.inner } else { &mut self.outer }
    }
}

/// A region and its owner, which is counted from the rank that runs the statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Owned<C: Naming> {
    pub(super) owner: C::Peer,
    pub(super) region: Region<C::Block>,
}

/// Statements that run in text order in each of the rounds; statements outside every loop have one round. A rank runs
/// the parts of one stream in order, and sections in order.
#[derive(Clone, Debug)]
pub(super) struct RoundPart<C: Naming> {
    pub(super) section: usize,
    pub(super) stream: usize,
    pub(super) lane: Option<i64>,
    pub(super) rounds: C::Rounds,
}

/// A statement of a part; the statements of a part stand in text order.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct RoundStep<C: Naming> {
    pub(super) at: Span,
    pub(super) part: usize,
    pub(super) action: Action<C>,
}

/// The action of a statement.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Action<C: Naming> {
    Post(SignalKind, C::Peer),
    Wait(SignalKind, C::Peer),
    /// Folds the sources into each destination; for a reduce, the first source is the destination.
    Move(Vec<Owned<C>>, Vec<Owned<C>>),
}

/// The program of every rank, as parts that run in rounds.
#[derive(Clone, Debug)]
pub(super) struct Rounds<C: Naming> {
    pub(super) class: C,
    pub(super) collective: Collective,
    pub(super) header: Span,
    pub(super) out_of_place: bool,
    pub(super) parts: Vec<RoundPart<C>>,
    pub(super) steps: Vec<RoundStep<C>>,
    /// The number of scratch buffers.
    pub(super) scratch: u32,
}

impl<C: Naming> Rounds<C> {
    /// Returns the rounds in which a statement runs.
    pub(super) fn rounds(&self, step: usize) -> C::Rounds {
        self.parts[self.steps[step].part].rounds
    }

    /// Returns the fault of a statement.
    pub(super) fn fault(&self, step: usize, what: &str) -> NotCovered {
        NotCovered::new(self.steps[step].at, what)
    }

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
