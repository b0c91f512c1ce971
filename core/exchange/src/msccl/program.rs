//! A rank's program after the runtime has read it: blocks that run side by side, each a list of operations.

use crate::terms::Place;
use roundelay_core::dtype::named_enum;
use roundelay_core::ids::SpanId;

/// The facts in the header that only programs for MSCCL have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MscclFacts {
    /// The number of channels.
    pub channels: u32,
    /// The number of chunks that the data of a call is cut into.
    pub chunks: u32,
    /// Whether the program has a `maxBytes`.
    pub says_bytes: bool,
}

named_enum! {
    /// The kind of an operation.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum OperationKind {
        /// Sends data of the rank.
        Send = "s",
        /// Receives.
        Receive = "r",
        /// Receives, stores and sends on.
        ReceiveCopySend = "rcs",
        /// Receives, reduces and sends on.
        ReceiveReduceSend = "rrs",
        /// Receives, reduces and stores.
        ReceiveReduceCopy = "rrc",
        /// Receives, reduces, stores and sends on.
        ReceiveReduceCopySend = "rrcs",
        /// Copies within the rank.
        Copy = "cpy",
        /// Reduces within the rank.
        Reduce = "re",
    }
}

impl OperationKind {
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
