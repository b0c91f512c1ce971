//! The memory that each thread has for itself: its local memory, and its frames in parameter space.

use super::clock::Thread;

/// Private memory of all threads, of the same size for each.
#[derive(Debug)]
pub(crate) struct Private {
    /// Bytes of a thread, a multiple of 64.
    stride: usize,
    bytes: Vec<u8>,
    /// One bit for each byte: whether it was stored since its function was called.
    stored: Vec<u64>,
}

impl Private {
    /// Memory of `size` bytes for each thread.
    pub(crate) fn new(threads: usize, size: u64) -> Self {
        let stride = size.next_multiple_of(64) as usize;
        Self { stride, bytes: vec![0; threads * stride], stored: vec![0; threads * stride / 64] }
    }

    fn at(&self, thread: Thread, offset: u64) -> usize {
        thread as usize * self.stride + offset as usize
    }

    /// Returns the bytes without a value behind an offset, among those whose bit is set in `used`.
    pub(crate) fn without_value(&self, thread: Thread, offset: u64, used: u64) -> u64 {
        let at = self.at(thread, offset);
        // Accesses are aligned to their size, which is at most 16.
        used & !(self.stored[at / 64] >> (at % 64))
    }

    /// The value of 1, 2, 4 or 8 bytes.
    pub(crate) fn load(&self, thread: Thread, offset: u64, size: u64) -> u64 {
        let at = self.at(thread, offset);
        let mut value = [0; 8];
        value[..size as usize].copy_from_slice(&self.bytes[at..at + size as usize]);
        u64::from_le_bytes(value)
    }

    /// Stores the low 1, 2, 4 or 8 bytes of a value.
    pub(crate) fn store(&mut self, thread: Thread, offset: u64, size: u64, value: u64) {
        let at = self.at(thread, offset);
        self.bytes[at..at + size as usize].copy_from_slice(&value.to_le_bytes()[..size as usize]);
        self.stored[at / 64] |= (u64::MAX >> (64 - size)) << (at % 64);
    }

    /// Takes the values of a range away.
    pub(crate) fn clear(&mut self, thread: Thread, offset: u64, size: u64) {
        let (mut at, end) = (self.at(thread, offset), self.at(thread, offset + size));
        while at < end {
            let bits = (64 - at % 64).min(end - at);
            self.stored[at / 64] &= !((u64::MAX >> (64 - bits)) << (at % 64));
            at += bits;
        }
    }

    /// Copies a range, with the knowledge whether its bytes have values.
    pub(crate) fn copy(&mut self, thread: Thread, from: u64, to: u64, size: u64) {
        let (source, target) = (self.at(thread, from), self.at(thread, to));
        self.bytes.copy_within(source..source + size as usize, target);
        // Frames do not overlap.
        for byte in 0..size as usize {
            let stored = self.stored[(source + byte) / 64] >> ((source + byte) % 64) & 1;
            let word = &mut self.stored[(target + byte) / 64];
            let at = (target + byte) % 64;
            *word = *word & !(1 << at) | stored << at;
        }
    }

    /// Stores bytes.
    pub(crate) fn store_bytes(&mut self, thread: Thread, offset: u64, bytes: &[u8]) {
        for (byte, &value) in (offset..).zip(bytes) {
            self.store(thread, byte, 1, value.into());
        }
    }
}
