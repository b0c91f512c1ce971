//! The value of each output, as expressions over inputs, without the path that the data took.
//!
//! Operands of an op are taken in either order, as all reduce ops commute bit for bit; the nesting of ops is the
//! author's. Beside the expressions are noted the statements that made each of them, and those that brought it to its
//! place.

use crate::collective::Alias;
use crate::ids::RankId;
use crate::schedule::{Buffer, OpKind, Operand, Schedule};
use crate::verify::Order;
use crate::verify::layout::{BufferMode, Cells, MemoryLayout, entered};
use crate::verify::values::{CellValue, Expressions, FoldWay, Leaf, ValueId, Values};

use super::Unfit;
use super::statements::{StatementSet, StatementSets};

/// The most cells that all moves together may read: some seconds of work.
const WORK: u64 = 1 << 27;

/// The values of all outputs, by runs of input cells whose expressions have the same form.
pub(super) struct Flow {
    pub(super) cells: Cells,
    pub(super) values: Values,
    pub(super) columns: Vec<Column>,
    pub(super) sets: StatementSets,
    /// For each expression, the statements that fold its operands and bring them together.
    pub(super) folded: Vec<StatementSet>,
}

/// Neighboring cells of the inputs, and all expressions over them.
pub(super) struct Column {
    pub(super) first: u32,
    pub(super) len: u32,
    pub(super) items: Vec<Item>,
}

/// One expression over a column, and all its destinations.
pub(super) struct Item {
    pub(super) expr: u32,
    pub(super) dsts: Vec<Destination>,
    /// The statements that bring the expression there once it is made.
    pub(super) brought: StatementSet,
}

impl Item {
    /// Whether both items are the same expression with the same destinations, by any statements.
    fn is(&self, other: &Self) -> bool {
        (self.expr, &self.dsts) == (other.expr, &other.dsts)
    }
}

/// A stretch of an output.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Destination {
    pub(super) rank: RankId,
    /// The distance from the column's cells to those of the output, in cells.
    pub(super) shift: i64,
}

/// One cell of an output: the input cell, the expression over it, the cell's place, and the statements that brought
/// it there.
type Record = (u32, u32, Destination, StatementSet);

impl Flow {
    /// Follows the data of a proved schedule; with `reassociate` every reduction takes the ranks in order.
    pub(super) fn new(
        schedule: &Schedule,
        order: &Order,
        reassociate: bool,
    ) -> Result<Self, Unfit> {
        let too_fine = |n: u32| Unfit(format!("a unit of its buffers has {n} pieces"));
        let cells = Cells::new(schedule).map_err(too_fine)?;
        let layout = MemoryLayout::new(schedule, &cells, BufferMode::OutOfPlace)
            .ok_or_else(|| too_fine(cells.per_unit))?;
        let width = |operand: &Operand| u64::from(cells.of(*operand).1);
        let work: u64 = schedule.operands.iter().map(width).sum();
        if work > WORK {
            return Err(Unfit(format!("its moves read and write {work} pieces, more than {WORK}")));
        }
        let mut values = Values::new(schedule.nranks, schedule.operands.len() / 3);
        let mut replay = Replay::new(entered(schedule, &cells, &layout));
        replay.run(schedule, order, (&cells, &layout), &mut values);
        let Replay { memory, brought, mut sets, mut folded } = replay;
        let reduced =
            (reassociate && schedule.collective.reduces()).then(|| in_order(schedule, &mut values));
        if let Some(reduced) = reduced {
            // A nesting that no author wrote has every move's statement as its provenance.
            let moves = schedule.ops.iter().filter(|op| op.kind == OpKind::Move);
            let every = sets.of(&moves.map(|op| op.at).collect::<Vec<_>>());
            folded.resize(folded.len().max(reduced as usize + 1), StatementSet::EMPTY);
            folded.fill(every);
        }
        let mut records = Vec::new();
        for rank in (0..schedule.nranks).map(RankId) {
            let first = layout.buffer(rank, Buffer::Output) as usize;
            let len = cells.per_unit * schedule.units(Buffer::Output, rank).floor() as u32;
            for ((cell, value), brought) in (0..len).zip(&memory[first..]).zip(&brought[first..]) {
                if !value.is_value() {
                    return Err(Unfit(format!("an output of rank {rank} is not written")));
                }
                let destination =
                    Destination { rank, shift: i64::from(cell) - i64::from(value.cell) };
                let expr = reduced.unwrap_or(value.expr);
                records.push((value.cell, expr, destination, *brought));
            }
        }
        records.sort_unstable();
        let columns = columns(&records, cells.per_unit, &mut sets);
        Ok(Self { cells, values, columns, sets, folded })
    }
}

/// The values in memory, and the statements behind them.
struct Replay {
    memory: Vec<ValueId>,
    /// For each cell the statements that copied its value since it was folded.
    brought: Vec<StatementSet>,
    sets: StatementSets,
    /// See [`Flow::folded`].
    folded: Vec<StatementSet>,
}

impl Replay {
    fn new(memory: Vec<ValueId>) -> Self {
        let brought = vec![StatementSet::EMPTY; memory.len()];
        Self { memory, brought, sets: StatementSets::default(), folded: Vec::new() }
    }

    /// Runs all moves.
    fn run(
        &mut self,
        schedule: &Schedule,
        order: &Order,
        (cells, layout): (&Cells, &MemoryLayout),
        values: &mut Values,
    ) {
        let place = |operand: &Operand| {
            let (first, len) = cells.of(*operand);
            let buffer = layout.buffer(operand.rank, schedule.region(*operand).buffer);
            (buffer + first) as usize..(buffer + first + len) as usize
        };
        let (mut made, mut brought) = (Vec::new(), Vec::new());
        for &at in order.sequence.iter().filter(|at| schedule.op(**at).kind == OpKind::Move) {
            let op = schedule.op(at);
            let (srcs, dsts) = (schedule.srcs(op), schedule.dsts(op));
            let here = self.sets.of(schedule.statements(&op.at));
            made.clear();
            made.extend_from_slice(&self.memory[place(&srcs[0])]);
            brought.clear();
            brought.extend_from_slice(&self.brought[place(&srcs[0])]);
            let wide = |operand: &Operand| schedule.is_wide(*operand);
            let exact = dsts.iter().any(wide);
            for (nth, src) in srcs.iter().enumerate().skip(1) {
                let rounds = if nth + 1 < srcs.len() { op.chain } else { !exact };
                let way = FoldWay::in_order(rounds);
                let (other, by) = (&self.memory[place(src)], &self.brought[place(src)]);
                let mut last = None;
                for ((acc, value), (ours, theirs)) in
                    made.iter_mut().zip(other).zip(brought.iter_mut().zip(by))
                {
                    let (a, b) = ((*acc).min(*value), (*acc).max(*value));
                    *acc = if b.is_value() { values.fold(a, b, way, at) } else { ValueId::POISON };
                    let behind = (acc.expr, *ours, *theirs);
                    if last != Some(behind) && acc.is_value() {
                        last = Some(behind);
                        let all = self.sets.union(*ours, *theirs);
                        let all = self.sets.union(all, here);
                        let expr = acc.expr as usize;
                        self.folded.resize(self.folded.len().max(expr + 1), StatementSet::EMPTY);
                        self.folded[expr] = self.sets.union(self.folded[expr], all);
                    }
                    *ours = StatementSet::EMPTY;
                }
            }
            if srcs.len() == 1 {
                for by in &mut brought {
                    *by = self.sets.union(*by, here);
                }
            }
            for dst in dsts.iter().filter(|dst| wide(dst)) {
                self.memory[place(dst)].copy_from_slice(&made);
                self.brought[place(dst)].copy_from_slice(&brought);
            }
            if exact || wide(&srcs[0]) {
                for value in &mut made {
                    let rounded = values.rounded(*value, at);
                    self.rounded(value.expr, rounded.expr);
                    *value = rounded;
                }
            }
            for dst in dsts.iter().filter(|dst| !wide(dst)) {
                self.memory[place(dst)].copy_from_slice(&made);
                self.brought[place(dst)].copy_from_slice(&brought);
            }
        }
    }
}

impl Replay {
    /// Gives a rounded expression the statements that folded it.
    fn rounded(&mut self, of: u32, rounded: u32) {
        let all = self.folded.get(of as usize).copied().filter(|_| of != rounded);
        if let Some(all) = all {
            let expr = rounded as usize;
            self.folded.resize(self.folded.len().max(expr + 1), StatementSet::EMPTY);
            self.folded[expr] = self.sets.union(self.folded[expr], all);
        }
    }
}

/// Returns the expression that takes the ranks' contributions one after another, and rounds each sum.
fn in_order(schedule: &Schedule, values: &mut Values) -> u32 {
    let at = crate::ids::OpId(0);
    let way = FoldWay::in_order(true);
    let leaf = |rank| Values::leaf(Leaf { rank: RankId(rank), cell: 0 });
    (1..schedule.nranks)
        .fold(leaf(0), |acc, rank| values.fold(acc.min(leaf(rank)), acc.max(leaf(rank)), way, at))
        .expr
}

/// Groups sorted records by input cell; neighbors with equal expressions and destinations are one column.
fn columns(records: &[Record], per_unit: u32, sets: &mut StatementSets) -> Vec<Column> {
    let mut columns: Vec<Column> = Vec::new();
    for of_cell in records.chunk_by(|a, b| a.0 == b.0) {
        let cell = of_cell[0].0;
        let items: Vec<Item> = of_cell
            .chunk_by(|a, b| a.1 == b.1)
            .map(|item| Item {
                expr: item[0].1,
                dsts: item.iter().map(|r| r.2).collect(),
                brought: item.iter().fold(StatementSet::EMPTY, |all, r| sets.union(all, r.3)),
            })
            .collect();
        let same =
            |a: &[Item], b: &[Item]| a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.is(b));
        match columns.last_mut() {
            // A column stays within a unit: then a column and its aliases in place are equal or apart.
            Some(last)
                if last.first + last.len == cell
                    && !cell.is_multiple_of(per_unit)
                    && same(&last.items, &items) =>
            {
                last.len += 1;
                for (item, more) in last.items.iter_mut().zip(&items) {
                    item.brought = sets.union(item.brought, more.brought);
                }
            }
            _ => columns.push(Column { first: cell, len: 1, items }),
        }
    }
    columns
}

/// Whether, in place, a destination of a column overlaps that rank's own input of the column.
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
