//! Tables of values that arithmetic does not express, with as few indices as possible.

use std::collections::BTreeMap;

use super::ir::{LoopTable, Number, Op, binary, executing, times};
use roundelay_core::syntax::ast::BinOp;

/// An entry with the iterations of the loops around it, and the rank that has it.
pub(crate) type Row = (Vec<i64>, usize, Vec<i64>);

/// The tables of a form that is being made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Tables {
    pub(crate) all: Vec<LoopTable>,
    pub(crate) nranks: u32,
}

impl Tables {
    /// Returns the number of an entry among all entries of its table.
    pub(crate) fn index(&self, table: usize, indices: &[Number]) -> Number {
        let table = &self.all[table];
        let rank = table.by_rank.then(executing);
        let mut index = Number::int(0);
        for (number, size) in indices.iter().chain(&rank).zip(table.dims(self.nranks)) {
            index = match index.op {
                Op::Int(0) => number.clone(),
                _ => binary(BinOp::Add, times(index, size as i64), number.clone()),
            };
        }
        index
    }

    /// Adds a table of entries with as few indices as possible, and returns it with its indices. `loops` are the numbers
    /// that stand for the iterations. `None` if two rows differ in their entries alone, or if there are too many entries.
    pub(crate) fn fewest(
        &mut self,
        rows: &[Row],
        loops: &[Number],
        nothing: &[i64],
    ) -> Option<(usize, Vec<Number>)> {
        let tells = |kept: &[usize], by_rank: bool| {
            let mut known: BTreeMap<(usize, Vec<i64>), &Vec<i64>> = BTreeMap::new();
            rows.iter().all(|(counters, rank, entry)| {
                let key = kept.iter().map(|at| counters[*at]).collect();
                let rank = if by_rank { *rank } else { 0 };
                *known.entry((rank, key)).or_insert(entry) == entry
            })
        };
        let mut kept: Vec<usize> = (0..loops.len()).collect();
        if !tells(&kept, true) {
            return None;
        }
        let by_rank = !tells(&kept, false);
        for at in 0..loops.len() {
            let fewer: Vec<_> = kept.iter().copied().filter(|other| *other != at).collect();
            if tells(&fewer, by_rank) {
                kept = fewer;
            }
        }
        let most = |at: &usize| rows.iter().map(|row| row.0[*at] + 1).max().unwrap_or(0);
        let sizes = kept.iter().map(|at| usize::try_from(most(at)).ok());
        let sizes = sizes.collect::<Option<Vec<_>>>()?;
        let ranks = if by_rank { self.nranks as usize } else { 1 };
        let many = sizes.iter().try_fold(ranks, |many, size| many.checked_mul(*size))?;
        // Every index has a reason, so a table is hardly larger than its rows, but for sparse ones.
        if many > 64 * rows.len().max(1 << 10) {
            return None;
        }
        let mut entries = vec![nothing.to_vec(); many];
        for (counters, rank, entry) in rows {
            let at = kept.iter().zip(&sizes);
            let at = at.fold(0, |sum, (at, size)| sum * size + counters[*at] as usize);
            entries[if by_rank { at * ranks + rank } else { at }].clone_from(entry);
        }
        let indices = kept.iter().map(|at| loops[*at].clone()).collect();
        Some((self.table(sizes, by_rank, entries), indices))
    }

    /// Adds a table with these entries, unless there is an equal one.
    pub(crate) fn table(
        &mut self,
        sizes: Vec<usize>,
        by_rank: bool,
        entries: Vec<Vec<i64>>,
    ) -> usize {
        let table = LoopTable { sizes, by_rank, entries };
        let known = self.all.iter().position(|known| *known == table);
        known.unwrap_or_else(|| {
            self.all.push(table);
            self.all.len() - 1
        })
    }
}
