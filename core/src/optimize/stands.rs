//! Which statements the ops of a fused schedule stand for: sets of statements, each distinct one once.

use rustc_hash::FxHashMap;

use crate::ids::SpanId;
use crate::schedule::interner::Interner;

/// Sets of statements.
pub(super) struct Sets {
    all: Interner<Box<[SpanId]>>,
    unions: FxHashMap<(Set, Set), Set>,
    /// Asked for last: neighbors have much in common.
    last: ((Set, Set), Set),
}

/// A set of statements, by its place among [`Sets`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Set(u32);

impl Set {
    pub(super) const EMPTY: Self = Self(0);
}

impl Default for Sets {
    fn default() -> Self {
        let mut all = Interner::default();
        all.intern(Box::default());
        let none = (Set::EMPTY, Set::EMPTY);
        Self { all, unions: FxHashMap::default(), last: (none, Set::EMPTY) }
    }
}

impl Sets {
    pub(super) fn get(&self, set: Set) -> &[SpanId] {
        &self.all.items[set.0 as usize]
    }

    /// The set of these statements.
    pub(super) fn of(&mut self, statements: &[SpanId]) -> Set {
        let mut statements = statements.to_vec();
        statements.sort_unstable();
        statements.dedup();
        Set(self.all.intern(statements.into()))
    }

    pub(super) fn union(&mut self, a: Set, b: Set) -> Set {
        if a == b || b == Set::EMPTY {
            return a;
        }
        if a == Set::EMPTY {
            return b;
        }
        if self.last.0 == (a, b) {
            return self.last.1;
        }
        let known = self.unions.get(&(a, b)).copied();
        let union = known.unwrap_or_else(|| {
            let both = [self.get(a), self.get(b)].concat();
            let union = self.of(&both);
            self.unions.insert((a, b), union);
            union
        });
        self.last = ((a, b), union);
        union
    }
}

#[cfg(test)]
mod tests {
    use super::{Set, Sets};
    use crate::ids::SpanId;

    #[test]
    fn equal_sets_are_one() {
        let mut sets = Sets::default();
        let [zero, one, two] = [0, 1, 2].map(|at| sets.of(&[SpanId(at)]));
        let both = sets.union(two, zero);
        assert_eq!(sets.get(both), [SpanId(0), SpanId(2)]);
        assert_eq!((sets.union(zero, two), sets.union(both, two)), (both, both));
        assert_eq!(sets.union(Set::EMPTY, one), one);
        let all = sets.union(both, one);
        assert_eq!(sets.get(all), [0, 1, 2].map(SpanId));
        assert_eq!(sets.of(&[2, 1, 0, 1].map(SpanId)), all);
    }
}
