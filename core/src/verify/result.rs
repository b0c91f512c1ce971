//! Results: every contribution exactly once in every output cell, counted one by one.

use std::collections::BTreeSet;

use super::blame::Trace;
use super::memory::CALLER;
use super::ranks::FollowedRanks;
use super::replay::{ModeState, Player, Replayed};
use super::values::{CellValue, Expressions, Leaf};
use crate::collective::Expected;
use crate::ids::RankId;
use crate::schedule::Buffer;

/// The most histories of wrong pieces: each is a replay.
const HISTORIES: usize = 4;

impl<R: FollowedRanks> Player<'_, R> {
    /// Compares every output cell with the value that the collective promises.
    pub(super) fn outputs(&mut self, mode: usize) {
        let Replayed { schedule, reporter, .. } = *self.of;
        let per_unit = self.ranks.per_unit();
        let mut wrong = BTreeSet::new();
        for rank in (0..self.ranks.followed()).map(RankId) {
            let cells = self.buffer(mode, rank, Buffer::Output);
            let Self { states, values, reduce_depth, .. } = self;
            let held = &states[mode].values[cells.start as usize..cells.end as usize];
            for (unit, held) in (0..).zip(held.chunks(per_unit as usize)) {
                let expected = schedule.collective.expected_value(rank, unit, schedule.root);
                for (cut, &value) in (0..).zip(held) {
                    if value == CellValue::POISON {
                        continue;
                    }
                    let from = |unit: u32| unit * per_unit + cut;
                    let good = match expected {
                        Expected::Reduced { unit } => {
                            value.is_value()
                                && value.cell() == from(unit)
                                && values.is_complete(value)
                        }
                        Expected::Copied { rank, unit } => {
                            value == CellValue::leaf(Leaf { rank, cell: from(unit) })
                        }
                    };
                    if good {
                        *reduce_depth = values.depth(value).max(*reduce_depth);
                    } else if wrong.len() < R::WRONG {
                        wrong.insert((rank, from(unit)));
                    }
                }
            }
        }
        let mut told = BTreeSet::new();
        for (rank, cell) in wrong {
            let Self { states, values, ranks, .. } = self;
            let ModeState { layout, memory, values: held, .. } = &states[mode];
            let at = layout.buffer(rank, Buffer::Output) + cell;
            let write = memory.written(at);
            let writer = (write < CALLER).then(|| ranks.touched(write, rank).0);
            let expected = schedule.collective.expected_value(rank, cell / per_unit, schedule.root);
            // A few statements that are to blame get a history each.
            let blamed = writer.map(|op| schedule.op(op).at);
            let new = told.len() < HISTORIES && told.insert(blamed);
            let history = if new { ranks.history(values, layout, at) } else { Vec::new() };
            let trace = |leaf| if new { ranks.trace(layout, (leaf, at)) } else { Trace::default() };
            let finding = values.write_out(held[at as usize], |value, values| {
                reporter.wrong_result(
                    rank,
                    &ranks.region(cell),
                    (expected, cell % per_unit, per_unit),
                    (value, writer),
                    (&history, &trace),
                    values,
                )
            });
            self.found(mode, finding);
        }
    }
}
