//! What each output comes to, as expressions over inputs: whatever way the data went, it does not show here.
//!
//! Operands of an op are taken in either order, as all reduce ops commute bit for bit; how ops nest is the
//! author's.

use crate::collective::Alias;
use crate::ids::RankId;
use crate::schedule::{Buffer, OpKind, Operand, Schedule};
use crate::verify::Order;
use crate::verify::layout::{Cells, Layout, Mode, entered};
use crate::verify::values::{Leaf, ValueId, Values};

use super::Unfit;

/// Cells that all moves together may read: some seconds of work.
const WORK: u64 = 1 << 27;

/// The inputs' cells, in runs of which the same becomes.
pub(super) struct Flow {
    pub(super) cells: Cells,
    pub(super) values: Values,
    pub(super) columns: Vec<Column>,
}

/// Neighboring cells of the inputs, and all that is made of them.
pub(super) struct Column {
    pub(super) first: u32,
    pub(super) len: u32,
    pub(super) items: Vec<Item>,
}

/// One expression over a column, and everywhere it goes.
#[derive(PartialEq, Eq)]
pub(super) struct Item {
    pub(super) expr: u32,
    pub(super) dsts: Vec<Destination>,
}

/// A stretch of an output.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Destination {
    pub(super) rank: RankId,
    /// From the column's cells to those of the output.
    pub(super) shift: i64,
}

/// One cell of an output: the input cell and the expression over it, and where it is.
type Record = (u32, u32, Destination);

impl Flow {
    /// Follows the data of a proved schedule; with `reassociate` every reduction is that of the ranks in order.
    pub(super) fn new(
        schedule: &Schedule,
        order: &Order,
        reassociate: bool,
    ) -> Result<Self, Unfit> {
        let too_fine = |n: u32| Unfit(format!("a unit of its buffers has {n} pieces"));
        let cells = Cells::new(schedule).map_err(too_fine)?;
        let layout = Layout::new(schedule, &cells, Mode::OutOfPlace)
            .ok_or_else(|| too_fine(cells.per_unit))?;
        let width = |operand: &Operand| u64::from(cells.of(*operand).1);
        let work: u64 = schedule.operands.iter().map(width).sum();
        if work > WORK {
            return Err(Unfit(format!("its moves read and write {work} pieces, more than {WORK}")));
        }
        let mut values = Values::new(schedule.nranks, schedule.operands.len() / 3);
        let memory = replay(schedule, order, &cells, &layout, &mut values);
        let reduced =
            (reassociate && schedule.collective.reduces()).then(|| in_order(schedule, &mut values));
        let mut records = Vec::new();
        for rank in (0..schedule.nranks).map(RankId) {
            let first = layout.buffer(rank, Buffer::Output) as usize;
            let len = cells.per_unit * schedule.units(Buffer::Output, rank).floor() as u32;
            for (cell, value) in (0..len).zip(&memory[first..]) {
                if !value.is_value() {
                    return Err(Unfit(format!("an output of rank {rank} is not written")));
                }
                let destination =
                    Destination { rank, shift: i64::from(cell) - i64::from(value.cell) };
                records.push((value.cell, reduced.unwrap_or(value.expr), destination));
            }
        }
        records.sort_unstable();
        let columns = columns(&records, cells.per_unit);
        Ok(Self { cells, values, columns })
    }
}

/// What memory holds in the end.
fn replay(
    schedule: &Schedule,
    order: &Order,
    cells: &Cells,
    layout: &Layout,
    values: &mut Values,
) -> Vec<ValueId> {
    let mut memory = entered(schedule, cells, layout);
    let place = |operand: &Operand| {
        let (first, len) = cells.of(*operand);
        let buffer = layout.buffer(operand.rank, schedule.region(*operand).buffer);
        (buffer + first) as usize..(buffer + first + len) as usize
    };
    let mut folded = Vec::new();
    for &at in order.sequence.iter().filter(|at| schedule.op(**at).kind == OpKind::Move) {
        let op = schedule.op(at);
        let (srcs, dsts) = (schedule.srcs(op), schedule.dsts(op));
        folded.clear();
        folded.extend_from_slice(&memory[place(&srcs[0])]);
        for src in &srcs[1..] {
            for (acc, value) in folded.iter_mut().zip(&memory[place(src)]) {
                let (a, b) = ((*acc).min(*value), (*acc).max(*value));
                *acc = if b.is_value() { values.fold(a, b, at) } else { ValueId::POISON };
            }
        }
        for dst in dsts {
            memory[place(dst)].copy_from_slice(&folded);
        }
    }
    memory
}

/// The expression that takes the ranks' contributions one after the other.
fn in_order(schedule: &Schedule, values: &mut Values) -> u32 {
    let at = crate::ids::OpId(0);
    let leaf = |rank| Values::leaf(Leaf { rank: RankId(rank), cell: 0 });
    (1..schedule.nranks)
        .fold(leaf(0), |acc, rank| values.fold(acc.min(leaf(rank)), acc.max(leaf(rank)), at))
        .expr
}

/// Sorted records by input cell; neighbors of which the same becomes at the same distance are one column.
fn columns(records: &[Record], per_unit: u32) -> Vec<Column> {
    let mut columns: Vec<Column> = Vec::new();
    for of_cell in records.chunk_by(|a, b| a.0 == b.0) {
        let cell = of_cell[0].0;
        let items: Vec<Item> = of_cell
            .chunk_by(|a, b| a.1 == b.1)
            .map(|item| Item { expr: item[0].1, dsts: item.iter().map(|r| r.2).collect() })
            .collect();
        match columns.last_mut() {
            // Within a unit: then a column and its aliases in place are equal or apart.
            Some(last)
                if last.first + last.len == cell
                    && !cell.is_multiple_of(per_unit)
                    && last.items == items =>
            {
                last.len += 1;
            }
            _ => columns.push(Column { first: cell, len: 1, items }),
        }
    }
    columns
}

/// Whether a stretch of an output over a column lies, in place, where that rank's input of the column does.
pub(super) fn aliased(schedule: &Schedule, per_unit: u32, destination: Destination) -> bool {
    if schedule.out_of_place || !schedule.collective.has_in_place() {
        return false;
    }
    let unit = |unit: u32| i64::from(unit) * i64::from(per_unit);
    match schedule.collective.alias(destination.rank, schedule.root) {
        Alias::Apart => false,
        Alias::InputInOutput(at) => destination.shift == unit(at),
        Alias::OutputInInput(at) => destination.shift == -unit(at),
    }
}
