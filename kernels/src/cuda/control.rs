//! The control block: words that a running kernel writes and the host reads, and vice versa.

use std::any::Any;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use cudarc::driver::sys;
#[cfg(target_os = "linux")]
use roundelay_core::ids::RankId;

use super::device::{Device, failed};
use super::error::Error;
#[cfg(target_os = "linux")]
use super::shared_block::SharedBlock;
#[cfg(target_os = "linux")]
use crate::shared_memory::observe::ticks;

/// Memory of the host that all devices see.
pub(super) struct Control {
    words: NonNull<AtomicU64>,
    len: usize,
    /// Words behind those of the kernels: two for each rank of a world of processes, of which only its process writes.
    of_ranks: usize,
    /// Frees the words when it is dropped.
    _memory: Box<dyn Any + Send + Sync>,
}

// SAFETY: the words are atomics, which any thread may use.
unsafe impl Send for Control {}
// SAFETY: the words are atomics, which any thread may use.
unsafe impl Sync for Control {}

impl Control {
    pub(super) fn new(device: &Device, len: usize) -> Result<Self, Error> {
        let what = || format!("pinning {len} words of control for device {}", device.ordinal);
        let flags = sys::CU_MEMHOSTALLOC_PORTABLE | sys::CU_MEMHOSTALLOC_DEVICEMAP;
        // SAFETY: the words are written below, before any code reads them.
        let memory = unsafe { device.context.alloc_pinned_with_flags::<u64>(len, flags) };
        let mut memory = memory.map_err(failed(what()))?;
        let words = memory.as_mut_ptr().map_err(failed(what()))?;
        // SAFETY: `len` words were just allocated there, for this block alone.
        unsafe { words.write_bytes(0, len) };
        let words = NonNull::new(words.cast()).expect("the driver gave an address");
        Ok(Self { words, len, of_ranks: 0, _memory: Box::new(memory) })
    }

    /// The control block of ranks in several processes, in the first words of zeroed memory that all of them map; behind
    /// it the ranks count their launches.
    #[cfg(target_os = "linux")]
    pub(super) fn shared(block: SharedBlock, len: usize, nranks: u32) -> Self {
        let words = block.host_address().and_then(|words| NonNull::new(words.cast()));
        let words = words.expect("a block of the host");
        let of_ranks = 2 * nranks as usize;
        assert!(8 * (len + of_ranks) <= block.bytes(), "the block holds the words");
        Self { words, len, of_ranks, _memory: Box::new(block) }
    }

    /// Counts a launch of this process's rank, for processes that look from outside.
    #[cfg(target_os = "linux")]
    pub(super) fn count_launch(&self, rank: RankId) {
        let at = self.len + 2 * rank.index();
        assert!(at + 1 < self.len + self.of_ranks, "the block has words of the rank");
        // SAFETY: the words of ranks lie behind the `len` words of the kernels, and live as long as `self`.
        let words = unsafe { std::slice::from_raw_parts(self.words.as_ptr().add(at), 2) };
        words[1].store(ticks(), Ordering::Relaxed);
        words[0].store(words[0].load(Ordering::Relaxed).wrapping_add(1), Ordering::Release);
    }

    /// Has all waits end.
    #[cfg(target_os = "linux")]
    pub(super) fn abort(&self) {
        let _ = self.all()[0].compare_exchange(0, u64::MAX, Ordering::AcqRel, Ordering::Relaxed);
    }

    /// Returns the address of the block on a device.
    pub(super) fn address(&self, device: &Device) -> Result<u64, Error> {
        let what = || format!("mapping the control block into device {}", device.ordinal);
        device.context.bind_to_thread().map_err(failed(what()))?;
        let mut address = 0;
        let words = self.words.as_ptr().cast();
        // SAFETY: the block was pinned for the devices, and `address` outlives the call.
        let asked = unsafe { sys::cuMemHostGetDevicePointer_v2(&raw mut address, words, 0) };
        asked.result().map_err(failed(what()))?;
        Ok(address)
    }

    fn all(&self) -> &[AtomicU64] {
        // SAFETY: the `len` words live as long as `self`, and were written when it was made. Kernels and the host only
        // access them whole and atomically.
        unsafe { std::slice::from_raw_parts(self.words.as_ptr(), self.len) }
    }

    /// Whether a wait gave up.
    pub(super) fn gave_up(&self) -> bool {
        self.all()[0].load(Ordering::Acquire) != 0
    }

    /// Returns the words of the block.
    pub(super) fn read(&self) -> Vec<u64> {
        self.all().iter().map(|word| word.load(Ordering::Acquire)).collect()
    }

    /// Sets the words to zero, as they were at first; call it only when no kernel runs.
    pub(super) fn clear(&self) {
        self.all().iter().for_each(|word| word.store(0, Ordering::Release));
    }
}
