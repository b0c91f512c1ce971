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
