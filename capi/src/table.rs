//! Values behind handles.

use std::collections::HashMap;
use std::sync::{LazyLock, PoisonError, RwLock};

use crate::status::{Outcome, bad};

/// Values by their handles. A handle is not used again, so a stale one finds no value.
pub(crate) struct HandleTable<T> {
    what: &'static str,
    held: LazyLock<RwLock<Held<T>>>,
}

struct Held<T> {
    last: u64,
    things: HashMap<u64, T>,
}

impl<T> HandleTable<T> {
    pub(crate) const fn new(what: &'static str) -> Self {
        let none = || RwLock::new(Held { last: 0, things: HashMap::new() });
        Self { what, held: LazyLock::new(none) }
    }

    /// Inserts a thing and returns its handle.
    pub(crate) fn insert(&self, thing: T) -> u64 {
        let mut held = self.held.write().unwrap_or_else(PoisonError::into_inner);
        held.last += 1;
        let handle = held.last;
        held.things.insert(handle, thing);
        handle
    }

    /// Returns the result of `then` on a value, while the table is locked.
    pub(crate) fn look<R>(&self, handle: u64, then: impl FnOnce(&T) -> R) -> Outcome<R> {
        let held = self.held.read().unwrap_or_else(PoisonError::into_inner);
        held.things.get(&handle).map(then).ok_or_else(|| self.none(handle))
    }

    /// Takes a thing out.
    pub(crate) fn take(&self, handle: u64) -> Outcome<T> {
        let mut held = self.held.write().unwrap_or_else(PoisonError::into_inner);
        held.things.remove(&handle).ok_or_else(|| self.none(handle))
    }

    /// Takes out all things that `goes` says.
    pub(crate) fn take_all(&self, goes: impl Fn(&T) -> bool) -> Vec<T> {
        let mut held = self.held.write().unwrap_or_else(PoisonError::into_inner);
        held.things.extract_if(|_, thing| goes(thing)).map(|(_, thing)| thing).collect()
    }

    fn none(&self, handle: u64) -> crate::status::CallError {
        let what = self.what;
        let fix = "give one that was returned, and that was not given back since";
        bad(format!("there is no {what} with the handle {handle}"), fix)
    }
}
