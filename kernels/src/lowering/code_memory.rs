//! The memory of a code beside the buffers of its callers.

use super::bases::Bases;
use super::code::Code;
use super::scratch::Scratch;
use crate::error::Error;

/// The scratch buffers of a code, the partials of each of its workers, and the table of the addresses of all buffers,
/// in which those of scratch are set.
pub(crate) struct CodeMemory {
    pub(crate) bases: Bases,
    partials: Scratch,
    /// The memory of the scratch buffers, which the bases point at.
    _scratch: Scratch,
}

impl CodeMemory {
    /// Allocates the scratch buffers `scratch` of a code whose elements have `size` bytes, and partials of `workers`
    /// workers.
    pub(crate) fn new(
        code: &Code,
        size: usize,
        scratch: impl Iterator<Item = u32> + Clone,
        workers: u32,
    ) -> Result<Self, Error> {
        let bytes = scratch.clone().map(|buffer| code.buffers.len[buffer as usize] * size);
        let blocks = Scratch::new(bytes)?;
        let bases = Bases::new(code.buffers.len.len());
        for (buffer, block) in scratch.zip(blocks.addresses()) {
            bases.set(buffer, block);
        }
        let partials = Scratch::new((0..workers).map(|_| code.segments.partial_bytes()))?;
        Ok(Self { bases, partials, _scratch: blocks })
    }

    /// Returns the address of the partials of a worker.
    pub(crate) fn partials(&self, worker: usize) -> *mut u8 {
        self.partials.address(worker)
    }
}
