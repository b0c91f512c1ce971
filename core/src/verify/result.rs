//! Results: every contribution exactly once in every output cell, counted one by one, and the ops where reductions
//! become complete.

use std::collections::BTreeSet;

use super::blame::{self, Trace};
use super::completions::Completions;
use super::history;
use super::memory::CALLER;
use super::orders::{Orders, Results};
use super::reduction::reduction;
use super::replay::{ENOUGH, ModeState, Player, Replay};
use super::values::{Leaf, ValueId, Values};
use crate::collective::Expected;
use crate::ids::{OpId, RankId};
use crate::schedule::Buffer;

/// The most histories of wrong pieces: each is a replay.
const HISTORIES: usize = 4;

impl Player<'_> {
    /// Records whether the reduce completes its destination: the whole, a part, or nothing.
    pub(super) fn completes(&mut self, mode: usize, at: OpId, results: &[ValueId]) {
        let Self { values, states, .. } = self;
        let done = results.iter().filter(|v| v.is_value() && values.is_complete(v.expr)).count();
        states[mode].completions.record(at, done, results.len());
    }

    /// Compares every output cell with the value that the collective promises.
    pub(super) fn verdict(mut self) -> Replay {
        let mut reduce_depth = 0;
        for mode in 0..self.states.len() {
            reduce_depth = reduce_depth.max(self.outputs(mode));
        }
        let Self { schedule, cells, mut states, values, one_mode, reduces, .. } = self;
        // Where each rank may choose its mode, all inputs that are read are equal in every mode, and so are all other
        // values.
        let told = if one_mode.is_some() { &states[..] } else { &states[..1] };
        let sound = reduces && told.iter().all(|state| state.findings.is_empty());
        let (reduction, orders) = if sound {
            let commuted = values.commuted();
            let seen = told.iter().map(|ModeState { layout, memory, .. }| Results {
                schedule,
                cells,
                layout,
                memory,
            });
            let seen: Vec<_> = seen.collect();
            (Some(reduction(&seen, &values, &commuted)), Orders::new(&seen, &commuted))
        } else {
            (None, Orders::default())
        };
        let completions = states.iter_mut().map(|state| std::mem::take(&mut state.completions));
        let finish = Completions::uniform(completions);
        let mut findings = states.into_iter().map(|state| state.findings);
        Replay {
            findings: findings.next().unwrap_or_default(),
            in_place_findings: findings.next().unwrap_or_default(),
            finish,
            reduce_depth,
            reduction,
            orders,
            one_mode,
        }
    }

    fn outputs(&mut self, mode: usize) -> u32 {
        let schedule = self.schedule;
        let per_unit = self.cells.per_unit;
        let mut depth = 0;
        let mut wrong = BTreeSet::new();
        for rank in (0..schedule.nranks).map(RankId) {
            let first = self.states[mode].layout.buffer(rank, Buffer::Output);
            let units = schedule.units(Buffer::Output, rank).floor() as u32;
            for unit in 0..units {
                let expected = schedule.collective.expected(rank, unit, schedule.root);
                let at = (first + unit * per_unit) as usize;
                let Self { states, values, .. } = self;
                let held = &states[mode].memory.values[at..][..per_unit as usize];
                for (cut, &value) in held.iter().enumerate() {
                    if value == ValueId::POISON {
                        continue;
                    }
                    let from = |unit: u32| unit * per_unit + cut as u32;
                    let good = match expected {
                        Expected::Reduced { unit } => {
                            value.is_value()
                                && value.cell == from(unit)
                                && values.is_complete(value.expr)
                        }
                        Expected::Copied { rank, unit } => {
                            value == Values::leaf(Leaf { rank, cell: from(unit) })
                        }
                    };
                    if good {
                        depth = depth.max(values.depth(value));
                    } else if wrong.len() < ENOUGH {
                        wrong.insert((rank, from(unit)));
                    }
                }
            }
        }
        let mut told = BTreeSet::new();
        for (rank, cell) in wrong {
            let first = self.states[mode].layout.buffer(rank, Buffer::Output);
            let memory = &self.states[mode].memory;
            let (value, write) =
                (memory.values[(first + cell) as usize], memory.written(first + cell));
            let writer = (write < CALLER).then(|| self.clocks.op(write).0);
            let expected = schedule.collective.expected(rank, cell / per_unit, schedule.root);
            let region = self.cells.region(cell, Buffer::Output);
            // A few statements that are to blame get a history each.
            let blamed = writer.map(|op| schedule.op(op).at);
            let new = told.len() < HISTORIES && told.insert(blamed);
            let history = if new { self.history(mode, first + cell) } else { Vec::new() };
            let layout = &self.states[mode].layout;
            let trace =
                |leaf| blame::trace(schedule, self.order, self.cells, layout, (leaf, first + cell));
            let finding = self.reporter.wrong_result(
                rank,
                &region,
                (expected, cell % per_unit, per_unit),
                (value, writer),
                (&history, &|leaf| if new { trace(leaf) } else { Trace::default() }),
                &self.values,
            );
            self.found(mode, finding);
        }
        depth
    }

    fn history(&mut self, mode: usize, cell: u32) -> Vec<(OpId, ValueId)> {
        let Self { schedule, order, cells, values, states, .. } = self;
        history::history(schedule, order, cells, &states[mode].layout, values, cell)
    }
}
