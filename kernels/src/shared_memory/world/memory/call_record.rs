//! The record of the last calls of each rank, for processes that look from outside: no rank reads it.

use super::clock::ticks;
use super::shared_state::{CallHeader, SharedState};
use crate::sync::{AtomicU64, MODELLED, Ordering, fence};

/// The record of a call of a rank.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CallRecord {
    pub(crate) header: CallHeader,
    /// The moment at which the rank made the call, in ticks.
    pub(crate) begun: u64,
    /// The moment at which the rank was done with the call, in ticks; 0 before.
    pub(crate) ended: u64,
    /// Whether the call failed.
    pub(crate) failed: bool,
    /// The number of its site.
    pub(crate) site: u64,
}

impl SharedState {
    /// Returns a word of a record: the call's number, three words of its header, the words of its
    /// times, and the number of its site.
    fn record(&self, rank: usize, number: u64, word: usize) -> &AtomicU64 {
        self.arena.word(self.arena.layout.record(rank, number) + 8 * word)
    }

    /// Writes the record of call `number` of this process's rank, which begins; `site` is the number of its site, in a
    /// world that keeps them.
    pub(crate) fn record_begin(
        &self,
        rank: usize,
        number: u64,
        header: &CallHeader,
        site: Option<u64>,
    ) {
        // In a model no process looks from outside.
        if MODELLED {
            return;
        }
        // A reader drops a record whose number changes while it reads.
        self.record(rank, number, 0).store(0, Ordering::Relaxed);
        fence(Ordering::Release);
        let [identity, count, shape] = header.words();
        for (at, word) in (1..).zip([identity, count, shape, ticks(), 0]) {
            self.record(rank, number, at).store(word, Ordering::Relaxed);
        }
        if let Some(site) = site {
            self.record(rank, number, 6).store(site, Ordering::Relaxed);
        }
        self.record(rank, number, 0).store(number, Ordering::Release);
    }

    /// Writes to the record of call `number` of this process's rank that the call is over.
    pub(crate) fn record_end(&self, rank: usize, number: u64, failed: bool) {
        if MODELLED {
            return;
        }
        // The lowest bit of the time says whether the call failed.
        let word = ticks() & !1 | u64::from(failed);
        self.record(rank, number, 5).store(word, Ordering::Relaxed);
    }

    /// Returns the record of call `number` of a rank; `None` where it is no longer there or not yet.
    pub(crate) fn recorded(&self, rank: usize, number: u64) -> Option<CallRecord> {
        let found = || self.record(rank, number, 0).load(Ordering::Acquire) == number;
        if number == 0 || !found() {
            return None;
        }
        let word = |at| self.record(rank, number, at).load(Ordering::Relaxed);
        let header = CallHeader::of_words([word(1), word(2), word(3)]);
        let [begun, ended, site] = [4, 5, 6].map(word);
        fence(Ordering::Acquire);
        let (failed, ended) = (ended & 1 == 1, ended & !1);
        found().then_some(CallRecord { header, begun, ended, failed, site })
    }
}
