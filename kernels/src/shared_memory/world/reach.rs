//! The knowledge of a rank about reads of other ranks' memory, which not every system allows: a rank finds out by one read
//! of a place with known contents.

use std::sync::atomic::Ordering;

use super::memory::arena::Arena;

/// The line of a seat with the place that other ranks try to read, after the words of the launch.
pub(crate) const LINE: usize = 6;
/// Offsets of the words of this line: the address to read, the value there, and whether this rank can read from all
/// other ranks.
pub(crate) const PLACE: usize = 2 * 8;
pub(crate) const VALUE: usize = 3 * 8;
pub(crate) const VERDICT: usize = 4 * 8;
pub(crate) const CAN: u64 = 1;
pub(crate) const CANNOT: u64 = 2;

/// A rank's knowledge of the memory that ranks can read.
pub(crate) struct Reach {
    /// The value that other ranks try to read; its address never changes.
    _probe: Box<u64>,
    pub(crate) tried: bool,
    /// Whether all ranks can read from all ranks.
    pub(crate) all: bool,
}

impl Reach {
    /// Publishes the address and the value that other ranks try to read.
    pub(crate) fn new(arena: &Arena, rank: usize) -> Self {
        let mut probe = Box::new(0);
        let place = std::ptr::from_ref(&*probe).addr() as u64;
        // A value that no other process has at this address.
        *probe = place.rotate_left(24) ^ u64::from(std::process::id()) ^ 0x9e37_79b9_7f4a_7c15;
        let at = arena.layout.own(rank, LINE);
        arena.word(at + VALUE).store(*probe, Ordering::Relaxed);
        arena.word(at + PLACE).store(place, Ordering::Release);
        Self { _probe: probe, tried: false, all: false }
    }
}
