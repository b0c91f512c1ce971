//! Buffers as they are measured: each at its own place within a page.

use std::hint::black_box;
use std::ops::{Deref, DerefMut, Range};

/// The distance of a buffer from the beginning of a page in bytes, a cache line, times the buffer's number: without it,
/// the buffers of all ranks would fall into the same sets of a cache.
const STAGGER: usize = 64;
const PAGE: usize = 4096;

/// A buffer as it is measured.
pub struct Aligned {
    bytes: Vec<u8>,
    range: Range<usize>,
}

impl Aligned {
    /// Makes the `nth` of the buffers that are used together.
    pub fn new(len: usize, content: u8, nth: u32) -> Self {
        let bytes = vec![content; if len == 0 { 0 } else { len + 2 * PAGE }];
        let start = if len == 0 {
            0
        } else {
            bytes.as_ptr().align_offset(PAGE) + nth as usize * STAGGER % PAGE
        };
        Self { bytes, range: start..start + len }
    }
}

/// Writes the bytes again with their own values: they then lie in the caches of this core, as computed bytes do.
pub fn rewrite(bytes: &mut [u8]) {
    let nothing = black_box(0);
    for byte in bytes {
        *byte ^= nothing;
    }
}

impl Deref for Aligned {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[self.range.clone()]
    }
}

impl DerefMut for Aligned {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[self.range.clone()]
    }
}

impl AsRef<[u8]> for Aligned {
    fn as_ref(&self) -> &[u8] {
        self
    }
}
