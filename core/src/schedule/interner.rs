//! Tables in which every value stands once: ids for values, and ids in the order of their first use.

use std::hash::Hash;

use rustc_hash::FxHashMap;

/// Equal values get equal ids, in order of first use.
pub(crate) struct Interner<T> {
    pub(crate) items: Vec<T>,
    ids: FxHashMap<T, u32>,
    /// Asked for last: the operands of one op have much in common.
    last: u32,
}

impl<T> Default for Interner<T> {
    fn default() -> Self {
        Self { items: Vec::new(), ids: FxHashMap::default(), last: 0 }
    }
}

impl<T: Clone + Eq + Hash> Interner<T> {
    pub(crate) fn intern(&mut self, item: T) -> u32 {
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
pub(crate) struct Renumber {
    ids: Vec<u32>,
    used: Vec<u32>,
}

impl Renumber {
    pub(crate) fn id(&mut self, old: u32) -> u32 {
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

    pub(crate) fn pick<T: Clone>(&self, items: &[T]) -> Vec<T> {
        self.used.iter().map(|old| items[*old as usize].clone()).collect()
    }
}
