//! Who is in a run: its caller returns when nobody is. All but the first to leave spin a little, as the last tile
//! of a run ends for all at nearly the same time.

use crate::sync::{AtomicU32, Condvar, Mutex, Ordering, lock, spin};

/// The workers of a run.
pub(super) struct Crew {
    /// Workers that are in, each [`ONE`], and whether somebody is [`AWAITED`]: in one word, so that the last to
    /// leave and who awaits that cannot miss each other.
    present: AtomicU32,
    door: Mutex<()>,
    gone: Condvar,
}

/// Somebody sleeps until the last one leaves.
const AWAITED: u32 = 1;
/// A worker.
const ONE: u32 = 2;

impl Crew {
    pub(super) fn new() -> Self {
        Self { present: AtomicU32::new(0), door: Mutex::new(()), gone: Condvar::new() }
    }

    /// A worker comes in; whoever calls this sees to it that [`Self::leave`] is called.
    pub(super) fn enter(&self) {
        self.present.fetch_add(ONE, Ordering::Relaxed);
    }

    /// A worker goes, after its last access to anything of the run.
    pub(super) fn leave(&self) {
        // Release: what it did is seen by who finds the run empty.
        if self.present.fetch_sub(ONE, Ordering::Release) == ONE | AWAITED {
            // Who awaits it holds the door from its last look until it hears of this.
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
        self.present.fetch_or(AWAITED, Ordering::Relaxed);
        while self.present.load(Ordering::Acquire) != AWAITED {
            door = self.gone.wait(door).unwrap_or_else(std::sync::PoisonError::into_inner);
        }
        self.present.fetch_and(!AWAITED, Ordering::Relaxed);
    }
}
