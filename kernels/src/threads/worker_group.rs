//! The workers in a run, whose caller returns when all have left. It spins a little before it sleeps, as the last tiles
//! of a run end for all workers at nearly the same time.

use crate::sync::{AtomicU32, Condvar, Mutex, Ordering, lock, spin};

/// The workers of a run.
pub(super) struct WorkerGroup {
    /// The workers in the run, [`ONE`] each, and [`AWAITED`] if the caller sleeps until the last one leaves: in one
    /// word, so that the last worker to leave and the sleeping caller cannot miss each other.
    present: AtomicU32,
    mutex: Mutex<()>,
    gone: Condvar,
}

/// The mark that a thread sleeps until the last worker leaves.
const AWAITED: u32 = 1;
/// The unit of the worker count.
const ONE: u32 = 2;

impl WorkerGroup {
    pub(super) fn new() -> Self {
        Self { present: AtomicU32::new(0), mutex: Mutex::new(()), gone: Condvar::new() }
    }

    /// Counts a worker in; the caller makes sure that [`Self::leave`] is called.
    pub(super) fn enter(&self) {
        self.present.fetch_add(ONE, Ordering::Relaxed);
    }

    /// Counts a worker out, after its last access to anything of the run.
    pub(super) fn leave(&self) {
        // Release: the thread that finds the run empty sees the worker's writes.
        if self.present.fetch_sub(ONE, Ordering::Release) == ONE | AWAITED {
            // The waiting thread holds the mutex from its last look until it waits on `gone`.
            drop(lock(&self.mutex));
            self.gone.notify_all();
        }
    }

    /// Returns when no worker is in the run.
    pub(super) fn wait_until_empty(&self) {
        if spin(|| self.present.load(Ordering::Acquire) == 0) {
            return;
        }
        let mut guard = lock(&self.mutex);
        self.present.fetch_or(AWAITED, Ordering::Relaxed);
        while self.present.load(Ordering::Acquire) != AWAITED {
            guard = self.gone.wait(guard).unwrap_or_else(std::sync::PoisonError::into_inner);
        }
        self.present.fetch_and(!AWAITED, Ordering::Relaxed);
    }
}
