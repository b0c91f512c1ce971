//! Tables in which every value stands once: ids for values, and ids in the order of their first use.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hash, Hasher};

/// Equal values get equal ids, in order of first use.
pub(crate) struct Interner<T> {
    pub(crate) items: Vec<T>,
    ids: HashMap<T, u32, BuildHasherDefault<Mix>>,
    /// Asked for last: the operands of one op have much in common.
    last: u32,
}

impl<T> Default for Interner<T> {
    fn default() -> Self {
        Self { items: Vec::new(), ids: HashMap::default(), last: 0 }
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

/// Multiply-and-rotate hashing: keys are small integers of our own making, so flooding is no concern.
#[derive(Default)]
pub(crate) struct Mix(u64);

impl Hasher for Mix {
    fn finish(&self) -> u64 {
        self.0 ^ (self.0 >> 32)
    }

    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    fn write_u64(&mut self, value: u64) {
        self.0 = (self.0.rotate_left(23) ^ value).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }

    fn write_u32(&mut self, value: u32) {
        self.write_u64(u64::from(value));
    }

    fn write_u8(&mut self, value: u8) {
        self.write_u64(u64::from(value));
    }

    fn write_usize(&mut self, value: usize) {
        self.write_u64(value as u64);
    }

    fn write_i64(&mut self, value: i64) {
        self.write_u64(value as u64);
    }

    fn write_isize(&mut self, value: isize) {
        self.write_u64(value as u64);
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
