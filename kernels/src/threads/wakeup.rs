//! The wait of a rank's thread: it spins for a while where it has a core for itself, then yields to other threads, then
//! sleeps until another thread wakes it.

use std::time::{Duration, Instant};

use roundelay_core::ids::RankId;

use crate::sync::{AtomicBool, AtomicU32, Condvar, Mutex, Ordering, fence, lock, spin, take_turns};

/// Returns the word for the rank whose call a thread waits for, or for a wait within a call.
fn word(awaited: Option<RankId>) -> u32 {
    awaited.map_or(u32::MAX, |rank| rank.0)
}

/// The sleep and the wakeup of one waiting thread.
pub(super) struct Wakeup {
    asleep: AtomicBool,
    /// The rank whose call the thread waits for, as a word, written before the thread falls asleep.
    awaited: AtomicU32,
    mutex: Mutex<()>,
    condvar: Condvar,
}

impl Wakeup {
    pub(super) fn new() -> Self {
        let awaited = AtomicU32::new(word(None));
        let asleep = AtomicBool::new(false);
        Self { asleep, awaited, mutex: Mutex::new(()), condvar: Condvar::new() }
    }

    /// Wakes the thread if it sleeps. Before, the caller has changed a value that the thread may wait for, and made a
    /// fence. That fence pairs with the fence in `wait`: either this call sees that the thread sleeps, or the thread
    /// sees the change.
    pub(super) fn wake(&self) {
        if self.asleep.load(Ordering::Relaxed) {
            // The thread holds the mutex from its last look until it waits on the condvar.
            drop(lock(&self.mutex));
            self.condvar.notify_one();
        }
    }

    /// Wakes the thread if it sleeps and waits for a call of rank `by`: other threads would find nothing new, and of
    /// many ranks each would wake all. The caller has made a change and a fence, as for [`Self::wake`].
    pub(super) fn called(&self, by: RankId) {
        // A thread that is seen asleep has written `awaited` before. If it has gone on to another wait since, it has
        // seen the call.
        if self.awaited.load(Ordering::Relaxed) == word(Some(by)) {
            self.wake();
        }
    }

    /// Waits until `ready()` is true, at most for `limit`; returns whether it is. A call of the rank `awaited` makes it
    /// true, or other changes, each of which a [`Self::wake`] follows. Spins before it sleeps where `worth` is set.
    pub(super) fn wait(
        &self,
        ready: impl Fn() -> bool,
        awaited: Option<RankId>,
        worth: bool,
        limit: Duration,
    ) -> bool {
        if worth && spin(&ready) || take_turns(&ready) {
            return true;
        }
        let since = Instant::now();
        let mut guard = lock(&self.mutex);
        self.awaited.store(word(awaited), Ordering::Relaxed);
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
            guard = self
                .condvar
                .wait_timeout(guard, left)
                .unwrap_or_else(std::sync::PoisonError::into_inner)
                .0;
        };
        self.asleep.store(false, Ordering::Relaxed);
        met
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn only_the_call_that_is_awaited_wakes() {
        let (wakeup, looks, come) = (&Wakeup::new(), AtomicU32::new(0), AtomicBool::new(false));
        let ready = &|| {
            looks.fetch_add(1, Ordering::Relaxed);
            come.load(Ordering::Relaxed)
        };
        let others = [0, 2, 4].map(RankId);
        thread::scope(|threads| {
            let awaited = Some(RankId(3));
            let limit = Duration::from_secs(60);
            let waits = threads.spawn(move || wakeup.wait(ready, awaited, false, limit));
            while !wakeup.asleep.load(Ordering::Relaxed) {
                thread::yield_now();
            }
            // The thread has looked for the last time when it releases the mutex.
            drop(lock(&wakeup.mutex));
            let before = looks.load(Ordering::Relaxed);
            for rank in others {
                wakeup.called(rank);
            }
            thread::sleep(Duration::from_millis(50));
            assert_eq!(looks.load(Ordering::Relaxed), before);
            come.store(true, Ordering::Relaxed);
            fence(Ordering::SeqCst);
            wakeup.called(RankId(3));
            assert!(waits.join().expect("the thread does not panic"));
        });
        // A wait within a call, and a wait for the call.
        for (awaited, wakes) in [(None, false), (Some(RankId(0)), true)] {
            come.store(false, Ordering::Relaxed);
            thread::scope(|threads| {
                let (limit, since) = (Duration::from_secs(60), Instant::now());
                let waits = threads.spawn(move || wakeup.wait(ready, awaited, false, limit));
                while !wakeup.asleep.load(Ordering::Relaxed) {
                    thread::yield_now();
                }
                drop(lock(&wakeup.mutex));
                come.store(true, Ordering::Relaxed);
                fence(Ordering::SeqCst);
                wakeup.called(RankId(0));
                if !wakes {
                    thread::sleep(Duration::from_millis(50));
                    assert!(!waits.is_finished(), "{awaited:?}");
                    wakeup.wake();
                }
                assert!(waits.join().expect("the thread does not panic"));
                assert!(since.elapsed() < limit, "{awaited:?}");
            });
        }
    }
}
