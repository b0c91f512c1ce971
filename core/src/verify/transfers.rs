//! The transfers of a schedule: the moves between ranks by step, and the part of the data that each move carries. The
//! data is traced from the inputs, for a slot of scratch does not say which data lies in it.

use std::collections::{BTreeMap, BTreeSet};

use super::layout::{BufferMode, Cells, MemoryLayout};
use super::order::Order;
use super::report::Reporter;
use super::{Callers, Signals, ports, verify_in_order};
use crate::collective::Collective;
use crate::diagnostics::Finding;
use crate::ids::{OpId, RankId};
use crate::rational::Rat;
use crate::schedule::{Buffer, OpKind, Operand, Schedule};

/// The data that goes from one rank to another in one step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// The step: the length of the longest chain of transfers that must come before it.
    pub step: u32,
    /// The rank that the data comes from.
    pub from: RankId,
    /// The rank that gets the data.
    pub to: RankId,
    /// Whether the data is reduced with the receiver's data, and not only copied.
    pub adds: bool,
    /// The stretches of the data that the transfer carries, in order.
    pub data: Vec<Stretch>,
}

/// A stretch of the larger of the collective's two buffers: an `AllGather`'s output, a `ReduceScatter`'s input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// In an `AllToAll` the rank whose input this stretch is of, as one stretch of two inputs goes different ways
    /// there; `None` for other collectives.
    pub of: Option<RankId>,
    /// The share of the buffer at which the stretch begins, from 0 to 1.
    pub lo: Rat,
    /// The share of the buffer at which the stretch ends.
    pub hi: Rat,
}

/// Returns the transfers of a schedule by step, sender and receiver.
///
/// A transfer comes one step after the transfers that it needs: the transfers that a signal above it reports, and those
/// of its stream that write its data.
///
/// # Errors
/// The findings of the proof, where the schedule is wrong: then its data may be anything.
pub fn transfers(schedule: &Schedule) -> Result<Vec<Transfer>, Vec<Finding>> {
    let (_, order) = verify_in_order(schedule, Signals::default(), Callers::Each)?;
    let too_fine = |per_unit| vec![Reporter::too_fine(per_unit)];
    let cells = Cells::new(schedule).map_err(too_fine)?;
    let layout = MemoryLayout::new(schedule, &cells, BufferMode::OutOfPlace)
        .ok_or_else(|| too_fine(cells.per_unit))?;
    let steps = ports::steps_in(schedule, &order, &cells, &layout);
    let mut trace = Trace::new(schedule, &order, &cells, &layout);
    for &at in order.sequence.iter().filter(|at| schedule.op(**at).kind == OpKind::Move) {
        trace.play(at);
    }
    let mut all: BTreeMap<(u32, RankId, RankId, bool), BTreeSet<DataCell>> = BTreeMap::new();
    for Carried { at, from, to, adds, data } in trace.carried {
        let step = steps.of[at.index()] - 1;
        all.entry((step, from, to, adds)).or_default().extend(data);
    }
    let whole = whole(schedule.collective, schedule.nranks);
    let transfers = all.into_iter().map(|((step, from, to, adds), data)| {
        let data = stretches(data, &cells, whole);
        Transfer { step, from, to, adds, data }
    });
    Ok(transfers.collect())
}

/// Returns the units of the buffer that stretches are shares of.
fn whole(collective: Collective, nranks: u32) -> u32 {
    collective.max_input_units(nranks).max(collective.max_output_units(nranks))
}

/// A cell of the buffer that stretches are shares of, and its rank, where the rank matters.
type DataCell = (Option<RankId>, u32);

/// Joins adjacent cells to stretches.
fn stretches(cells: BTreeSet<DataCell>, by: &Cells, whole: u32) -> Vec<Stretch> {
    let mut runs: Vec<(Option<RankId>, u32, u32)> = Vec::new();
    for (of, cell) in cells {
        match runs.last_mut() {
            Some((rank, _, end)) if (*rank, *end) == (of, cell) => *end += 1,
            _ => runs.push((of, cell, cell + 1)),
        }
    }
    let share = |at: Rat| Rat::new(at.num(), at.den() * u64::from(whole)).unwrap_or(Rat::ZERO);
    let stretch = |(of, first, end)| {
        let [first, last] = [first, end - 1].map(|cell| by.region(cell, Buffer::Input));
        Stretch { of, lo: share(first.lo), hi: share(last.hi) }
    };
    runs.into_iter().map(stretch).collect()
}

/// The data that one move carries in one direction.
struct Carried {
    at: OpId,
    from: RankId,
    to: RankId,
    adds: bool,
    data: Vec<DataCell>,
}

/// Every rank's memory in the course of a run: the source of the data in each cell.
struct Trace<'s> {
    schedule: &'s Schedule,
    order: &'s Order,
    cells: &'s Cells,
    layout: &'s MemoryLayout,
    /// The cell of the collective's data that lies in each cell of the memory.
    holds: Vec<Option<DataCell>>,
    carried: Vec<Carried>,
}

impl<'s> Trace<'s> {
    /// Returns the memory before the first op: each input holds its own data.
    fn new(
        schedule: &'s Schedule,
        order: &'s Order,
        cells: &'s Cells,
        layout: &'s MemoryLayout,
    ) -> Self {
        let mut holds = vec![None; layout.size as usize];
        for rank in (0..schedule.nranks).map(RankId) {
            let first = layout.buffer(rank, Buffer::Input) as usize;
            let units = schedule.units(Buffer::Input, rank).floor() as u32;
            let (of, unit) = match schedule.collective {
                // A rank's input is its own unit of the output.
                Collective::AllGather | Collective::Gather => (None, rank.0),
                Collective::AllToAll => (Some(rank), 0),
                _ => (None, 0),
            };
            for cell in 0..units * cells.per_unit {
                holds[first + cell as usize] = Some((of, unit * cells.per_unit + cell));
            }
        }
        Self { schedule, order, cells, layout, holds, carried: vec![] }
    }

    fn place(&self, operand: Operand) -> std::ops::Range<usize> {
        let buffer = self.schedule.region(operand).buffer;
        let (first, len) = self.cells.of(operand);
        let first = (self.layout.buffer(operand.rank, buffer) + first) as usize;
        first..first + len as usize
    }

    /// Runs a move.
    fn play(&mut self, at: OpId) {
        let schedule = self.schedule;
        let op = schedule.op(at);
        let stream = self.order.stream_of[at.index()];
        let by = schedule.streams[stream.index()].rank;
        let (srcs, dsts) = (schedule.srcs(op), schedule.dsts(op));
        if self.place(srcs[0]).is_empty() {
            return;
        }
        let (adds, added) = (srcs.len() > 1, schedule.added(op));
        for src in added.iter().filter(|src| src.rank != by) {
            let data = self.data(*src);
            self.carried.push(Carried { at, from: src.rank, to: by, adds, data });
        }
        let folds = added.len() < srcs.len();
        for dst in dsts.iter().filter(|dst| dst.rank != by) {
            let data = self.data(added[0]);
            self.carried.push(Carried { at, from: by, to: dst.rank, adds: folds, data });
        }
        let values: Vec<_> = self.holds[self.place(srcs[0])].to_vec();
        for dst in dsts {
            let place = self.place(*dst);
            self.holds[place].copy_from_slice(&values);
        }
    }

    fn data(&self, operand: Operand) -> Vec<DataCell> {
        self.holds[self.place(operand)].iter().flatten().copied().collect()
    }
}
