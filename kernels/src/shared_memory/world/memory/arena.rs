//! The memory that the ranks of a world share: one mapping, and the layout of its parts.

use std::fs::File;
use std::sync::atomic::Ordering;

use super::words::{ArenaWords, Half, Words as _};
use crate::Error;
use crate::call_numbers::WINDOW;
use crate::shared_memory::meet::mapping::{Mapping, PAGE};
use crate::sync::AtomicU64;

/// Bytes of a cache line.
pub(crate) const LINE: usize = 64;
/// The number of refused calls that have a record at once.
pub(crate) const VOIDS: u64 = 64;
/// The number of tiles that a rank stages at once.
pub(crate) const RING: u64 = 2;
/// The most bytes of a staged tile.
pub(crate) const SLOT: usize = 4 << 20;
/// The most signals from one rank to another in a schedule that is not fused.
pub(crate) const SIGNALS: usize = 256;
/// The most bytes of a rank's input, output and scratch for a tile of a schedule that is not fused.
pub(crate) const ROOM: usize = 64 << 20;
/// Bytes of messages between two ranks that are under way at once.
pub(crate) const MAIL: usize = 64 << 10;
/// Bytes of the record of a schedule that a rank offers to other ranks.
pub(crate) const OFFER: usize = 4 << 20;
/// The number of schedules that are offered at once.
const OFFERS: usize = 32;
/// The calls of a rank whose times other ranks can still read.
const TIMES: u64 = 2 * WINDOW;
/// The number of entries of the table of ways.
pub(crate) const CHOICES: usize = 512;
/// The most bytes of the text about a failure.
pub(crate) const TEXT: usize = 4 << 10;
/// Bytes of a record of a refused call.
pub(crate) const RECORD: usize = 512;
/// The number of calls of a rank that have a record at once, for processes that look from outside.
pub(crate) const CALLS: u64 = 64;
/// The number of algorithms of which the arena holds a name.
pub(crate) const NAMES: usize = 64;
/// Bytes of the name of an algorithm and of the places of its statements.
pub(crate) const NAME: usize = 16 << 10;
/// The number of sites of calls that a rank keeps.
pub(crate) const SITES: u64 = 64;
/// Bytes of a site: a word with the length of its text, and the text.
pub(crate) const SITE: usize = 256;

const SEAT: usize = 1 << 10;

/// The positions of all parts in the arena of `nranks` ranks, in bytes from its beginning. They follow from the number
/// of ranks and the size of a rank's heap alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ArenaLayout {
    pub(crate) nranks: usize,
    /// Bytes of a rank's heap, from which it lends memory.
    pub(crate) heap: usize,
    voids: usize,
    choices: usize,
    times: usize,
    seats: usize,
    claims: usize,
    signals: usize,
    blocks: usize,
    calls: usize,
    names: usize,
    sites: usize,
    mail: usize,
    parcels: usize,
    offers: usize,
    slots: usize,
    common: usize,
    rooms: usize,
    heaps: usize,
    pub(crate) bytes: usize,
}

impl ArenaLayout {
    /// The most bytes of addresses that heaps take together.
    const HEAPS: u64 = 32 << 40;

    pub(crate) fn new(nranks: u32, memory: usize) -> Self {
        let n = nranks as usize;
        let most = usize::try_from(Self::HEAPS).unwrap_or(usize::MAX);
        let heap = memory.min(most / n) / PAGE * PAGE;
        let mut at = PAGE + TEXT.next_multiple_of(PAGE);
        let mut take = |bytes: usize| {
            let here = at;
            at += bytes.next_multiple_of(PAGE);
            here
        };
        let voids = take(VOIDS as usize * RECORD);
        let choices = take(CHOICES * LINE);
        let times = take(n * TIMES as usize * 8);
        let seats = take(n * SEAT);
        let claims = take(RING as usize * 2 * LINE);
        let signals = take(n * n * SIGNALS * 8);
        let blocks = take(n * WINDOW as usize * 2 * n * 8);
        let calls = take(n * CALLS as usize * LINE);
        let names = take(NAMES * NAME);
        let sites = take(n * SITES as usize * SITE);
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
            choices,
            times,
            seats,
            claims,
            signals,
            blocks,
            calls,
            names,
            sites,
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

    /// Returns the range of the words that ranks publish for each other, from the first page to the blocks.
    #[cfg(test)]
    pub(crate) fn words(&self) -> std::ops::Range<usize> {
        0..self.calls
    }

    /// Returns the layout of the first part of the arena, which holds all words and no data.
    pub(crate) fn of_words(self) -> Self {
        Self { bytes: self.mail, ..self }
    }

    /// Returns the position of the record of a refused call.
    pub(crate) fn void(&self, number: u64) -> usize {
        self.voids + (number % VOIDS) as usize * RECORD
    }

    /// Returns the position of an entry of the table of ways.
    pub(crate) fn choice(&self, at: usize) -> usize {
        self.choices + at * LINE
    }

    /// Returns the position of the word with the time of call `number` of a rank.
    pub(crate) fn time(&self, rank: usize, number: u64) -> usize {
        self.times + (rank * TIMES as usize + (number % TIMES) as usize) * 8
    }

    /// Returns the position of the line of call `number` of a rank.
    pub(crate) fn call(&self, rank: usize, number: u64) -> usize {
        self.seat(rank) + (number % WINDOW) as usize * LINE
    }

    /// Returns the position of a line of a rank that does not belong to one call.
    pub(crate) fn own(&self, rank: usize, line: usize) -> usize {
        self.seat(rank) + (WINDOW as usize + line) * LINE
    }

    fn seat(&self, rank: usize) -> usize {
        self.seats + rank * SEAT
    }

    /// Returns the positions of the two words of a tile that all ranks make together: the chunks taken and the chunks
    /// done.
    pub(crate) fn claims(&self, tile: u64) -> [usize; 2] {
        let at = self.claims + (tile % RING) as usize * 2 * LINE;
        [at, at + LINE]
    }

    /// Returns the position of the counter of a signal.
    pub(crate) fn signal(&self, from: usize, to: usize, which: usize) -> usize {
        self.signals + ((from * self.nranks + to) * SIGNALS + which) * 8
    }

    /// Returns the position of a word about the blocks of call `number` of a rank: `which` 0 is a count, 1 the first
    /// element of a block of its input.
    pub(crate) fn block(&self, rank: usize, number: u64, which: usize, block: usize) -> usize {
        let call = rank * WINDOW as usize + (number % WINDOW) as usize;
        self.blocks + ((2 * call + which) * self.nranks + block) * 8
    }

    /// Returns the position of the record of call `number` of a rank.
    pub(crate) fn record(&self, rank: usize, number: u64) -> usize {
        self.calls + (rank * CALLS as usize + (number % CALLS) as usize) * LINE
    }

    /// Returns the position of the `nth` name of an algorithm.
    pub(crate) fn name(&self, nth: usize) -> usize {
        self.names + nth * NAME
    }

    /// Returns the position of a site of a rank, counted from 1.
    pub(crate) fn site(&self, rank: usize, number: u64) -> usize {
        self.sites + (rank * SITES as usize + number as usize - 1) * SITE
    }

    /// Returns the position of the ring for messages beside calls from one rank to another: two lines and then the
    /// bytes.
    pub(crate) fn mail(&self, from: usize, to: usize) -> usize {
        self.mail + (from * self.nranks + to) * (2 * LINE + MAIL)
    }

    /// Returns the position of the ring for messages of calls from one rank to another.
    pub(crate) fn parcels(&self, from: usize, to: usize) -> usize {
        self.parcels + (from * self.nranks + to) * (2 * LINE + MAIL)
    }

    /// Returns the position of the record for the schedule with this key.
    pub(crate) fn offer(&self, key: u64) -> usize {
        self.offers + (key % OFFERS as u64) as usize * OFFER
    }

    /// Returns the position of a slot for a staged tile of a rank's input.
    pub(crate) fn slot(&self, rank: usize, slot: u64) -> usize {
        self.slots + (rank * RING as usize + (slot % RING) as usize) * SLOT
    }

    /// Returns the position of a tile of the common output.
    pub(crate) fn common(&self, tile: u64) -> usize {
        self.common + (tile % RING) as usize * SLOT
    }

    pub(crate) fn room(&self, rank: usize) -> usize {
        self.rooms + rank * ROOM
    }

    /// Returns the position of a rank's heap.
    pub(crate) fn heap_of(&self, rank: usize) -> usize {
        self.heaps + rank * self.heap
    }
}

/// The memory that the ranks of a world share, as this process has it.
pub(crate) struct Arena {
    mapping: Mapping,
    pub(crate) layout: ArenaLayout,
    /// The words that ranks publish for each other; in a model they are those of the model, not of the mapping.
    words: ArenaWords,
}

// SAFETY: the arena is memory at a fixed place; each kind of access to it has rules of its own.
unsafe impl Send for Arena {}
// SAFETY: the arena is memory at a fixed place; each kind of access to it has rules of its own.
unsafe impl Sync for Arena {}

impl Arena {
    /// Maps a file that has the bytes of `layout`.
    pub(crate) fn new(file: &File, layout: ArenaLayout) -> Result<Self, Error> {
        Ok(Self::of(Mapping::new(file, layout.bytes)?, layout))
    }

    /// Maps a file that has the bytes of `layout`, for a process that is no rank: it can only read.
    pub(crate) fn read_only(file: &File, layout: ArenaLayout) -> Result<Self, Error> {
        Ok(Self::of(Mapping::read_only(file, layout.bytes)?, layout))
    }

    fn of(mapping: Mapping, layout: ArenaLayout) -> Self {
        // SAFETY: the mapping lives as long as the arena, and is aligned to pages; every access to the words that ranks
        // publish is atomic.
        let words = unsafe { ArenaWords::over(mapping.base(), layout.bytes) };
        Self { mapping, layout, words }
    }

    /// Whether this process is the one that mapped the arena, and not a forked child.
    pub(crate) fn is_here(&self) -> bool {
        self.mapping.is_here()
    }

    /// Returns the address of the `bytes` bytes at `at`.
    pub(crate) fn address(&self, at: usize, bytes: usize) -> *mut u8 {
        assert!(
            at.checked_add(bytes).is_some_and(|end| end <= self.layout.bytes),
            "within the arena"
        );
        // SAFETY: within the mapping.
        unsafe { self.mapping.base().add(at) }
    }

    /// Has the system look up the pages of `bytes` bytes at `at` now, many at a time, instead of one by one at their
    /// first use. A system that does not support this looks them up later.
    pub(crate) fn look_up(&self, at: usize, bytes: usize) {
        let first = at / PAGE * PAGE;
        let pages = self.address(first, at + bytes - first);
        // SAFETY: within the mapping.
        unsafe { Mapping::look_up(pages, at + bytes - first) };
    }

    /// Returns the position of an address in the arena, if `bytes` bytes from it lie in the arena.
    pub(crate) fn offset(&self, address: *const u8, bytes: usize) -> Option<usize> {
        let at = address.addr().checked_sub(self.mapping.base().addr())?;
        (at.checked_add(bytes)? <= self.layout.bytes).then_some(at)
    }

    /// Returns a word that all ranks may read and write.
    pub(crate) fn word(&self, at: usize) -> &AtomicU64 {
        self.words.word(at)
    }

    /// Returns a half word on which threads can sleep.
    pub(crate) fn half(&self, at: usize) -> &Half {
        self.words.half(at)
    }

    /// Stores a text, a word at a time.
    pub(crate) fn store_text(&self, at: usize, text: &[u8]) {
        for (nth, bytes) in text.chunks(8).enumerate() {
            let mut word = [0; 8];
            word[..bytes.len()].copy_from_slice(bytes);
            self.word(at + 8 * nth).store(u64::from_le_bytes(word), Ordering::Relaxed);
        }
    }

    /// Writes the beginning of a text, of at most `most` bytes, and returns its length.
    pub(crate) fn store_beginning(&self, at: usize, text: &str, most: usize) -> usize {
        let mut len = text.len().min(most);
        while !text.is_char_boundary(len) {
            len -= 1;
        }
        self.store_text(at, &text.as_bytes()[..len]);
        len
    }

    /// Returns a text of `len` bytes, which another rank may have written or not.
    pub(crate) fn load_text(&self, at: usize, len: usize) -> Vec<u8> {
        let words = (0..len.div_ceil(8)).map(|nth| self.word(at + 8 * nth));
        let mut text: Vec<u8> =
            words.flat_map(|word| word.load(Ordering::Relaxed).to_le_bytes()).collect();
        text.truncate(len);
        text
    }
}
