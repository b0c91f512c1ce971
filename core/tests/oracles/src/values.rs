//! Multisets of contributions, numbered.

use std::collections::{BTreeMap, HashMap};

/// A value that no process may rely on.
pub(super) const GARBAGE: u32 = 0;
/// Computed from garbage, which was reported where it was read.
pub(super) const REPORTED: u32 = u32::MAX;

type Multiset = BTreeMap<u32, u32>;

/// Each distinct multiset once; its number is one more than its place.
#[derive(Default)]
pub(super) struct Values {
    all: Vec<Multiset>,
    ids: HashMap<Multiset, u32>,
    sums: HashMap<(u32, u32), u32>,
}

impl Values {
    pub(super) fn id(&mut self, value: Multiset) -> u32 {
        let next = self.all.len() as u32 + 1;
        *self.ids.entry(value).or_insert_with_key(|value| {
            self.all.push(value.clone());
            next
        })
    }

    pub(super) fn sum(&mut self, a: u32, b: u32) -> u32 {
        if a == REPORTED || b == REPORTED {
            return REPORTED;
        }
        if let Some(known) = self.sums.get(&(a, b)) {
            return *known;
        }
        let mut sum = self.all[a as usize - 1].clone();
        for (leaf, times) in &self.all[b as usize - 1] {
            *sum.entry(*leaf).or_insert(0) += times;
        }
        let id = self.id(sum);
        self.sums.insert((a, b), id);
        id
    }
}
