//! A rank's program after the runtime has read it: blocks that run side by side, each a list of operations.

use super::runtime::Protocol;
use crate::exchange::terms::{Memory, Place};
use roundelay_core::collective::Collective;
use roundelay_core::ids::SpanId;

/// The header of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// The name, for messages.
    pub name: String,
    /// The collective as the program writes it.
    pub coll: String,
    /// The collective that `coll` promises; `None` if its result cannot be compared.
    pub collective: Option<Collective>,
    /// The protocol of the connections.
    pub protocol: Protocol,
    /// The number of ranks.
    pub nranks: u32,
    /// The number of channels.
    pub channels: u32,
    /// The number of chunks that the data of a call is cut into.
    pub chunks: u32,
    /// Whether the program may be called in place.
    pub in_place: bool,
    /// Whether the program may be called with input and output apart.
    pub out_of_place: bool,
    /// The fewest bytes of a call.
    pub min_bytes: u64,
    /// The most bytes of a call; `None` for no limit.
    pub max_bytes: Option<u64>,
    /// Whether the program has a `maxBytes`.
    pub says_bytes: bool,
}

/// The kind of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OperationKind {
    /// `s`
    Send,
    /// `r`
    Receive,
    /// `rcs`
    ReceiveCopySend,
    /// `rrs`
    ReceiveReduceSend,
    /// `rrc`
    ReceiveReduceCopy,
    /// `rrcs`
    ReceiveReduceCopySend,
    /// `cpy`
    Copy,
    /// `re`
    Reduce,
}

impl OperationKind {
    /// All kinds with their words in a program.
    const WORDS: [(Self, &str); 8] = [
        (Self::Send, "s"),
        (Self::Receive, "r"),
        (Self::ReceiveCopySend, "rcs"),
        (Self::ReceiveReduceSend, "rrs"),
        (Self::ReceiveReduceCopy, "rrc"),
        (Self::ReceiveReduceCopySend, "rrcs"),
        (Self::Copy, "cpy"),
        (Self::Reduce, "re"),
    ];

    /// Returns the kind with the word `word`.
    pub fn parse(word: &str) -> Option<Self> {
        Self::WORDS.into_iter().find(|(_, known)| *known == word).map(|(kind, _)| kind)
    }

    /// Returns the word that a program writes for the kind.
    pub fn word(self) -> &'static str {
        Self::WORDS.into_iter().find(|(kind, _)| *kind == self).map_or("", |(_, word)| word)
    }

    /// Whether the operation sends.
    pub const fn sends(self) -> bool {
        !matches!(self, Self::Receive | Self::ReceiveReduceCopy | Self::Copy | Self::Reduce)
    }

    /// Whether the operation receives.
    pub const fn receives(self) -> bool {
        !matches!(self, Self::Send | Self::Copy | Self::Reduce)
    }

    /// Whether the operation reads its source.
    pub const fn reads(self) -> bool {
        !matches!(self, Self::Receive | Self::ReceiveCopySend)
    }

    /// Whether the operation writes its destination.
    pub const fn writes(self) -> bool {
        !matches!(self, Self::Send | Self::ReceiveReduceSend)
    }

    /// Whether the runtime's reader compares the first chunk of the source, and of the destination, with the buffer's
    /// size.
    pub(super) const fn compared(self) -> [bool; 2] {
        match self {
            Self::ReceiveReduceCopy => [false, false],
            _ => [self.reads(), self.writes()],
        }
    }
}

/// An operation of a block. It represents one step of the program, or several reductions into one place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operation {
    /// The kind.
    pub kind: OperationKind,
    /// The place that it reads in its rank's memory.
    pub src: Place,
    /// The place that it writes in its rank's memory.
    pub dst: Place,
    /// The number of chunks.
    pub count: u32,
    /// The waits before it begins.
    pub waits: Vec<Await>,
    /// Whether it posts the progress of its block when it is done.
    pub posts: bool,
    /// The level that it posts, as the kernel counts.
    pub level: u64,
    /// The step.
    pub at: SpanId,
    /// The first chunks of further sources that are reduced into the same place, and their steps.
    pub more: Vec<(i64, SpanId)>,
}

/// A wait until a block of the same rank has posted a level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Await {
    /// The block.
    pub block: u32,
    /// The least level that ends the wait.
    pub level: u64,
    /// The step with this wait.
    pub at: SpanId,
}

/// A thread block of a rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// The rank that it sends to.
    pub send: Option<u32>,
    /// The rank that it receives from.
    pub receive: Option<u32>,
    /// The channel of both connections.
    pub channel: u32,
    /// Its operations, in order.
    pub operations: Vec<Operation>,
    /// The place of its tag.
    pub at: SpanId,
}

/// The program of one rank.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Gpu {
    /// The declared chunks of input, output and scratch.
    pub chunks: [u32; 3],
    /// Its blocks, by their numbers.
    pub blocks: Vec<Block>,
    /// The place of its tag; for a rank without a tag the place of the whole program.
    pub at: SpanId,
}

impl Gpu {
    /// Returns the declared chunks of a buffer.
    pub fn chunks_of(&self, memory: Memory) -> u32 {
        self.chunks[memory as usize]
    }
}

/// The name of a step: its rank, its block, and its number in the block as the program writes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepName {
    /// The rank.
    pub gpu: u32,
    /// The block.
    pub block: u32,
    /// The number of the step.
    pub step: u32,
}

impl std::fmt::Display for StepName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "gpu {} tb {} step {}", self.gpu, self.block, self.step)
    }
}
