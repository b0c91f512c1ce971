//! The sets of statements that the ops of a fused schedule come from, each distinct set once.

use rustc_hash::FxHashMap;

use crate::ids::SpanId;
use crate::schedule::interner::Interner;

/// Sets of statements.
pub(super) struct StatementSets {
    all: Interner<Box<[SpanId]>>,
    unions: FxHashMap<(StatementSet, StatementSet), StatementSet>,
    /// The last union: neighbors often ask for the same one.
    last: ((StatementSet, StatementSet), StatementSet),
}

/// A set of statements, by its number in [`StatementSets`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct StatementSet(u32);

impl StatementSet {
    pub(super) const EMPTY: Self = Self(0);
}

impl Default for StatementSets {
    fn default() -> Self {
        let mut all = Interner::default();
        all.intern(Box::default());
        let none = (StatementSet::EMPTY, StatementSet::EMPTY);
        Self { all, unions: FxHashMap::default(), last: (none, StatementSet::EMPTY) }
    }
}

impl StatementSets {
    pub(super) fn get(&self, set: StatementSet) -> &[SpanId] {
        &self.all.items[set.0 as usize]
    }

    /// Returns the set of `statements`.
    pub(super) fn of(&mut self, statements: &[SpanId]) -> StatementSet {
        let mut statements = statements.to_vec();
        statements.sort_unstable();
        statements.dedup();
        StatementSet(self.all.intern(statements.into()))
    }

    pub(super) fn union(&mut self, a: StatementSet, b: StatementSet) -> StatementSet {
        if a == b || b == StatementSet::EMPTY {
            return a;
        }
        if a == StatementSet::EMPTY {
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
    use super::{StatementSet, StatementSets};
    use crate::ids::SpanId;

    #[test]
    fn equal_sets_are_one() {
        let mut sets = StatementSets::default();
        let [zero, one, two] = [0, 1, 2].map(|at| sets.of(&[SpanId(at)]));
        let both = sets.union(two, zero);
        assert_eq!(sets.get(both), [SpanId(0), SpanId(2)]);
        assert_eq!((sets.union(zero, two), sets.union(both, two)), (both, both));
        assert_eq!(sets.union(StatementSet::EMPTY, one), one);
        let all = sets.union(both, one);
        assert_eq!(sets.get(all), [0, 1, 2].map(SpanId));
        assert_eq!(sets.of(&[2, 1, 0, 1].map(SpanId)), all);
    }
}
