//! A thread that waits for others: it spins for a while where it has a core for itself, then lets others have their turns,
//! then sleeps until one of them rings.

use std::time::{Duration, Instant};

use super::sync::{AtomicBool, Condvar, Mutex, Ordering, fence, lock, spin, take_turns};

/// The bell of one waiting thread.
pub(super) struct Bell {
    asleep: AtomicBool,
    door: Mutex<()>,
    rung: Condvar,
}

impl Bell {
    pub(super) fn new() -> Self {
        Self { asleep: AtomicBool::new(false), door: Mutex::new(()), rung: Condvar::new() }
    }

    /// Wakes the thread if it sleeps, after something changed that it may wait for, and then a fence: against the one
    /// in `wait`, so that either we see that it sleeps, or it sees what changed.
    pub(super) fn wake(&self) {
        if self.asleep.load(Ordering::Relaxed) {
            // It holds the door from its last look until it hears the bell.
            drop(lock(&self.door));
            self.rung.notify_one();
        }
    }

    /// Returns when `ready()`, or after `limit`; whether it is. Spins before it sleeps where that is `worth` it.
    pub(super) fn wait(&self, ready: impl Fn() -> bool, worth: bool, limit: Duration) -> bool {
        if worth && spin(&ready) || take_turns(&ready) {
            return true;
        }
        let since = Instant::now();
        let mut door = lock(&self.door);
        self.asleep.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        let met = loop {
            if ready() {
                break true;
            }
            let left = limit.saturating_sub(since.elapsed());
            if left.is_zero() {
                break false;
            }
            door = self
                .rung
                .wait_timeout(door, left)
                .unwrap_or_else(std::sync::PoisonError::into_inner)
                .0;
        };
        self.asleep.store(false, Ordering::Relaxed);
        met
    }
}
