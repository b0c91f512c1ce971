//! What a plan says: ranks, the blocks of each, and what these do one after the other, with channels and buffers of
//! peers already looked up.

use super::table::Name;
use crate::exchange::terms::{Memory, Mode};
use roundelay_core::collective::Collective;
use roundelay_core::ids::SpanId;

/// What a plan says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// The name, for messages.
    pub name: String,
    /// The collective as the plan writes it.
    pub coll: String,
    /// What that promises; `None` where it promises nothing that can be compared.
    pub collective: Option<Collective>,
    /// Whether the protocol is LL: then scratch has room for the flags of packets.
    pub packets: bool,
    /// Whether it is called in place, and never with input and output apart; or the reverse.
    pub in_place: bool,
    /// Whether calls take the halves of the scratch in turn.
    pub doubled: bool,
    /// The number of ranks.
    pub nranks: u32,
    /// Sizes of calls are multiples of so many bytes for each chunk.
    pub alignment: u64,
    /// The fewest bytes of a call.
    pub min_bytes: u64,
    /// The most bytes of a call; `None` for no limit.
    pub max_bytes: Option<u64>,
}

impl Header {
    /// The way to call it.
    pub fn mode(&self) -> Mode {
        if self.in_place { Mode::InPlace } else { Mode::OutOfPlace }
    }
}

/// A plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// What it says of itself.
    pub header: Header,
    /// What each rank does.
    pub gpus: Vec<MscclppGpu>,
    /// The place of its head.
    pub(super) whole: SpanId,
    /// The name of each op, by its place.
    pub(super) names: Vec<(SpanId, OpName)>,
}

/// What one rank does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MscclppGpu {
    /// Chunks of input, output and scratch.
    pub chunks: [u32; 3],
    /// Its blocks.
    pub blocks: Vec<MscclppBlock>,
    /// What each of its semaphores begins with.
    pub semaphores: Vec<u32>,
    /// Its place.
    pub at: SpanId,
}

impl MscclppGpu {
    /// Chunks of a buffer.
    pub fn chunks_of(&self, memory: Memory) -> u32 {
        self.chunks[memory as usize]
    }
}

/// A thread block of a rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MscclppBlock {
    /// What it does, one after the other.
    pub operations: Vec<Operation>,
    /// Its place.
    pub at: SpanId,
}

/// One op of a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operation {
    /// What the plan calls it.
    pub name: Name,
    /// What it comes to.
    pub acts: Vec<Act>,
    /// Its place.
    pub at: SpanId,
}

/// What the executor does for an op.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Act {
    /// All threads of the block wait for each other.
    Sync,
    /// So many blocks of the rank wait for each other.
    Barrier {
        /// Which of the barriers.
        id: u32,
        /// The number of blocks.
        blocks: u32,
    },
    /// A signal on a channel.
    Signal(Wire),
    /// A wait for a signal.
    Wait(Wire),
    /// Adds one to a semaphore.
    Release(u32),
    /// Waits until a semaphore is above 0, and takes one away.
    Acquire(u32),
    /// Folds sources, in this order, and writes the result to all destinations.
    Data {
        /// What it reads.
        srcs: Vec<Chunk>,
        /// What it writes.
        dsts: Vec<Chunk>,
    },
    /// Does it again for each stretch of so many chunks.
    Pipeline {
        /// The chunks that are gone through.
        chunks: u32,
        /// What is done for each stretch.
        inner: Vec<Operation>,
    },
}

/// A channel, as one of its ends sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Wire {
    /// The other end.
    pub peer: u32,
    /// Whether a proxy carries it, and not the block itself.
    pub port: bool,
    /// Which of the channels of this type between the two: the k-th of one rank belongs to the k-th of the other.
    pub ordinal: u32,
}

/// Chunks of a buffer of a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Chunk {
    /// The rank.
    pub rank: u32,
    /// The buffer.
    pub memory: Memory,
    /// Whether they are packets, each with a flag: such chunks of scratch lie apart from others.
    pub packets: bool,
    /// The first chunk.
    pub index: u32,
    /// The number of chunks.
    pub size: u32,
    /// The part of them, as a number below the second.
    pub part: (u32, u32),
}

/// Where an op stands: its rank, its block, its number there, and that within a pipeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpName {
    /// The rank.
    pub gpu: u32,
    /// The block.
    pub block: u32,
    /// The number of the op.
    pub op: u32,
    /// Its number in a pipeline.
    pub inner: Option<u32>,
}

impl std::fmt::Display for OpName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { gpu, block, op, inner } = self;
        write!(f, "gpu {gpu} block {block} op {op}")?;
        inner.map_or(Ok(()), |inner| write!(f, ".{inner}"))
    }
}
