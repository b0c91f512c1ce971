//! The scratch memory of a plan: allocated once, zeroed lazily by the system, aligned to cache lines.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ptr::NonNull;

use crate::error::Error;

const ALIGN: usize = 64;

/// Blocks of memory that live as long as the value.
pub(crate) struct Scratch {
    blocks: Vec<(NonNull<u8>, Layout)>,
}

// SAFETY: it only owns the memory; the engine that writes there has its own rules.
unsafe impl Send for Scratch {}
// SAFETY: a shared reference gives addresses alone; the engine that writes there has its own rules.
unsafe impl Sync for Scratch {}

impl Scratch {
    /// Allocates a block of each size, in bytes.
    pub(crate) fn new(sizes: impl Iterator<Item = usize>) -> Result<Self, Error> {
        let mut scratch = Self { blocks: Vec::new() };
        for size in sizes {
            let too_large =
                || Error::TooLarge { what: format!("no memory for {size} bytes of scratch") };
            let layout = Layout::from_size_align(size.max(1), ALIGN).map_err(|_| too_large())?;
            // SAFETY: the size is not 0.
            let block = unsafe { alloc_zeroed(layout) };
            scratch.blocks.push((NonNull::new(block).ok_or_else(too_large)?, layout));
        }
        Ok(scratch)
    }

    /// Returns the address of a block.
    pub(crate) fn address(&self, block: usize) -> *mut u8 {
        self.blocks[block].0.as_ptr()
    }

    /// Returns the addresses of the blocks.
    pub(crate) fn addresses(&self) -> impl Iterator<Item = *mut u8> + '_ {
        self.blocks.iter().map(|(block, _)| block.as_ptr())
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        for (block, layout) in &self.blocks {
            // SAFETY: allocated above with this layout.
            unsafe { dealloc(block.as_ptr(), *layout) };
        }
    }
}
