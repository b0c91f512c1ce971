//! Who is in a run: its caller returns when nobody is. All but the first to leave spin a little, as the last tile
//! of a run ends for all at nearly the same time.

use super::sync::{AtomicBool, AtomicU32, Condvar, Mutex, Ordering, lock, spin};

/// The workers of a run.
pub(super) struct Crew {
    present: AtomicU32,
    /// Somebody sleeps until the last one leaves.
    awaited: AtomicBool,
    door: Mutex<()>,
    gone: Condvar,
}

impl Crew {
    pub(super) fn new() -> Self {
        Self {
            present: AtomicU32::new(0),
            awaited: AtomicBool::new(false),
            door: Mutex::new(()),
            gone: Condvar::new(),
        }
    }

    /// A worker comes in; whoever calls this sees to it that [`Self::leave`] is called.
    pub(super) fn enter(&self) {
        self.present.fetch_add(1, Ordering::Relaxed);
    }

    /// A worker goes, after its last access to anything of the run.
    pub(super) fn leave(&self) {
        // Release: what it did is seen by who finds the run empty. SeqCst: either we see that we are awaited, or
        // who awaits us sees that we are gone.
        if self.present.fetch_sub(1, Ordering::SeqCst) == 1 && self.awaited.load(Ordering::SeqCst) {
            drop(lock(&self.door));
            self.gone.notify_all();
        }
    }

    /// Returns when no worker is in the run.
    pub(super) fn wait_until_empty(&self) {
        if spin(|| self.present.load(Ordering::Acquire) == 0) {
            return;
        }
        let mut door = lock(&self.door);
        self.awaited.store(true, Ordering::SeqCst);
        while self.present.load(Ordering::SeqCst) != 0 {
            door = self.gone.wait(door).unwrap_or_else(std::sync::PoisonError::into_inner);
        }
        self.awaited.store(false, Ordering::Relaxed);
    }
}
