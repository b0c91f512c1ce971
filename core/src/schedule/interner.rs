//! Tables that hold every value once: ids for values, and ids in the order of their first use.

use std::hash::Hash;

use rustc_hash::FxHashMap;

/// A table that gives equal values equal ids, in order of first use.
pub struct Interner<T> {
    /// The values, each at the place of its id.
    pub items: Vec<T>,
    ids: FxHashMap<T, u32>,
    /// The id that was requested last: the operands of one op have much in common.
    last: u32,
}

impl<T> Default for Interner<T> {
    fn default() -> Self {
        Self { items: Vec::new(), ids: FxHashMap::default(), last: 0 }
    }
}

impl<T: Clone + Eq + Hash> Interner<T> {
    /// Returns the id of `item`, a new one where no equal value has an id.
    pub fn intern(&mut self, item: T) -> u32 {
        if self.items.get(self.last as usize) == Some(&item) {
            return self.last;
        }
        self.last = match self.ids.get(&item) {
            Some(&id) => id,
            None => {
                let id = self.items.len() as u32;
                self.items.push(item.clone());
                self.ids.insert(item, id);
                id
            }
        };
        self.last
    }
}

/// A table in the order of first use.
#[derive(Default)]
pub struct Renumber {
    ids: Vec<u32>,
    used: Vec<u32>,
}

impl Renumber {
    /// Returns the new id of the value with id `old`.
    pub fn id(&mut self, old: u32) -> u32 {
        let at = old as usize;
        if at >= self.ids.len() {
            self.ids.resize(at + 1, u32::MAX);
        }
        if self.ids[at] == u32::MAX {
            self.ids[at] = self.used.len() as u32;
            self.used.push(old);
        }
        self.ids[at]
    }

    /// Returns the used values, in the order of their new ids.
    pub fn pick<T: Clone>(&self, items: &[T]) -> Vec<T> {
        self.used.iter().map(|old| items[*old as usize].clone()).collect()
    }
}
