//! The sleep of workers while no stream is ready, and their exit from a run. The lock here is off the data path: a
//! worker takes it to fall asleep, to wake a sleeper that is known to be there, to enter and to leave.

use std::time::Duration;

use crate::sync::{AtomicBool, AtomicU32, Condvar, Mutex, Ordering, fence, lock};

/// The workers of one run.
pub(super) struct Idle {
    /// Workers that are in the run.
    present: Mutex<u32>,
    /// Workers that sleep or are about to sleep; changed only under the lock.
    asleep: AtomicU32,
    stopped: AtomicBool,
    /// Signalled when a stream is ready, or the run stops.
    wakeup: Condvar,
    /// Signalled when the last worker has left.
    gone: Condvar,
}

/// The reason for which a worker did not sleep, or woke up.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Slept {
    /// A stream may be ready, or the run has stopped: the worker looks again.
    Woken,
    /// Every worker sleeps and no stream is ready: no worker is left that could post.
    Stalled,
    /// The time limit is over.
    TimedOut,
}

impl Idle {
    pub(super) fn new() -> Self {
        Self {
            present: Mutex::new(0),
            asleep: AtomicU32::new(0),
            stopped: AtomicBool::new(false),
            wakeup: Condvar::new(),
            gone: Condvar::new(),
        }
    }

    /// Counts a worker in; the caller makes sure that [`Self::leave`] is called.
    pub(super) fn enter(&self) {
        *lock(&self.present) += 1;
    }

    /// Counts a worker out, after its last access to anything of the run.
    pub(super) fn leave(&self) {
        let mut present = lock(&self.present);
        *present -= 1;
        if *present == 0 {
            self.gone.notify_all();
        }
    }

    /// Returns when no worker is in the run.
    pub(super) fn wait_until_empty(&self) {
        let mut present = lock(&self.present);
        while *present != 0 {
            present = self.gone.wait(present).unwrap_or_else(std::sync::PoisonError::into_inner);
        }
    }

    /// Ends the run for all workers.
    pub(super) fn stop(&self) {
        self.stopped.store(true, Ordering::SeqCst);
        let _present = lock(&self.present);
        self.wakeup.notify_all();
    }

    pub(super) fn stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    /// Prepares this for the next run; only while no worker is in a run.
    pub(super) fn reset(&self) {
        self.stopped.store(false, Ordering::Relaxed);
    }

    /// Wakes a sleeper, if there is one, after a stream was made ready.
    pub(super) fn wake_one(&self) {
        // Pairs with the fence in `sleep`: either this thread sees the sleeper, or the sleeper sees the ready stream.
        fence(Ordering::SeqCst);
        if self.asleep.load(Ordering::Relaxed) != 0 {
            // The sleeper holds the lock from its last look until it waits on `wakeup`.
            let _present = lock(&self.present);
            self.wakeup.notify_one();
        }
    }

    /// Sleeps until a wakeup, at most for `limit`, unless `ready()` is true or the run has stopped.
    pub(super) fn sleep(&self, ready: impl Fn() -> bool, limit: Duration) -> Slept {
        let present = lock(&self.present);
        let asleep = self.asleep.fetch_add(1, Ordering::Relaxed) + 1;
        fence(Ordering::SeqCst);
        let slept = if self.stopped() || ready() {
            Slept::Woken
        } else if asleep == *present {
            Slept::Stalled
        } else {
            let (_present, timeout) = self
                .wakeup
                .wait_timeout(present, limit)
                .unwrap_or_else(std::sync::PoisonError::into_inner);
            self.asleep.fetch_sub(1, Ordering::Relaxed);
            return if timeout.timed_out() { Slept::TimedOut } else { Slept::Woken };
        };
        self.asleep.fetch_sub(1, Ordering::Relaxed);
        slept
    }
}
