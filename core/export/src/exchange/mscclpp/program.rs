//! The content of a plan: ranks, their blocks, and the ops of each block in order, with channels and remote buffers
//! already looked up.

use super::table::Name;
use crate::exchange::terms::{Memory, Mode};
use roundelay_core::collective::Collective;
use roundelay_core::ids::SpanId;

/// The header of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// The name, for messages.
    pub name: String,
    /// The collective as the plan writes it.
    pub coll: String,
    /// The collective that `coll` promises; `None` if its result cannot be compared.
    pub collective: Option<Collective>,
    /// Whether the protocol is LL: then scratch has room for the flags of packets.
    pub packets: bool,
    /// Whether every call is in place; if not, every call has input and output apart.
    pub in_place: bool,
    /// Whether calls take the halves of the scratch in turn.
    pub doubled: bool,
    /// The number of ranks.
    pub nranks: u32,
    /// The alignment in bytes: the size of each chunk is a multiple of it.
    pub alignment: u64,
    /// The fewest bytes of a call.
    pub min_bytes: u64,
    /// The most bytes of a call; `None` for no limit.
    pub max_bytes: Option<u64>,
}

impl Header {
    /// Returns the mode of calls.
    pub fn mode(&self) -> Mode {
        if self.in_place { Mode::InPlace } else { Mode::OutOfPlace }
    }
}

/// A plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// The header.
    pub header: Header,
    /// The blocks of each rank.
    pub gpus: Vec<MscclppGpu>,
    /// The place of its beginning.
    pub(super) whole: SpanId,
    /// The name of each op, by place.
    pub(super) names: Vec<(SpanId, OpName)>,
}

/// The blocks and resources of one rank.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MscclppGpu {
    /// Chunks of input, output and scratch.
    pub chunks: [u32; 3],
    /// The blocks.
    pub blocks: Vec<MscclppBlock>,
    /// The initial value of each semaphore.
    pub semaphores: Vec<u32>,
    /// Its place in the text.
    pub at: SpanId,
}

impl MscclppGpu {
    /// Returns the chunks of a buffer.
    pub fn chunks_of(&self, memory: Memory) -> u32 {
        self.chunks[memory as usize]
    }
}

/// A thread block of a rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MscclppBlock {
    /// The ops, in order.
    pub operations: Vec<Operation>,
    /// Its place in the text.
    pub at: SpanId,
}

/// One op of a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operation {
    /// The name in the plan.
    pub name: Name,
    /// The acts of the executor.
    pub acts: Vec<Act>,
    /// Its place in the text.
    pub at: SpanId,
}

/// An act of the executor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Act {
    /// All threads of the block wait for each other.
    Sync,
    /// Some blocks of the rank wait for each other.
    Barrier {
        /// The number of the barrier.
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
    /// Waits until a semaphore is above 0, and decrements it.
    Acquire(u32),
    /// Reduces the sources, in this order, and writes the result to all destinations.
    Data {
        /// The places to read.
        srcs: Vec<Chunk>,
        /// The places to write.
        dsts: Vec<Chunk>,
    },
    /// Enters a put into the queue of the rank's proxy, which carries it out later.
    Put(PortPut),
    /// All threads wait for packets, without a use of their data.
    Arrive(Chunk),
    /// Repeats ops for each stretch of some chunks.
    Pipeline {
        /// The number of chunks that the loop goes through.
        chunks: u32,
        /// The ops of each stretch.
        inner: Vec<Operation>,
    },
}

impl Act {
    /// Returns the places that data is read from, and the places that it is written to.
    pub(super) fn data(&self) -> Option<[&[Chunk]; 2]> {
        match self {
            Self::Data { srcs, dsts } => Some([srcs, dsts]),
            Self::Put(PortPut { src, dst, .. }) => Some([src, dst].map(std::slice::from_ref)),
            Self::Arrive(src) => Some([std::slice::from_ref(src), &[]]),
            _ => None,
        }
    }
}

/// A put over a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortPut {
    /// The place to read.
    pub src: Chunk,
    /// The place to write.
    pub dst: Chunk,
    /// The channel.
    pub wire: Wire,
    /// Whether a signal follows the data.
    pub signals: bool,
    /// Whether the thread waits until the data is there. Executors do so from June 2026 on.
    pub flushes: bool,
}

/// A channel, from the view of one end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Wire {
    /// The rank at the other end.
    pub peer: u32,
    /// Whether a proxy carries the data, and not the block itself.
    pub port: bool,
    /// The number among the channels of this type between the two ranks: the k-th of one rank belongs to the k-th of
    /// the other.
    pub ordinal: u32,
}

/// Chunks of a buffer of a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Chunk {
    /// The rank.
    pub rank: u32,
    /// The buffer.
    pub memory: Memory,
    /// Whether the chunks are packets, each with a flag: packets in scratch have other places than plain chunks.
    pub packets: bool,
    /// The first chunk.
    pub index: u32,
    /// The number of chunks.
    pub size: u32,
    /// The block's part of the chunks: its index, and the number of parts.
    pub part: (u32, u32),
}

/// The name of an op: its rank, its block, its number in the block, and its number within a pipeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpName {
    /// The rank.
    pub gpu: u32,
    /// The block.
    pub block: u32,
    /// The number of the op.
    pub op: u32,
    /// The number within a pipeline.
    pub inner: Option<u32>,
}

impl std::fmt::Display for OpName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { gpu, block, op, inner } = self;
        write!(f, "gpu {gpu} block {block} op {op}")?;
        inner.map_or(Ok(()), |inner| write!(f, ".{inner}"))
    }
}
