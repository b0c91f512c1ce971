//! The lent and the free parts of a rank's heap in the arena.

use std::collections::BTreeMap;

/// The free parts of a rank's heap, by their begin.
pub(crate) struct Heap {
    free: BTreeMap<usize, usize>,
}

impl Heap {
    pub(crate) fn new(bytes: usize) -> Self {
        Self { free: BTreeMap::from([(0, bytes)]) }
    }

    /// Takes `bytes` bytes from the first part that is large enough, and returns their begin.
    pub(crate) fn take(&mut self, bytes: usize) -> Option<usize> {
        let (&at, &len) = self.free.iter().find(|(_, len)| **len >= bytes)?;
        self.free.remove(&at);
        if len > bytes {
            self.free.insert(at + bytes, len - bytes);
        }
        Some(at)
    }

    /// Takes a part back, and joins it with its free neighbors.
    pub(crate) fn give(&mut self, mut at: usize, mut bytes: usize) {
        if let Some(len) = self.free.remove(&(at + bytes)) {
            bytes += len;
        }
        if let Some((&before, &len)) = self.free.range(..at).next_back()
            && before + len == at
        {
            self.free.remove(&before);
            (at, bytes) = (before, bytes + len);
        }
        self.free.insert(at, bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::Heap;

    #[test]
    fn what_is_given_back_is_whole_again() {
        let mut heap = Heap::new(1000);
        let parts: Vec<usize> = (0..10).map(|_| heap.take(100).expect("room")).collect();
        assert_eq!(heap.take(1), None);
        for at in [3, 5, 4, 0, 9, 1, 2, 8, 6, 7] {
            heap.give(parts[at], 100);
        }
        assert_eq!(heap.take(1000), Some(0));
    }
}
