//! The addresses of the buffers of a run.

use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

/// An address for each buffer of a code. A thread reads an address after a signal or a lock that follows the write of
/// the address: so the accesses themselves need no order.
pub(crate) struct Bases(Box<[AtomicPtr<u8>]>);

impl Bases {
    pub(crate) fn new(buffers: usize) -> Self {
        Self((0..buffers).map(|_| AtomicPtr::new(ptr::null_mut())).collect())
    }

    pub(crate) fn set(&self, buffer: u32, at: *mut u8) {
        self.0[buffer as usize].store(at, Ordering::Relaxed);
    }

    pub(crate) fn get(&self, buffer: u32) -> *mut u8 {
        self.0[buffer as usize].load(Ordering::Relaxed)
    }
}
