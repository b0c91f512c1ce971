//! Mappings of the memory that ranks share.

use std::fs::File;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::fd::AsFd;
use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, mmap_anonymous, munmap};

use super::system::refused;
use crate::Error;

/// The access of a rank to the arena.
const RANK: ProtFlags = ProtFlags::READ.union(ProtFlags::WRITE);

/// Bytes of a page.
pub(crate) const PAGE: usize = 4 << 10;

/// A mapping of the memory that ranks share. A forked child does not have it.
pub(crate) struct Mapping {
    base: NonNull<u8>,
    bytes: usize,
    /// A page that the system zeroes in a forked child: a look at it costs less than asking the system for the process
    /// id.
    here: NonNull<AtomicU32>,
}

impl Mapping {
    /// Maps `bytes` bytes of a file.
    pub(crate) fn new(file: &File, bytes: usize) -> Result<Self, Error> {
        Self::with(file, bytes, RANK)
    }

    /// Maps `bytes` bytes of a file, for a process that is no rank: it can only read.
    pub(crate) fn read_only(file: &File, bytes: usize) -> Result<Self, Error> {
        Self::with(file, bytes, ProtFlags::READ)
    }

    fn with(file: &File, bytes: usize, access: ProtFlags) -> Result<Self, Error> {
        let base = map(file, bytes, access)?;
        // SAFETY: a new mapping, at an address that the system chooses.
        let here = unsafe { mmap_anonymous(ptr::null_mut(), PAGE, RANK, MapFlags::PRIVATE) };
        let here = here.map_err(|error| unmapped("to map a page", PAGE, error))?;
        let mapping = Self {
            base: NonNull::new(base).expect("a mapping is not at address 0"),
            bytes,
            here: NonNull::new(here.cast()).expect("a mapping is not at address 0"),
        };
        mapping.mark().store(1, Ordering::Relaxed);
        // SAFETY: the page is ours.
        unsafe { madvise(here, PAGE, Advice::LinuxWipeOnFork) }
            .map_err(|error| unmapped("to tell children apart by a page", PAGE, error))?;
        // A child that inherited the mapping would write into calls that are not its own.
        // SAFETY: the mapping is ours.
        let done = unsafe { madvise(base.cast(), bytes, Advice::LinuxDontFork) };
        done.map_err(|error| unmapped("to keep children from a mapping", bytes, error))?;
        Ok(mapping)
    }

    /// Returns the address of the mapping.
    pub(crate) fn base(&self) -> *mut u8 {
        self.base.as_ptr()
    }

    /// Whether this process is the one that mapped the memory, and not a forked child.
    pub(crate) fn is_here(&self) -> bool {
        self.mark().load(Ordering::Relaxed) == 1
    }

    /// Returns a word that is 1 in the process that mapped the memory, and 0 in a forked child.
    fn mark(&self) -> &AtomicU32 {
        // SAFETY: the word has a page of its own, which lives as long as `self`; every access to it is atomic.
        unsafe { self.here.as_ref() }
    }

    /// Has the system look up the pages of `bytes` bytes at `pages` now, many at a time, instead of one by one at their
    /// first use. A system that does not support this looks them up later.
    ///
    /// # Safety
    /// The pages lie within the mapping.
    pub(crate) unsafe fn look_up(pages: *mut u8, bytes: usize) {
        // SAFETY: the caller's promise; contents stay as they are.
        _ = unsafe { madvise(pages.cast(), bytes, Advice::LinuxPopulateWrite) };
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        if self.is_here() {
            // SAFETY: `with` mapped both; a value that lends memory out of them also holds this mapping.
            unsafe {
                _ = munmap(self.base.as_ptr().cast(), self.bytes);
                _ = munmap(self.here.as_ptr().cast(), PAGE);
            }
        }
    }
}

/// Maps `bytes` bytes of a file, at an address that the system chooses.
fn map(file: impl AsFd, bytes: usize, access: ProtFlags) -> Result<*mut u8, Error> {
    let shared = MapFlags::SHARED | MapFlags::NORESERVE;
    // SAFETY: a new mapping, which overlaps no other.
    let base = unsafe { mmap(ptr::null_mut(), bytes, access, shared, file, 0) };
    base.map(<*mut _>::cast).map_err(|error| unmapped("a mapping (mmap)", bytes, error))
}

/// Returns the error of a mapping that the system refuses.
fn unmapped(what: &str, bytes: usize, errno: Errno) -> Error {
    let advice = match errno {
        Errno::NOMEM => "; raise the limit of addresses (ulimit -v), or use fewer ranks",
        _ => "",
    };
    let what = format!("{what} of {bytes} bytes of addresses, which ranks share{advice}");
    match advice {
        "" => refused(what, errno),
        _ => Error::SystemRefused { what: format!("the system refuses {what} ({errno})") },
    }
}

/// Checks that this process has the addresses to map a file of `bytes` bytes.
pub(crate) fn can_map(file: impl AsFd, bytes: usize) -> Result<(), Error> {
    let base = map(file, bytes, RANK)?;
    // SAFETY: this function has just mapped it, and no other code has the address.
    _ = unsafe { munmap(base.cast(), bytes) };
    Ok(())
}
