//! A ring of bytes in the arena, with one writer and one reader. Each entry is filled up to whole units, so no unit
//! lies across the ring's end.

use std::sync::atomic::Ordering;

use super::World;
use super::memory::arena::{LINE, MAIL};
use super::queue_ends::QueueEnd;
use crate::Error;

/// Bytes of a unit: every position of an entry in a ring is a multiple of it.
pub(crate) const UNIT: usize = 16;
/// The most bytes that are published at once, so that both ends of a long message copy at one time.
const PIECE: usize = MAIL / 4;

/// One end of a ring.
pub(crate) struct Ring<'w> {
    pub(crate) world: &'w World,
    pub(crate) end: &'w mut QueueEnd,
    /// The ring's position in the arena.
    pub(crate) at: usize,
    pub(crate) from: usize,
    pub(crate) to: usize,
    /// Whether this rank writes; its reader may be this rank itself.
    pub(crate) writes: bool,
}

impl Ring<'_> {
    /// Returns the rank at the other end.
    pub(crate) fn other(&self) -> usize {
        if self.writes { self.to } else { self.from }
    }

    /// Returns the bytes between the reader and the writer, after a check of the count that the other end published.
    fn filled_to(&self, written: u64, read: u64) -> Result<usize, Error> {
        let filled = written.wrapping_sub(read);
        if filled > MAIL as u64 || !filled.is_multiple_of(UNIT as u64) {
            let [from, to] = [self.from, self.to].map(|rank| self.world.named(rank));
            return Err(self.world.corrupt(format!(
                "of {written} bytes that rank {from} wrote for rank {to} that one has read {read}, by a ring of {MAIL} bytes"
            )));
        }
        Ok(filled as usize)
    }

    /// Returns the bytes that can be written.
    pub(crate) fn room(&self) -> Result<usize, Error> {
        let read = self.world.shared.arena.word(self.at + LINE).load(Ordering::Acquire);
        Ok(MAIL - self.filled_to(self.end.bytes, read)?)
    }

    /// Returns the bytes that can be read.
    pub(crate) fn filled(&self) -> Result<usize, Error> {
        let written = self.world.shared.arena.word(self.at).load(Ordering::Acquire);
        self.filled_to(written, self.end.bytes)
    }

    /// Returns the position of this end in the arena, and the bytes from there to the ring's end.
    fn place(&self) -> (usize, usize) {
        let place = (self.end.bytes % MAIL as u64) as usize;
        (self.at + 2 * LINE + place, MAIL - place)
    }

    /// Writes a unit.
    pub(crate) fn write(&mut self, words: [u64; 2]) {
        let (at, _) = self.place();
        for (place, word) in [at, at + 8].into_iter().zip(words) {
            self.world.shared.arena.word(place).store(word, Ordering::Relaxed);
        }
        self.end.bytes += UNIT as u64;
    }

    /// Returns the unit that lies `units` units behind the position of this end.
    pub(crate) fn look(&self, units: usize) -> [u64; 2] {
        let place = (self.end.bytes as usize + units * UNIT) % MAIL;
        let at = self.at + 2 * LINE + place;
        [at, at + 8].map(|place| self.world.shared.arena.word(place).load(Ordering::Relaxed))
    }

    /// Returns the address and the length of the next bytes in one piece: at most `there`, the bytes in the ring, and
    /// `left`, the rest of the message.
    pub(crate) fn piece(&self, there: usize, left: usize) -> (*mut u8, usize) {
        let (at, to_end) = self.place();
        let len = there.min(to_end).min(PIECE).min(left);
        (self.world.shared.arena.address(at, len), len)
    }

    /// Advances this end by `len` bytes, rounded up to whole units.
    pub(crate) fn step(&mut self, len: usize) {
        self.end.bytes += len.next_multiple_of(UNIT) as u64;
    }

    /// Publishes the position of this end, and wakes the other end.
    pub(crate) fn publish(&self) {
        let line = if self.writes { 0 } else { LINE };
        // Release: the bytes are written, or read, before the position.
        let word = self.world.shared.arena.word(self.at + line);
        word.store(self.end.bytes, Ordering::Release);
        self.world.shared.ring_for(self.other());
    }
}
