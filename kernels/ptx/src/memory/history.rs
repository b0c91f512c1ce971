//! The strong stores to a location, in coherence order.

use std::rc::Rc;

use super::clock::{Clocks, Home, LANES, NOBODY, Release, Stamp, Thread};
use super::reads::Reads;
use crate::choices::{Choice, Choices};
use crate::program::Scope;

/// Stores of a location that a load may still read.
const KEPT: usize = 6;
/// The same where loads wait.
const KEPT_FOR_WAITS: usize = 64;

/// A store.
#[derive(Clone, Debug)]
struct StrongStore {
    stamp: Stamp,
    /// The scope of a strong store; none of a plain one, which is the first of its history.
    scope: Option<Scope>,
    value: u64,
    /// Whether it is an atomic reduction of the store before it.
    is_reduction: bool,
    /// Releases that a load of this store may acquire.
    releases: Rc<[Release]>,
    /// The loads that a load of this store knows of, where stores tell of loads alone.
    loads: Option<Release>,
    /// The number of the vector store of which it is a part that is performed as one; 0 for another store.
    whole: u64,
    /// The first strong loads of this store.
    readers: Reads,
}

/// The strong accesses to a location.
#[derive(Clone, Debug)]
pub(crate) struct History {
    messages: Vec<StrongStore>,
    /// Strong stores that no load reads any more, the last one of each thread.
    older: Vec<(Stamp, Scope)>,
    /// The last strong loads.
    loads: Reads,
    /// Where loads wait: for each warp the last store that it has read, as a number from the first one on, and the number
    /// of the load.
    seen: Vec<(u32, usize, u64)>,
    /// Stores that are not kept any more.
    forgotten: usize,
    /// Whether there was a strong access.
    has_strong: bool,
    /// The narrowest scope of the strong accesses.
    narrowest: Scope,
    /// The block and the device of all strong accesses, as long as there is one.
    block: Option<u32>,
    device: Option<u32>,
}

/// A strong access.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Strong {
    /// The thread, its epoch and its instruction.
    pub(crate) stamp: Stamp,
    /// The scope.
    pub(crate) scope: Scope,
    /// Whether its load acquires.
    pub(crate) acquires: bool,
    /// Whether its load acquires if it reads an atomic operation.
    pub(crate) acquires_counts: bool,
    /// Whether its store releases.
    pub(crate) releases: bool,
    /// The number of the vector store of which it is a part that is performed as one; 0 for another access.
    pub(crate) whole: u64,
}

impl History {
    /// A history that starts with a plain store.
    pub(crate) fn new(store: Stamp, value: u64) -> Self {
        let first = StrongStore {
            stamp: store,
            scope: None,
            value,
            is_reduction: false,
            releases: Rc::new([]),
            loads: None,
            whole: 0,
            readers: Reads::None,
        };
        Self {
            messages: vec![first],
            older: Vec::new(),
            loads: Reads::None,
            seen: Vec::new(),
            forgotten: 0,
            has_strong: false,
            narrowest: Scope::Sys,
            block: None,
            device: None,
        }
    }

    /// The last store.
    pub(crate) fn last(&self) -> Stamp {
        self.messages[self.messages.len() - 1].stamp
    }

    /// The strong loads.
    pub(crate) fn loads(&self) -> &Reads {
        &self.loads
    }

    /// Returns a store that is not ordered before the next access of `me`. A load through a chain of reductions observes
    /// all their stores.
    pub(crate) fn unknown_store(&self, clocks: &Clocks, me: Thread) -> Option<Stamp> {
        let mut observed = false;
        let mut any_known = false;
        let mut unknown = None;
        for (at, message) in self.messages.iter().enumerate().rev() {
            let chained = self.messages.get(at + 1).is_some_and(|next| next.is_reduction);
            observed = observed && chained || message.readers.is_any_known(clocks, me);
            if observed || clocks.knows(me, message.stamp.thread, message.stamp.epoch) {
                any_known = true;
            } else {
                unknown = Some(message.stamp);
            }
        }
        // A store that no load reads any more counts as observed where a later one is.
        let older = self.older.iter().map(|(stamp, _)| *stamp);
        let mut older = older.filter(|stamp| !clocks.knows(me, stamp.thread, stamp.epoch));
        unknown.or_else(|| if any_known { None } else { older.next() })
    }

    /// Returns a strong access that neither is ordered before this one nor reaches it and is reached by it, and
    /// whether it stores. A store conflicts with loads too.
    pub(crate) fn unreached(
        &self,
        clocks: &Clocks,
        access: &Strong,
        stores: bool,
    ) -> Option<(Stamp, bool)> {
        let me = access.stamp.thread;
        let Home { block, device, .. } = clocks.home(me);
        let narrowest = self.narrowest.min(access.scope);
        let reaches = match narrowest {
            Scope::Sys => true,
            Scope::Gpu => self.device == Some(device),
            Scope::Cta | Scope::Cluster => self.block == Some(block),
        };
        if reaches {
            return None;
        }
        let misses = |other: Stamp, scope: Scope| {
            other.thread != NOBODY
                && !(clocks.reaches(scope, other.thread, me)
                    && clocks.reaches(access.scope, me, other.thread))
        };
        let message = self.messages.iter().find(|message| {
            message.scope.is_some_and(|scope| misses(message.stamp, scope))
                && !message.is_known(clocks, me)
        });
        let any_known = self.messages.iter().any(|message| message.is_known(clocks, me));
        let older = self.older.iter().find(|(stamp, scope)| {
            !any_known && misses(*stamp, *scope) && !clocks.knows(me, stamp.thread, stamp.epoch)
        });
        let load = || {
            self.loads.iter().find(|load| {
                misses(*load, self.narrowest) && !clocks.knows_load(me, load.thread, load.epoch)
            })
        };
        let store = message.map(|message| message.stamp).or(older.map(|(stamp, _)| *stamp));
        match store {
            Some(store) => Some((store, true)),
            None if stores => load().map(|load| (load, false)),
            None => None,
        }
    }

    /// A strong load: returns the value of the store that it reads.
    pub(crate) fn load(
        &mut self,
        clocks: &mut Clocks,
        choices: &mut Choices,
        access: &Strong,
    ) -> u64 {
        let me = access.stamp.thread;
        let last = self.messages.len() - 1;
        let message = match choices.waiting_load() {
            Some(load) => {
                let next = self.next(clocks, me, load).min(last);
                let (warp, number) = (me / LANES, self.forgotten + next);
                self.seen.retain(|(other, ..)| *other != warp);
                self.seen.push((warp, number, load));
                next
            }
            None => last - choices.choose(Choice::Store, || last + 1 - self.floor(clocks, me)),
        };
        self.load_at(clocks, access, message)
    }

    /// A strong load of the store at an index.
    pub(crate) fn load_at(&mut self, clocks: &mut Clocks, access: &Strong, message: usize) -> u64 {
        self.has_read(clocks, access, message);
        self.learn(clocks, access, message);
        self.messages[message].value
    }

    /// Gives the thread of a load what the store that it reads tells.
    fn learn(&self, clocks: &mut Clocks, access: &Strong, message: usize) {
        let me = access.stamp.thread;
        let read = &self.messages[message];
        if access.acquires || access.acquires_counts && read.is_reduction {
            for (at, other) in self.messages[..=message].iter().enumerate() {
                let is_read = at == message || other.readers.has(clocks, me);
                if !other.releases.is_empty() && is_read {
                    clocks.acquire(me, access.scope, &other.releases);
                }
            }
        }
        clocks.read(me, &read.releases);
        if let Some(loads) = &read.loads {
            clocks.learn_loads(me, access.scope, loads);
        }
    }

    /// Chooses the store that a load reads which is performed as one with loads of other locations.
    pub(crate) fn choose(&self, clocks: &Clocks, choices: &mut Choices, me: Thread) -> usize {
        let last = self.messages.len() - 1;
        last - choices.choose(Choice::Store, || last + 1 - self.floor(clocks, me))
    }

    /// The vector stores from an index on.
    pub(crate) fn wholes(&self, from: usize) -> impl Iterator<Item = u64> {
        self.messages[from..].iter().map(|message| message.whole).filter(|&whole| whole != 0)
    }

    /// The index of the newest store before any of these vector stores, if `me` may read it.
    pub(crate) fn newest_before(
        &self,
        clocks: &Clocks,
        me: Thread,
        wholes: &[u64],
    ) -> Option<usize> {
        let newest = self.end_before(wholes).checked_sub(1)?;
        (newest >= self.floor(clocks, me)).then_some(newest)
    }

    /// The index of the newest store.
    pub(crate) fn newest(&self) -> usize {
        self.messages.len() - 1
    }

    /// The index at which a store of `me` is before these vector stores, if it may be there.
    pub(crate) fn place_before(
        &self,
        clocks: &Clocks,
        me: Thread,
        wholes: &[u64],
    ) -> Option<usize> {
        let place = self.end_before(wholes);
        let splits = self.messages.get(place).is_some_and(|next| next.is_reduction);
        (place > self.floor(clocks, me) && !splits).then_some(place)
    }

    fn end_before(&self, wholes: &[u64]) -> usize {
        let is_one = |message: &StrongStore| wholes.contains(&message.whole);
        self.messages.iter().position(is_one).unwrap_or(self.messages.len())
    }

    /// A strong store. Returns whether it is the last one in coherence order.
    pub(crate) fn store(
        &mut self,
        clocks: &mut Clocks,
        choices: &mut Choices,
        access: &Strong,
        value: u64,
    ) -> bool {
        let place = self.place(clocks, choices, access.stamp.thread);
        let is_last = self.store_at(clocks, access, place, value);
        self.forget(choices);
        is_last
    }

    /// A strong store at an index of coherence order. Returns whether it is the last one.
    pub(crate) fn store_at(
        &mut self,
        clocks: &mut Clocks,
        access: &Strong,
        place: usize,
        value: u64,
    ) -> bool {
        let me = access.stamp.thread;
        let mut releases = Vec::new();
        let is_own = |m: &&StrongStore| clocks.is_own(me, m.stamp.thread, m.stamp.epoch);
        if let Some(own) = self.messages[..place].iter().rev().find(is_own) {
            for release in own.releases.iter().filter(|release| release.is_own(clocks, me)) {
                clocks.add_release(&mut releases, release);
            }
        }
        self.insert(clocks, access, place, value, false, releases)
    }

    /// An atomic operation on a store, as a function of its value; none is stored where the function has none. Returns the
    /// value before. The thread learns what the store tells only where it gets the value: the load of a reduction without
    /// a result is not part of an acquire pattern.
    pub(crate) fn reduce(
        &mut self,
        clocks: &mut Clocks,
        choices: &mut Choices,
        access: &Strong,
        returns: bool,
        reduction: impl FnOnce(u64) -> Option<u64>,
    ) -> u64 {
        let me = access.stamp.thread;
        let place = self.place(clocks, choices, me);
        self.has_read(clocks, access, place - 1);
        if returns {
            self.learn(clocks, access, place - 1);
        }
        let before = self.messages[place - 1].value;
        if let Some(value) = reduction(before) {
            let releases = self.messages[place - 1].releases.to_vec();
            self.insert(clocks, access, place, value, true, releases);
            self.forget(choices);
        }
        before
    }

    /// Returns the value of the last store in coherence order.
    pub(crate) fn value(&self) -> u64 {
        self.messages[self.messages.len() - 1].value
    }

    /// Whether the store has come that a waiting load of that number reads.
    pub(crate) fn has_come(&self, clocks: &Clocks, me: Thread, load: u64) -> bool {
        self.next(clocks, me, load) < self.messages.len()
    }

    /// The store that a waiting load reads: the first one that neither the thread knows nor its warp has read, or else one
    /// that another thread has told of. Lanes of one load read one store.
    fn next(&self, clocks: &Clocks, me: Thread, load: u64) -> usize {
        let floor = self.floor(clocks, me);
        let seen = self.seen.iter().find(|(warp, ..)| *warp == me / LANES);
        match seen.map(|(_, number, at)| (number.saturating_sub(self.forgotten), *at == load)) {
            Some((seen, true)) => seen.max(floor),
            Some((seen, false)) if seen >= floor => seen + 1,
            _ => floor + usize::from(self.messages[floor].scope.is_none()),
        }
    }

    /// The first store that `me` may still read.
    fn floor(&self, clocks: &Clocks, me: Thread) -> usize {
        self.messages.iter().rposition(|message| message.is_known(clocks, me)).unwrap_or(0)
    }

    /// Chooses the place of a store of `me`: behind all that it may not precede, and not between a reduction and the store
    /// that it reads.
    pub(crate) fn place(&self, clocks: &Clocks, choices: &mut Choices, me: Thread) -> usize {
        let end = self.messages.len();
        let places = || {
            let first = self.floor(clocks, me) + 1;
            (first..=end).rev().filter(|&at| at == end || !self.messages[at].is_reduction)
        };
        match choices.choose(Choice::Place, || places().count()) {
            0 => end,
            chosen => places().nth(chosen).unwrap_or(end),
        }
    }

    fn has_read(&mut self, clocks: &Clocks, access: &Strong, message: usize) {
        self.widen(clocks, access);
        self.loads.add_last(clocks, access.stamp);
        self.messages[message].readers.add_first(clocks, access.stamp);
    }

    /// Takes a strong access into the summary of all of them.
    fn widen(&mut self, clocks: &Clocks, access: &Strong) {
        let home = clocks.home(access.stamp.thread);
        if !std::mem::replace(&mut self.has_strong, true) {
            (self.block, self.device) = (Some(home.block), Some(home.device));
        }
        self.block = self.block.filter(|&block| block == home.block);
        self.device = self.device.filter(|&device| device == home.device);
        self.narrowest = self.narrowest.min(access.scope);
    }

    fn insert(
        &mut self,
        clocks: &mut Clocks,
        access: &Strong,
        place: usize,
        value: u64,
        is_reduction: bool,
        mut releases: Vec<Release>,
    ) -> bool {
        self.widen(clocks, access);
        let me = access.stamp.thread;
        for release in clocks.fences(me) {
            clocks.add_release(&mut releases, release);
        }
        if access.releases {
            let release = clocks.release(me, access.scope);
            clocks.add_release(&mut releases, &release);
        }
        let loads = clocks.release_loads(me, access.scope);
        let message = StrongStore {
            stamp: access.stamp,
            scope: Some(access.scope),
            value,
            is_reduction,
            releases: releases.into(),
            loads,
            whole: access.whole,
            readers: Reads::None,
        };
        let is_last = place == self.messages.len();
        self.messages.insert(place, message);
        is_last
    }

    /// Forgets the oldest store if there are too many.
    pub(crate) fn forget(&mut self, choices: &Choices) {
        let kept = if choices.waiting_load().is_some() { KEPT_FOR_WAITS } else { KEPT };
        if self.messages.len() > kept {
            self.forgotten += 1;
            let StrongStore { stamp, scope, .. } = self.messages.remove(0);
            if let Some(scope) = scope {
                self.older.retain(|(older, _)| older.thread != stamp.thread);
                self.older.push((stamp, scope));
            }
        }
    }
}

impl StrongStore {
    /// Whether the store, or a load of it, happened before the next access of `me`.
    fn is_known(&self, clocks: &Clocks, me: Thread) -> bool {
        clocks.knows(me, self.stamp.thread, self.stamp.epoch)
            || self.readers.is_any_known(clocks, me)
    }
}
