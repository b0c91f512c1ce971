//! The words of an arena, half words on which threads of several processes sleep, and barriers in all of these processes:
//! those of the system, or in a model those that loom checks.

#[cfg(all(test, loom))]
pub(crate) use crate::shared_memory::loom::{ArenaWords, Half, barrier, register, wait, wake};
use crate::sync::AtomicU64;
#[cfg(not(all(test, loom)))]
pub(crate) use {
    crate::shared_memory::meet::futex::{barrier, register, wait, wake},
    system::{ArenaWords, Half},
};

/// The words of an arena, by their positions in bytes. All ranks may read and write them.
pub(crate) trait Words {
    /// Returns the words of a mapping of `bytes` bytes.
    ///
    /// # Safety
    /// The mapping begins at `base`, which is aligned to pages, and lives as long as the returned value. Every access to
    /// the words is atomic.
    unsafe fn over(base: *mut u8, bytes: usize) -> Self;

    /// Returns the word at a position.
    fn word(&self, at: usize) -> &AtomicU64;

    /// Returns the half word at a position, on which threads can sleep.
    fn half(&self, at: usize) -> &Half;
}

#[cfg(not(all(test, loom)))]
mod system {
    use super::Words;
    use crate::sync::{AtomicU32, AtomicU64};

    pub(crate) type Half = AtomicU32;

    /// The words of a mapping.
    pub(crate) struct ArenaWords {
        base: *mut u8,
        bytes: usize,
    }

    impl ArenaWords {
        /// Returns the address of the `bytes` bytes at `at`.
        fn address(&self, at: usize, bytes: usize) -> *mut u8 {
            let end = at.checked_add(bytes);
            assert!(end.is_some_and(|end| end <= self.bytes), "within the arena");
            debug_assert!(at.is_multiple_of(bytes));
            // SAFETY: within the mapping.
            unsafe { self.base.add(at) }
        }
    }

    impl Words for ArenaWords {
        unsafe fn over(base: *mut u8, bytes: usize) -> Self {
            Self { base, bytes }
        }

        fn word(&self, at: usize) -> &AtomicU64 {
            // SAFETY: the word lies in the mapping, which lives as long as `self` and is aligned to pages; every access to
            // these bytes is atomic.
            unsafe { AtomicU64::from_ptr(self.address(at, 8).cast()) }
        }

        fn half(&self, at: usize) -> &Half {
            // SAFETY: the half word lies in the mapping, which lives as long as `self` and is aligned to pages; every
            // access to these bytes is atomic.
            unsafe { Half::from_ptr(self.address(at, 4).cast()) }
        }
    }
}
