//! The blocks of a plan: the ops of each in order, with channels and remote buffers already looked up.

use super::table::Name;
use crate::terms::Memory;
use roundelay_core::ids::SpanId;

/// The facts in the header that only plans have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MscclppFacts {
    /// Whether calls take the halves of the scratch in turn.
    pub doubled: bool,
    /// The alignment in bytes: the size of each chunk is a multiple of it.
    pub alignment: u64,
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
        /// Whether a switch does so.
        switch: bool,
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
    /// Enters a put or a signal into a queue; no act of the text, but the block's part of one.
    Enter,
    /// Waits until what was entered into a queue is done; the block's part of a put.
    Flush,
}

impl Act {
    /// Returns the places that data is read from, and the places that it is written to.
    pub(super) fn parts(&self) -> [&[Chunk]; 2] {
        match self {
            Self::Data { srcs, dsts, .. } => [srcs, dsts],
            Self::Put(PortPut { src, dst, .. }) => [src, dst].map(std::slice::from_ref),
            Self::Arrive(src) => [std::slice::from_ref(src), &[]],
            _ => [&[], &[]],
        }
    }

    /// Returns the act with other places.
    pub(super) fn at(&self, place: impl Fn(Chunk) -> Chunk) -> Self {
        let places = |chunks: &[Chunk]| chunks.iter().map(|chunk| place(*chunk)).collect();
        match self {
            Self::Data { srcs, dsts, switch } => {
                Self::Data { srcs: places(srcs), dsts: places(dsts), switch: *switch }
            }
            Self::Put(put) => {
                Self::Put(PortPut { src: place(put.src), dst: place(put.dst), ..*put })
            }
            Self::Arrive(src) => Self::Arrive(place(*src)),
            other => other.clone(),
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

/// A group of ranks whose memory a switch reaches at once.
#[derive(Clone, Debug)]
pub(super) struct SwitchGroup {
    pub(super) memory: Memory,
    pub(super) ranks: Vec<u32>,
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

impl Chunk {
    /// Returns the chunk after the last.
    pub(super) fn end(self) -> u32 {
        self.index.saturating_add(self.size)
    }
}
