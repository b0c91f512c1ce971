//! The statement sets of ops that stand for several statements: passes make one op of several that an author wrote.

use super::interner::Interner;
use super::{Op, Schedule};
use crate::ids::SpanId;

/// The sets of statements that a pass gives its ops.
pub(crate) struct Origins {
    /// The lowest id of a set: ids below it stand for one statement each.
    locations: u32,
    all: Interner<Box<[SpanId]>>,
}

impl Origins {
    /// Starts with the sets of the schedule that the pass reads.
    pub(crate) fn of(schedule: &Schedule) -> Self {
        let mut all = Interner::default();
        for set in &schedule.origins {
            all.intern(set.clone());
        }
        Self { locations: schedule.locations.len() as u32, all }
    }

    /// Returns the id of a set of statements: `first`, the statement to name where there is room for one, and others.
    pub(crate) fn id(&mut self, first: SpanId, others: impl IntoIterator<Item = SpanId>) -> SpanId {
        let mut others: Vec<SpanId> = others.into_iter().filter(|other| *other != first).collect();
        others.sort_unstable();
        others.dedup();
        if others.is_empty() {
            return first;
        }
        let set: Box<[SpanId]> = [first].into_iter().chain(others).collect();
        SpanId(self.locations + self.all.intern(set))
    }

    /// Returns the id of the set of the statements of all these ops.
    pub(crate) fn joined<'o>(
        &mut self,
        schedule: &Schedule,
        first: &'o Op,
        others: impl Iterator<Item = &'o Op>,
    ) -> SpanId {
        let all = [first].into_iter().chain(others);
        let all: Vec<SpanId> = all.flat_map(|op| schedule.statements(&op.at)).copied().collect();
        self.id(all[0], all[1..].iter().copied())
    }

    /// Returns the table of the schedule that the pass writes.
    pub(crate) fn table(self) -> Vec<Box<[SpanId]>> {
        self.all.items
    }
}
