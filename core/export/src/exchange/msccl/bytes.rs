//! How large a call may be. A step of several chunks goes in messages of as many chunks as fit, so the larger the
//! call, the more messages there are, and a connection holds few of them.

use super::program::Header;
use super::runtime::{COUNT, Runtime};

/// The connections of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Connections {
    /// Whose they are.
    pub runtime: Runtime,
    /// Bytes of the buffer of a connection (`NCCL_BUFFSIZE` and the like), where it is not the runtime's own size.
    pub buffer: Option<u64>,
}

/// Up to which size calls end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Safe {
    /// The fewest chunks of a message with which all blocks come to their end; 1 where calls of any size do.
    pub chunks: u32,
    /// The most bytes of a call; `None` for any.
    pub bytes: Option<u64>,
}

impl Connections {
    /// Bytes of data in one message.
    pub fn message(&self, header: &Header) -> u64 {
        let buffer = self.buffer.unwrap_or_else(|| self.runtime.buffer(header.protocol));
        // The runtime's parser gives these two collectives shorter chunks.
        let slow = matches!(&*header.coll, "broadcast" | "reduce");
        self.runtime.message(header.protocol, buffer, slow)
    }

    /// Chunks of a message where a call has so many bytes; `None` for as many as there are.
    pub fn chunks(&self, header: &Header, bytes: Option<u64>) -> u32 {
        let Some(bytes) = bytes else { return 1 };
        let chunk = bytes.div_ceil(u64::from(header.chunks)).max(1);
        let most = self.message(header) / chunk;
        most.clamp(1, u64::from(COUNT)) as u32
    }

    /// Up to which size calls end, where they do with so many chunks in a message and with no fewer.
    pub(super) fn safe(&self, header: &Header, chunks: u32) -> Safe {
        let bytes = (self.message(header) / u64::from(chunks)).saturating_mul(header.chunks.into());
        Safe { chunks, bytes: (chunks > 1).then_some(bytes) }
    }
}
