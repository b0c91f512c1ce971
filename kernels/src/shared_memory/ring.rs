//! A ring of bytes in the arena, with one writer and one reader: what is there is filled up to whole units, so no header
//! of a unit lies across the ring's end.

use std::sync::atomic::Ordering;

use super::arena::{LINE, MAIL};
use super::queue_ends::QueueEnd;
use super::world::World;
use crate::Error;

/// Bytes of which all that is in a ring is a multiple.
pub(super) const UNIT: usize = 16;
/// Bytes that are made known at once, so that both sides of a long message copy at a time.
const PIECE: usize = MAIL / 4;

/// One end of a ring.
pub(super) struct Ring<'w> {
    pub(super) world: &'w World,
    pub(super) end: &'w mut QueueEnd,
    /// Where it lies in the arena.
    pub(super) at: usize,
    pub(super) from: usize,
    pub(super) to: usize,
    /// Whether this rank writes, which may be to itself.
    pub(super) writes: bool,
}

impl Ring<'_> {
    /// The rank at the other end.
    pub(super) fn other(&self) -> usize {
        if self.writes { self.to } else { self.from }
    }

    /// Bytes between the reader and the writer, as the other end tells of itself.
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

    /// Bytes that can be written.
    pub(super) fn room(&self) -> Result<usize, Error> {
        let read = self.world.shared.arena.word(self.at + LINE).load(Ordering::Acquire);
        Ok(MAIL - self.filled_to(self.end.bytes, read)?)
    }

    /// Bytes that can be read.
    pub(super) fn filled(&self) -> Result<usize, Error> {
        let written = self.world.shared.arena.word(self.at).load(Ordering::Acquire);
        self.filled_to(written, self.end.bytes)
    }

    /// Where this end stands in the ring, and how far it is from there to the ring's end.
    fn place(&self) -> (usize, usize) {
        let place = (self.end.bytes % MAIL as u64) as usize;
        (self.at + 2 * LINE + place, MAIL - place)
    }

    /// Writes a unit.
    pub(super) fn write(&mut self, words: [u64; 2]) {
        let (at, _) = self.place();
        for (place, word) in [at, at + 8].into_iter().zip(words) {
            self.world.shared.arena.word(place).store(word, Ordering::Relaxed);
        }
        self.end.bytes += UNIT as u64;
    }

    /// The unit at which this end stands, so many units further on.
    pub(super) fn look(&self, units: usize) -> [u64; 2] {
        let place = (self.end.bytes as usize + units * UNIT) % MAIL;
        let at = self.at + 2 * LINE + place;
        [at, at + 8].map(|place| self.world.shared.arena.word(place).load(Ordering::Relaxed))
    }

    /// The next bytes that lie in one piece, of so many that there are, and so many that are left of the message.
    pub(super) fn piece(&self, there: usize, left: usize) -> (*mut u8, usize) {
        let (at, to_end) = self.place();
        let len = there.min(to_end).min(PIECE).min(left);
        (self.world.shared.arena.address(at, len), len)
    }

    /// Goes on behind so many bytes, and at the end of a message to a whole unit.
    pub(super) fn step(&mut self, len: usize) {
        self.end.bytes += len.next_multiple_of(UNIT) as u64;
    }

    /// Tells the other end how far this one is.
    pub(super) fn publish(&self) {
        let line = if self.writes { 0 } else { LINE };
        // Release: the bytes are there, or are read.
        let word = self.world.shared.arena.word(self.at + line);
        word.store(self.end.bytes, Ordering::Release);
        self.world.shared.ring_for(self.other());
    }
}
