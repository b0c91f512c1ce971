//! Where workers sleep when no stream is ready, and how they leave. The lock here is off the data path: it is
//! taken to fall asleep, to wake a sleeper that is known to be there, to enter and to leave.

use std::time::Duration;

use crate::sync::{AtomicBool, AtomicU32, Condvar, Mutex, Ordering, fence, lock};

/// The workers of one run.
pub(super) struct Idle {
    /// Workers that are in the run.
    present: Mutex<u32>,
    /// Workers that sleep or are about to; changed only under the lock.
    asleep: AtomicU32,
    stopped: AtomicBool,
    /// Work came, or the run stopped.
    bell: Condvar,
    /// The last worker left.
    gone: Condvar,
}

/// Why a worker did not sleep, or no longer does.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Slept {
    /// Look again.
    Woken,
    /// Every worker sleeps and nothing is ready: nobody is left who could post.
    Stalled,
    /// The time is over.
    TimedOut,
}

impl Idle {
    pub(super) fn new() -> Self {
        Self {
            present: Mutex::new(0),
            asleep: AtomicU32::new(0),
            stopped: AtomicBool::new(false),
            bell: Condvar::new(),
            gone: Condvar::new(),
        }
    }

    /// A worker comes in; whoever calls this sees to it that [`Self::leave`] is called.
    pub(super) fn enter(&self) {
        *lock(&self.present) += 1;
    }

    /// A worker goes, after its last access to anything of the run.
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
        self.bell.notify_all();
    }

    pub(super) fn stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    /// Ready for the next run; only while no worker is in this one.
    pub(super) fn reset(&self) {
        self.stopped.store(false, Ordering::Relaxed);
    }

    /// Wakes a sleeper, if there is one, after something was made ready.
    pub(super) fn wake_one(&self) {
        // Against the fence in `sleep`: either we see the sleeper, or it sees what was made ready.
        fence(Ordering::SeqCst);
        if self.asleep.load(Ordering::Relaxed) != 0 {
            // The sleeper holds the lock from its last look until it hears the bell.
            let _present = lock(&self.present);
            self.bell.notify_one();
        }
    }

    /// Sleeps unless `ready()` or the run has stopped.
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
                .bell
                .wait_timeout(present, limit)
                .unwrap_or_else(std::sync::PoisonError::into_inner);
            self.asleep.fetch_sub(1, Ordering::Relaxed);
            return if timeout.timed_out() { Slept::TimedOut } else { Slept::Woken };
        };
        self.asleep.fetch_sub(1, Ordering::Relaxed);
        slept
    }
}
