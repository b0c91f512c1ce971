//! The plans that a communicator keeps, by the shape of the call, up to a bound: beyond it, the plan whose last use is
//! the oldest goes.

use std::collections::HashMap;
use std::hash::Hash;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// Plans by shape: a call, or a call and the counts of its blocks.
#[derive(Debug)]
pub(crate) struct Kept<K, T> {
    most: NonZeroUsize,
    all: HashMap<K, Entry<T>>,
    /// The number of lookups so far, which serves as a clock.
    now: AtomicU64,
}

#[derive(Debug)]
struct Entry<T> {
    plan: T,
    /// The time of the last lookup of this entry, in the counts of `now`.
    asked: AtomicU64,
}

impl<K: Clone + Eq + Hash, T> Kept<K, T> {
    pub(crate) fn new(most: NonZeroUsize) -> Self {
        Self { most, all: HashMap::new(), now: AtomicU64::new(0) }
    }

    /// Makes a store that several values of a rank use.
    pub(crate) fn in_common(most: NonZeroUsize) -> Arc<Mutex<Self>> {
        Arc::new(Mutex::new(Self::new(most)))
    }

    /// Returns the number of entries that are kept at most.
    pub(crate) fn most(&self) -> NonZeroUsize {
        self.most
    }

    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    /// Returns all plans.
    #[cfg(all(feature = "cuda", target_os = "linux"))]
    pub(crate) fn plans(&self) -> impl Iterator<Item = &T> {
        self.all.values().map(|entry| &entry.plan)
    }

    /// Returns the plan of that shape, and records the lookup.
    pub(crate) fn get(&self, call: &K) -> Option<&T> {
        let entry = self.all.get(call)?;
        entry.asked.store(self.tick(), Ordering::Relaxed);
        Some(&entry.plan)
    }

    /// Drops the entries whose last lookup is the oldest, until there is room for one more, or `may_go` allows no
    /// further one to go.
    pub(crate) fn make_room(&mut self, mut may_go: impl FnMut(&mut T) -> bool) {
        if self.all.len() < self.most.get() {
            return;
        }
        let age =
            |(call, entry): (&K, &Entry<T>)| (entry.asked.load(Ordering::Relaxed), call.clone());
        let mut oldest: Vec<(u64, K)> = self.all.iter().map(age).collect();
        oldest.sort_unstable_by_key(|(asked, _)| *asked);
        for (_, call) in oldest {
            if self.all.len() < self.most.get() {
                return;
            }
            if self.all.get_mut(&call).is_some_and(|entry| may_go(&mut entry.plan)) {
                self.all.remove(&call);
            }
        }
    }

    pub(crate) fn insert(&mut self, call: K, plan: T) {
        let asked = AtomicU64::new(self.tick());
        self.all.insert(call, Entry { plan, asked });
    }

    fn tick(&self) -> u64 {
        self.now.fetch_add(1, Ordering::Relaxed)
    }
}
