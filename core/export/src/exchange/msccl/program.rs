//! What a rank does when the runtime has read its part: blocks that run side by side, each a list of operations.

use super::runtime::Protocol;
use crate::exchange::terms::{Memory, Place};
use roundelay_core::collective::Collective;
use roundelay_core::ids::SpanId;

/// What a program says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// The name, for messages.
    pub name: String,
    /// The collective as the program writes it.
    pub coll: String,
    /// What that promises; `None` where it promises nothing that can be compared.
    pub collective: Option<Collective>,
    /// The protocol of the connections.
    pub protocol: Protocol,
    /// The number of ranks.
    pub nranks: u32,
    /// The number of channels.
    pub channels: u32,
    /// The number of chunks that the data of a call is cut into.
    pub chunks: u32,
    /// Whether it may be called in place.
    pub in_place: bool,
    /// Whether it may be called with input and output apart.
    pub out_of_place: bool,
    /// The fewest bytes of a call.
    pub min_bytes: u64,
    /// The most bytes of a call; `None` for no limit.
    pub max_bytes: Option<u64>,
    /// Whether it says `maxBytes` at all.
    pub says_bytes: bool,
}

/// What an operation does.
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
    /// All of them with the words for them.
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

    /// The kind that a program calls `word`.
    pub fn parse(word: &str) -> Option<Self> {
        Self::WORDS.into_iter().find(|(_, known)| *known == word).map(|(kind, _)| kind)
    }

    /// As a program writes it.
    pub fn word(self) -> &'static str {
        Self::WORDS.into_iter().find(|(kind, _)| *kind == self).map_or("", |(_, word)| word)
    }

    /// Whether it sends.
    pub const fn sends(self) -> bool {
        !matches!(self, Self::Receive | Self::ReceiveReduceCopy | Self::Copy | Self::Reduce)
    }

    /// Whether it receives.
    pub const fn receives(self) -> bool {
        !matches!(self, Self::Send | Self::Copy | Self::Reduce)
    }

    /// Whether it reads its source.
    pub const fn reads(self) -> bool {
        !matches!(self, Self::Receive | Self::ReceiveCopySend)
    }

    /// Whether it writes its destination.
    pub const fn writes(self) -> bool {
        !matches!(self, Self::Send | Self::ReceiveReduceSend)
    }

    /// The places whose first chunk the reader compares with the sizes of the buffers: source, destination.
    pub(super) const fn compared(self) -> [bool; 2] {
        match self {
            Self::ReceiveReduceCopy => [false, false],
            _ => [self.reads(), self.writes()],
        }
    }
}

/// One operation of a block. It stands for one step of the program, or for several reductions into one place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operation {
    /// What it does.
    pub kind: OperationKind,
    /// What it reads of its rank.
    pub src: Place,
    /// What it writes of its rank.
    pub dst: Place,
    /// Chunks.
    pub count: u32,
    /// What it waits for before it begins.
    pub waits: Vec<Await>,
    /// Whether it says how far its block has come.
    pub posts: bool,
    /// How far that is, as the kernel counts.
    pub level: u64,
    /// The step.
    pub at: SpanId,
    /// The first chunks of further sources that are reduced into the same place, and their steps.
    pub more: Vec<(i64, SpanId)>,
}

/// A wait until a block of the same rank has come so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Await {
    /// The block.
    pub block: u32,
    /// The least level that will do.
    pub level: u64,
    /// The step that says so.
    pub at: SpanId,
}

/// A thread block of a rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// Where it sends to.
    pub send: Option<u32>,
    /// Where it receives from.
    pub receive: Option<u32>,
    /// The channel of both connections.
    pub channel: u32,
    /// What it does, one after the other.
    pub operations: Vec<Operation>,
    /// Its place.
    pub at: SpanId,
}

/// What one rank does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Gpu {
    /// Chunks of input, output and scratch, as it says.
    pub chunks: [u32; 3],
    /// Its blocks, by their numbers.
    pub blocks: Vec<Block>,
    /// Its place; that of the whole program for a rank that is not in it.
    pub at: SpanId,
}

impl Gpu {
    /// Chunks of a buffer.
    pub fn chunks_of(&self, memory: Memory) -> u32 {
        self.chunks[memory as usize]
    }
}

/// Where a step stands: its rank, its block, and its number in the block as the program writes it.
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
