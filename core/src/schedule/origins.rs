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

#[cfg(test)]
mod tests {
    use super::Origins;
    use crate::ids::SpanId;
    use crate::schedule::text;

    const TEXT: &str = "schedule Ring AllReduce nranks 1 root 0\n\
        file \"ring.coll\"\n\
        at 0 = 12:1..12:9\n\
        at 1 = 20:1..20:9\n\
        at 2 = 14:1..14:9\n\
        at 3 = 2, 0, 1\n\
        rank 0 stream 0\n  \
        copy 0.input[0..1] -> 0.output[0..1] @3\n";

    #[test]
    fn an_op_of_several_statements_keeps_them_in_its_text() {
        let schedule = text::parse(TEXT).expect("the printed text is readable");
        assert_eq!(text::print(&schedule), TEXT);
        let at = schedule.ops[0].at;
        assert_eq!(schedule.lines(at), [12, 14, 20]);
        assert_eq!(schedule.location(at).line, 14);
        assert_eq!(schedule.place(at), "ring.coll:12, 14 and 20");
        assert_eq!(schedule.place(SpanId(2)), "ring.coll:14");
        assert_eq!(schedule.place(SpanId(4)), "");
        assert_eq!(schedule.lines(SpanId(1)), [20]);
        assert_eq!(schedule.lines(SpanId(4)), [0; 0]);
        for (from, to) in [("2, 0, 1", "2, 0, 9"), ("2, 0, 1", "2"), ("2, 0, 1", "2, 3")] {
            let error = text::parse(&TEXT.replace(from, to)).expect_err(to);
            assert_eq!(error.line, 6, "{error}");
        }
        let late = TEXT.replace("rank 0", "at 4 = 1:1..1:2\nrank 0");
        assert_eq!(text::parse(&late).expect_err("a location after them").line, 7);
    }

    #[test]
    fn equal_sets_have_one_id() {
        let schedule = text::parse(TEXT).expect("the printed text is readable");
        let mut origins = Origins::of(&schedule);
        let [zero, one, two] = [0, 1, 2].map(SpanId);
        assert_eq!(origins.id(two, [one, zero, two, one]), SpanId(3));
        assert_eq!(origins.id(one, [one]), one);
        assert_eq!(origins.id(zero, [one]), SpanId(4));
        let op = schedule.ops[0];
        assert_eq!(origins.joined(&schedule, &op, [op].iter()), SpanId(3));
        assert_eq!(origins.table().len(), 2);
    }
}
