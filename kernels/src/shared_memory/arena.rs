//! The memory that the ranks of a world share: one mapping, and where in it everything lies.

use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::fd::BorrowedFd;
use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, mmap_anonymous, munmap};

use super::futex::Half;
use super::system::refused;
use crate::Error;
use crate::sync::AtomicU64;

/// Bytes of a cache line.
pub(super) const LINE: usize = 64;
/// Calls of a rank that others can still read: a rank gets no further ahead of the slowest than this.
pub(super) const WINDOW: u64 = if cfg!(all(test, loom)) { 3 } else { 8 };
/// Refused calls that are remembered.
pub(super) const VOIDS: u64 = 64;
/// Tiles of a rank that are staged at once.
pub(super) const RING: u64 = 2;
/// The most bytes of a staged tile.
pub(super) const SLOT: usize = 1 << 20;
/// Signals from one rank to another that a schedule may have, which is not fused.
pub(super) const SIGNALS: usize = 256;
/// A rank's input, output and scratch for a tile of a schedule that is not fused.
pub(super) const ROOM: usize = 64 << 20;
/// Bytes of a message between two ranks that are under way at once.
pub(super) const MAIL: usize = 64 << 10;
/// Bytes of a schedule that a rank offers to the others.
pub(super) const OFFER: usize = 4 << 20;
/// Schedules that are offered at once.
const OFFERS: usize = 32;
/// Bytes of what a failure is told by.
pub(super) const TEXT: usize = 4 << 10;
/// Bytes of a record of a refused call.
pub(super) const RECORD: usize = 256;

const PAGE: usize = 4 << 10;
const SEAT: usize = 1 << 10;

/// Where everything lies in the arena of so many ranks, in bytes from its beginning. It follows from the number of
/// ranks and the size of a rank's heap alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ArenaLayout {
    pub(super) nranks: usize,
    /// Bytes that a rank may lend out of its part.
    pub(super) heap: usize,
    voids: usize,
    seats: usize,
    claims: usize,
    signals: usize,
    mail: usize,
    parcels: usize,
    offers: usize,
    slots: usize,
    common: usize,
    rooms: usize,
    heaps: usize,
    pub(super) bytes: usize,
}

impl ArenaLayout {
    /// The most bytes of addresses that heaps take together.
    const HEAPS: usize = 32 << 40;

    pub(super) fn new(nranks: u32, memory: usize) -> Self {
        let n = nranks as usize;
        let heap = memory.min(Self::HEAPS / n) / PAGE * PAGE;
        let mut at = PAGE + TEXT.next_multiple_of(PAGE);
        let mut take = |bytes: usize| {
            let here = at;
            at += bytes.next_multiple_of(PAGE);
            here
        };
        let voids = take(VOIDS as usize * RECORD);
        let seats = take(n * SEAT);
        let claims = take(RING as usize * 2 * LINE);
        let signals = take(n * n * SIGNALS * 8);
        let mail = take(n * n * (2 * LINE + MAIL));
        let parcels = take(n * n * (2 * LINE + MAIL));
        let offers = take(OFFERS * OFFER);
        let slots = take(n * RING as usize * SLOT);
        let common = take(RING as usize * SLOT);
        let rooms = take(n * ROOM);
        let heaps = take(n * heap);
        Self {
            nranks: n,
            heap,
            voids,
            seats,
            claims,
            signals,
            mail,
            parcels,
            offers,
            slots,
            common,
            rooms,
            heaps,
            bytes: at,
        }
    }

    /// The words that ranks tell each other, from the first page to the signals.
    #[cfg(all(test, not(loom)))]
    pub(super) fn words(&self) -> std::ops::Range<usize> {
        0..self.mail
    }

    /// The record of a refused call.
    pub(super) fn void(&self, number: u64) -> usize {
        self.voids + (number % VOIDS) as usize * RECORD
    }

    /// A rank's call of that number.
    pub(super) fn call(&self, rank: usize, number: u64) -> usize {
        self.seat(rank) + (number % WINDOW) as usize * LINE
    }

    /// The lines of a rank that are not about one call.
    pub(super) fn own(&self, rank: usize, line: usize) -> usize {
        self.seat(rank) + (WINDOW as usize + line) * LINE
    }

    fn seat(&self, rank: usize) -> usize {
        self.seats + rank * SEAT
    }

    /// What is left to do of a tile that all make, and what is done.
    pub(super) fn claims(&self, tile: u64) -> [usize; 2] {
        let at = self.claims + (tile % RING) as usize * 2 * LINE;
        [at, at + LINE]
    }

    /// The counter of a signal.
    pub(super) fn signal(&self, from: usize, to: usize, which: usize) -> usize {
        self.signals + ((from * self.nranks + to) * SIGNALS + which) * 8
    }

    /// What is under way from a rank to another: two lines and then the bytes.
    pub(super) fn mail(&self, from: usize, to: usize) -> usize {
        self.mail + (from * self.nranks + to) * (2 * LINE + MAIL)
    }

    /// The same for the messages of calls.
    pub(super) fn parcels(&self, from: usize, to: usize) -> usize {
        self.parcels + (from * self.nranks + to) * (2 * LINE + MAIL)
    }

    /// The place of a schedule that is offered under that key.
    pub(super) fn offer(&self, key: u64) -> usize {
        self.offers + (key % OFFERS as u64) as usize * OFFER
    }

    /// A staged tile of a rank's input.
    pub(super) fn slot(&self, rank: usize, slot: u64) -> usize {
        self.slots + (rank * RING as usize + (slot % RING) as usize) * SLOT
    }

    /// A tile of what all get.
    pub(super) fn common(&self, tile: u64) -> usize {
        self.common + (tile % RING) as usize * SLOT
    }

    pub(super) fn room(&self, rank: usize) -> usize {
        self.rooms + rank * ROOM
    }

    /// A rank's heap.
    pub(super) fn heap_of(&self, rank: usize) -> usize {
        self.heaps + rank * self.heap
    }
}

/// The mapping. A process that is forked off does not have it.
pub(super) struct Arena {
    base: NonNull<u8>,
    pub(super) layout: ArenaLayout,
    /// A page that a forked child has, too, but all zero: what it says costs less than asking the system for a process id.
    here: NonNull<AtomicU32>,
    /// In a model the words are the model's, whatever the mapping holds.
    #[cfg(all(test, loom))]
    words: std::sync::Arc<super::loom::ModelWords>,
}

// SAFETY: it is memory at a fixed place; what is done with it has rules of its own.
unsafe impl Send for Arena {}
// SAFETY: as above.
unsafe impl Sync for Arena {}

/// Maps so many bytes of a file, at a place that the system chooses.
fn map(fd: BorrowedFd<'_>, bytes: usize) -> Result<*mut u8, Error> {
    let (access, shared) =
        (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED | MapFlags::NORESERVE);
    // SAFETY: a new mapping, which overlaps no other.
    let base = unsafe { mmap(ptr::null_mut(), bytes, access, shared, fd, 0) };
    base.map(<*mut _>::cast).map_err(|error| unmapped("a mapping (mmap)", bytes, error))
}

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

/// Finds whether this process has the addresses to map a file of so many bytes.
pub(super) fn can_map(fd: BorrowedFd<'_>, bytes: usize) -> Result<(), Error> {
    let base = map(fd, bytes)?;
    // SAFETY: it was just mapped, and nobody has the address.
    _ = unsafe { munmap(base.cast(), bytes) };
    Ok(())
}

impl Arena {
    /// Maps `fd`, which has the bytes of `layout`.
    pub(super) fn new(fd: BorrowedFd<'_>, layout: ArenaLayout) -> Result<Self, Error> {
        let base = map(fd, layout.bytes)?;
        let (access, own) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
        // SAFETY: a new mapping, at a place that the system chooses.
        let here = unsafe { mmap_anonymous(ptr::null_mut(), PAGE, access, own) };
        let here = here.map_err(|error| unmapped("to map a page", PAGE, error))?;
        let arena = Self {
            base: NonNull::new(base).expect("a mapping is not at address 0"),
            layout,
            here: NonNull::new(here.cast()).expect("a mapping is not at address 0"),
            #[cfg(all(test, loom))]
            words: super::loom::ModelWords::of_model(),
        };
        arena.mark().store(1, Ordering::Relaxed);
        // SAFETY: the page is ours.
        unsafe { madvise(here, PAGE, Advice::LinuxWipeOnFork) }
            .map_err(|error| unmapped("to tell children apart by a page", PAGE, error))?;
        // A child that inherited it would write into calls that are not its own.
        // SAFETY: the mapping is ours.
        let done =
            unsafe { madvise(arena.base.as_ptr().cast(), layout.bytes, Advice::LinuxDontFork) };
        done.map_err(|error| unmapped("to keep children from a mapping", layout.bytes, error))?;
        Ok(arena)
    }

    /// Whether this is the process that mapped it, and so has it.
    pub(super) fn is_here(&self) -> bool {
        self.mark().load(Ordering::Relaxed) == 1
    }

    /// 1 in the process that mapped the arena, and 0 in what was forked off it.
    fn mark(&self) -> &AtomicU32 {
        // SAFETY: a page of its own, which lives as long as this; every use of it is atomic.
        unsafe { self.here.as_ref() }
    }

    /// The address of so many bytes at `at`.
    pub(super) fn address(&self, at: usize, bytes: usize) -> *mut u8 {
        assert!(
            at.checked_add(bytes).is_some_and(|end| end <= self.layout.bytes),
            "within the arena"
        );
        // SAFETY: within the mapping.
        unsafe { self.base.as_ptr().add(at) }
    }

    /// Has the system look up the pages of so many bytes at `at` now, many at a time, and not one by one when they are
    /// touched. A system that does not know how looks them up later.
    pub(super) fn look_up(&self, at: usize, bytes: usize) {
        let first = at / PAGE * PAGE;
        let pages = self.address(first, at + bytes - first);
        // SAFETY: within the mapping; contents stay as they are.
        _ = unsafe { madvise(pages.cast(), at + bytes - first, Advice::LinuxPopulateWrite) };
    }

    /// Where an address lies in the arena, if so many bytes from it do.
    pub(super) fn offset(&self, address: *const u8, bytes: usize) -> Option<usize> {
        let at = address.addr().checked_sub(self.base.as_ptr().addr())?;
        (at.checked_add(bytes)? <= self.layout.bytes).then_some(at)
    }

    /// A word that all may read and write.
    #[cfg(not(all(test, loom)))]
    pub(super) fn word(&self, at: usize) -> &AtomicU64 {
        debug_assert!(at.is_multiple_of(8));
        // SAFETY: within the mapping, which lives as long as this and is aligned to pages; every use of these bytes is
        // atomic.
        unsafe { AtomicU64::from_ptr(self.address(at, 8).cast()) }
    }

    /// A half word that threads can sleep on.
    #[cfg(not(all(test, loom)))]
    pub(super) fn half(&self, at: usize) -> &Half {
        debug_assert!(at.is_multiple_of(4));
        // SAFETY: as for `word`.
        unsafe { Half::from_ptr(self.address(at, 4).cast()) }
    }

    #[cfg(all(test, loom))]
    pub(super) fn word(&self, at: usize) -> &AtomicU64 {
        self.words.word(at)
    }

    #[cfg(all(test, loom))]
    pub(super) fn half(&self, at: usize) -> &Half {
        self.words.half(at)
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        if self.is_here() {
            // SAFETY: both mapped by `new`; whoever lent memory out of them holds this, too.
            unsafe {
                _ = munmap(self.base.as_ptr().cast(), self.layout.bytes);
                _ = munmap(self.here.as_ptr().cast(), PAGE);
            }
        }
    }
}
