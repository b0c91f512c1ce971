//! The sizes of calls. A step of several chunks goes in messages of as many chunks as fit; a larger call makes more
//! messages, and a connection holds few of them.

use super::Header;
use super::runtime::{COUNT, Runtime};
use crate::terms::Safe;

/// The connections of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Connections {
    /// The runtime of the connections.
    pub runtime: Runtime,
    /// Bytes of a connection's buffer (`NCCL_BUFFSIZE` and similar settings), if it differs from the runtime's default.
    pub buffer: Option<u64>,
}

impl Connections {
    /// Returns the bytes of data in one message.
    pub fn message(&self, header: &Header) -> u64 {
        let buffer = self.buffer.unwrap_or_else(|| self.runtime.buffer(header.protocol));
        // The runtime's parser gives these two collectives shorter chunks.
        let slow = matches!(&*header.coll, "broadcast" | "reduce");
        self.runtime.message(header.protocol, buffer, slow)
    }

    /// Returns the chunks in a message of a call of `bytes` bytes; 1 for a call of any size.
    pub fn chunks(&self, header: &Header, bytes: Option<u64>) -> u32 {
        let Some(bytes) = bytes else { return 1 };
        let chunk = bytes.div_ceil(u64::from(header.own.chunks)).max(1);
        let most = self.message(header) / chunk;
        most.clamp(1, u64::from(COUNT)) as u32
    }

    /// Returns the largest call that ends, if blocks end with `chunks` chunks in a message and with no fewer.
    pub(super) fn safe(&self, header: &Header, chunks: u32) -> Safe {
        let bytes =
            (self.message(header) / u64::from(chunks)).saturating_mul(header.own.chunks.into());
        Safe { chunks, bytes: (chunks > 1).then_some(bytes) }
    }
}
