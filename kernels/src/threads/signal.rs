//! A signal counter with the stream that waits for it, in one word: so there is no moment between "not yet
//! posted" and "parked" in which a post could miss the waiter.

use crate::sync::{AtomicU32, AtomicU64, Ordering};

const ONE_POST: u64 = 1 << 32;

/// One channel. Posts only rise during a run; a run has fewer than 2^32 of them.
#[repr(align(64))]
pub(super) struct Signal {
    /// High half: posts. Low half: one more than the parked stream, or 0.
    word: AtomicU64,
    /// Waits that were met. Only the stream whose turn it is to wait touches it.
    taken: AtomicU32,
}

/// The outcome of [`Signal::wait`].
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Wait {
    /// The post is there; the writes before it are visible.
    Met,
    /// The stream now belongs to the thread that posts next: the caller must not touch it any more.
    Parked,
    /// Another stream is parked here already.
    Shared,
}

impl Signal {
    pub(super) fn new() -> Self {
        Self { word: AtomicU64::new(0), taken: AtomicU32::new(0) }
    }

    /// Posts, with release order. Returns the stream that was parked here, which the caller must now make ready.
    #[must_use]
    pub(super) fn post(&self) -> Option<u32> {
        let mut word = self.word.load(Ordering::Relaxed);
        loop {
            // A parked stream has taken all earlier posts, so any post meets its wait.
            let raised = (word & !(ONE_POST - 1)) + ONE_POST;
            // Acquire: the parked stream's own writes become visible to the thread that runs it on.
            match self.word.compare_exchange_weak(word, raised, Ordering::AcqRel, Ordering::Relaxed)
            {
                Ok(_) => return (word as u32).checked_sub(1),
                Err(now) => word = now,
            }
        }
    }

    /// Takes the next post, with acquire order, if it is there; returns whether it is.
    pub(super) fn poll(&self) -> bool {
        let taken = self.taken.load(Ordering::Relaxed);
        let met = (self.word.load(Ordering::Acquire) >> 32) as u32 > taken;
        if met {
            self.taken.store(taken + 1, Ordering::Relaxed);
        }
        met
    }

    /// Takes the next post, with acquire order, or parks `stream`.
    #[must_use]
    pub(super) fn wait(&self, stream: u32) -> Wait {
        let taken = self.taken.load(Ordering::Relaxed);
        let mut word = self.word.load(Ordering::Acquire);
        loop {
            if (word >> 32) as u32 > taken {
                self.taken.store(taken + 1, Ordering::Relaxed);
                return Wait::Met;
            }
            if word as u32 != 0 {
                return Wait::Shared;
            }
            let parked = word | u64::from(stream + 1);
            // Release: the stream's writes and its position become visible to the thread that wakes it.
            match self.word.compare_exchange_weak(word, parked, Ordering::AcqRel, Ordering::Acquire)
            {
                Ok(_) => return Wait::Parked,
                Err(now) => word = now,
            }
        }
    }

    /// Returns the stream that is parked here.
    pub(super) fn parked(&self) -> Option<u32> {
        (self.word.load(Ordering::Relaxed) as u32).checked_sub(1)
    }

    /// Returns the numbers of posts so far and of waits that were met.
    pub(super) fn counts(&self) -> (u32, u32) {
        ((self.word.load(Ordering::Relaxed) >> 32) as u32, self.taken.load(Ordering::Relaxed))
    }

    /// Sets both counters back to 0; only while no run is under way.
    pub(super) fn reset(&self) {
        self.word.store(0, Ordering::Relaxed);
        self.taken.store(0, Ordering::Relaxed);
    }
}
