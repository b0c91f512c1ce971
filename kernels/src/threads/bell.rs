//! A thread that waits for others: it spins for a while where it has a core for itself, then lets others have their turns,
//! then sleeps until one of them rings.

use std::time::{Duration, Instant};

use roundelay_core::ids::RankId;

use crate::sync::{AtomicBool, AtomicU32, Condvar, Mutex, Ordering, fence, lock, spin, take_turns};

/// The ranks whose calls a thread waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Awaited {
    /// Whoever calls.
    Any,
    /// This one.
    One(RankId),
    /// Nobody: it is in a call.
    Nobody,
}

impl Awaited {
    const fn word(self) -> u32 {
        match self {
            Self::Any => u32::MAX,
            Self::Nobody => u32::MAX - 1,
            Self::One(RankId(rank)) => rank,
        }
    }
}

/// The bell of one waiting thread.
pub(super) struct Bell {
    asleep: AtomicBool,
    /// Whose calls it waits for, as a word. It is written before the thread falls asleep.
    awaited: AtomicU32,
    door: Mutex<()>,
    rung: Condvar,
}

impl Bell {
    pub(super) fn new() -> Self {
        let awaited = AtomicU32::new(Awaited::Any.word());
        Self { asleep: AtomicBool::new(false), awaited, door: Mutex::new(()), rung: Condvar::new() }
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

    /// Wakes the thread if it sleeps and waits for calls of this rank: the others would find nothing new, and of many
    /// ranks each would wake all. What was changed is as for [`Self::wake`].
    pub(super) fn called(&self, by: RankId) {
        // Whoever is seen asleep wrote before whom it waits for. If it has gone on to another since, it has seen the call.
        let awaited = self.awaited.load(Ordering::Relaxed);
        if [Awaited::Any.word(), Awaited::One(by).word()].contains(&awaited) {
            self.wake();
        }
    }

    /// Returns when `ready()`, which the calls of those who are `awaited` bring about, or else a [`Self::wake`], or after
    /// `limit`; whether it is. Spins before it sleeps where that is `worth` it.
    pub(super) fn wait(
        &self,
        ready: impl Fn() -> bool,
        awaited: Awaited,
        worth: bool,
        limit: Duration,
    ) -> bool {
        if worth && spin(&ready) || take_turns(&ready) {
            return true;
        }
        let since = Instant::now();
        let mut door = lock(&self.door);
        self.awaited.store(awaited.word(), Ordering::Relaxed);
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

#[cfg(all(test, not(loom)))]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn only_the_call_that_is_awaited_wakes() {
        let (bell, looks, come) = (&Bell::new(), AtomicU32::new(0), AtomicBool::new(false));
        let ready = &|| {
            looks.fetch_add(1, Ordering::Relaxed);
            come.load(Ordering::Relaxed)
        };
        let others = [0, 2, 4].map(RankId);
        thread::scope(|threads| {
            let awaited = Awaited::One(RankId(3));
            let limit = Duration::from_secs(60);
            let waits = threads.spawn(move || bell.wait(ready, awaited, false, limit));
            while !bell.asleep.load(Ordering::Relaxed) {
                thread::yield_now();
            }
            // It has looked for the last time when it leaves the door.
            drop(lock(&bell.door));
            let before = looks.load(Ordering::Relaxed);
            for rank in others {
                bell.called(rank);
            }
            thread::sleep(Duration::from_millis(50));
            assert_eq!(looks.load(Ordering::Relaxed), before);
            come.store(true, Ordering::Relaxed);
            fence(Ordering::SeqCst);
            bell.called(RankId(3));
            assert!(waits.join().expect("it does not panic"));
        });
        // In a call, and where anybody counts.
        for (awaited, wakes) in [(Awaited::Nobody, false), (Awaited::Any, true)] {
            come.store(false, Ordering::Relaxed);
            thread::scope(|threads| {
                let (limit, since) = (Duration::from_secs(60), Instant::now());
                let waits = threads.spawn(move || bell.wait(ready, awaited, false, limit));
                while !bell.asleep.load(Ordering::Relaxed) {
                    thread::yield_now();
                }
                drop(lock(&bell.door));
                come.store(true, Ordering::Relaxed);
                fence(Ordering::SeqCst);
                bell.called(RankId(0));
                if !wakes {
                    thread::sleep(Duration::from_millis(50));
                    assert!(!waits.is_finished(), "{awaited:?}");
                    bell.wake();
                }
                assert!(waits.join().expect("it does not panic"));
                assert!(since.elapsed() < limit, "{awaited:?}");
            });
        }
    }
}
