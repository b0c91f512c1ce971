//! Results: every contribution exactly once in every output cell, and where reductions become complete.

use std::collections::BTreeSet;

use super::history;
use super::memory::CALLER;
use super::reduction::reduction;
use super::replay::{ENOUGH, Player, Replay, World};
use super::values::{Leaf, ValueId, Values, weight};
use crate::collective::Expected;
use crate::ids::{OpId, RankId};
use crate::schedule::{Buffer, Schedule};

/// Histories of wrong pieces: each is a replay.
const HISTORIES: usize = 4;

/// The fingerprint of a full reduction, where there are reductions.
pub(super) fn complete(schedule: &Schedule) -> Option<u128> {
    (schedule.collective.reduces() && schedule.nranks > 1).then(|| total(schedule.nranks))
}

/// Every rank's contribution, once.
fn total(nranks: u32) -> u128 {
    (0..nranks).map(|rank| weight(RankId(rank))).sum()
}

impl Player<'_> {
    /// Whether the reduce makes its destination complete: all of it, part of it, or nothing.
    pub(super) fn completes(&mut self, at: OpId, results: &[ValueId]) {
        let complete =
            |v: &&ValueId| v.is_value() && self.complete == Some(self.values.fingerprint(**v));
        let done = results.iter().filter(complete).count();
        if done > 0 && done == results.len() {
            self.finish.push(at);
        } else if done > 0 {
            self.partial = true;
        }
    }

    /// Compares every output cell with what the collective promises.
    pub(super) fn verdict(mut self) -> Replay {
        let mut reduce_depth = 0;
        for world in 0..self.worlds.len() {
            reduce_depth = reduce_depth.max(self.outputs(world));
        }
        let reduces = self.schedule.collective.reduces() && self.schedule.nranks > 1;
        let reduction = (reduces && self.worlds[0].findings.is_empty()).then(|| {
            let World { layout, memory, .. } = &self.worlds[0];
            let first = |rank| layout.buffer(rank, Buffer::Output);
            reduction(self.schedule, self.cells, &self.values, first, memory)
        });
        let in_place_findings = if self.worlds.len() > 1 {
            std::mem::take(&mut self.worlds[1].findings)
        } else {
            Vec::new()
        };
        let Self { worlds, mut finish, partial, .. } = self;
        finish.sort_unstable();
        Replay {
            findings: worlds.into_iter().next().map(|w| w.findings).unwrap_or_default(),
            in_place_findings,
            finish: (!partial).then_some(finish),
            reduce_depth,
            reduction,
        }
    }

    fn outputs(&mut self, world: usize) -> u32 {
        let schedule = self.schedule;
        let per_unit = self.cells.per_unit;
        let mut depth = 0;
        let total = total(schedule.nranks);
        let mut wrong = BTreeSet::new();
        for rank in (0..schedule.nranks).map(RankId) {
            let first = self.worlds[world].layout.buffer(rank, Buffer::Output);
            let units = schedule.units(Buffer::Output, rank).floor() as u32;
            for unit in 0..units {
                let expected = schedule.collective.expected(rank, unit, schedule.root);
                let at = (first + unit * per_unit) as usize;
                let held = &self.worlds[world].memory.values[at..][..per_unit as usize];
                for (cut, &value) in held.iter().enumerate() {
                    if value == ValueId::POISON {
                        continue;
                    }
                    let from = |unit: u32| unit * per_unit + cut as u32;
                    let good = match expected {
                        Expected::Reduced { unit } => {
                            value.is_value()
                                && value.cell == from(unit)
                                && self.values.fingerprint(value) == total
                        }
                        Expected::Copied { rank, unit } => {
                            value == Values::leaf(Leaf { rank, cell: from(unit) })
                        }
                    };
                    if good {
                        depth = depth.max(self.values.depth(value));
                    } else if wrong.len() < ENOUGH {
                        wrong.insert((rank, from(unit)));
                    }
                }
            }
        }
        let mut told = BTreeSet::new();
        for (rank, cell) in wrong {
            let first = self.worlds[world].layout.buffer(rank, Buffer::Output);
            let memory = &self.worlds[world].memory;
            let (value, write) =
                (memory.values[(first + cell) as usize], memory.written(first + cell));
            let writer = (write < CALLER).then(|| self.clocks.op(write).0);
            let expected = schedule.collective.expected(rank, cell / per_unit, schedule.root);
            let region = self.cells.region(cell, Buffer::Output);
            // A history for each statement that is to blame, of a few.
            let blamed = writer.map(|op| schedule.op(op).at);
            let new = told.len() < HISTORIES && told.insert(blamed);
            let history = if new { self.history(world, first + cell) } else { Vec::new() };
            let finding = self.reporter.wrong_result(
                rank,
                &region,
                (expected, cell % per_unit, per_unit),
                (value, writer),
                &history,
                &self.values,
            );
            self.found(world, finding);
        }
        depth
    }

    fn history(&mut self, world: usize, cell: u32) -> Vec<(OpId, ValueId)> {
        let Self { schedule, order, cells, values, worlds, .. } = self;
        history::history(schedule, order, cells, &worlds[world].layout, values, cell)
    }
}
