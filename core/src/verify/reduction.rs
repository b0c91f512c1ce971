//! The order of reduction: whether every rank adds up in the same order, and whether every piece does. Then
//! floating point results are the same on all ranks, and do not depend on count and chunking.

use super::layout::Cells;
use super::memory::Memory;
use super::report::Reporter;
use super::values::{ValueId, Values};
use crate::collective::Expected;
use crate::ids::RankId;
use crate::schedule::{Buffer, Schedule};

/// How far two orders of reduction agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sameness {
    /// Operand by operand.
    Exact,
    /// But for the order of two operands, which the built-in ops do not mind.
    Commuted,
    /// Not at all: rounding differs.
    Differs,
}

/// The orders of reduction of a schedule's results.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reduction {
    /// Over the ranks that hold the same element.
    pub ranks: Sameness,
    /// Over the pieces of the buffer: where they agree, an element's result does not depend on the count, nor
    /// on how a message is cut into chunks.
    pub pieces: Sameness,
    /// Where two ranks differ.
    pub witness: Option<Witness>,
}

/// Two ranks that hold the same element, reduced in different orders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Witness {
    /// Which ranks.
    pub ranks: [RankId; 2],
    /// The piece of the output.
    pub piece: String,
    /// Their orders, such as `((0 1) 2)`: the outermost reduce comes last.
    pub orders: [String; 2],
}

/// What the outputs of a right replay say.
pub(super) fn reduction(
    schedule: &Schedule,
    cells: &Cells,
    values: &Values,
    first: impl Fn(RankId) -> u32,
    memory: &Memory,
) -> Reduction {
    let signatures = values.signatures();
    let input_cells = schedule.collective.max_input_units(schedule.nranks) * cells.per_unit;
    // The first rank that holds each piece, with what it holds.
    let mut held: Vec<Option<(RankId, ValueId)>> = vec![None; input_cells as usize];
    let mut any: Option<ValueId> = None;
    let (mut ranks, mut pieces) = (Sameness::Exact, Sameness::Exact);
    let mut witness = None;
    for rank in (0..schedule.nranks).map(RankId) {
        let units = schedule.units(Buffer::Output, rank).floor() as u32;
        for cell in 0..units * cells.per_unit {
            let (unit, cut) = (cell / cells.per_unit, cell % cells.per_unit);
            let Expected::Reduced { unit } =
                schedule.collective.expected(rank, unit, schedule.root)
            else {
                continue;
            };
            let value = memory.values[(first(rank) + cell) as usize];
            let piece = &mut held[(unit * cells.per_unit + cut) as usize];
            let (other, same) = *piece.get_or_insert((rank, value));
            let sameness = signatures.compare(same, value);
            if sameness == Sameness::Differs && witness.is_none() {
                let orders = [same, value].map(|v| values.tree(v));
                let region = cells.region(cell, Buffer::Output);
                let piece = Reporter::new(schedule).piece(&region);
                witness = Some(Witness { ranks: [other, rank], piece, orders });
            }
            ranks = ranks.max(sameness);
            pieces = pieces.max(signatures.compare(*any.get_or_insert(value), value));
        }
    }
    Reduction { ranks, pieces, witness }
}

/// Hashes of reduction trees in which a leaf is only its rank.
pub(crate) struct Signatures {
    pub(super) exact: Vec<u64>,
    pub(super) commuted: Vec<u64>,
}

impl Signatures {
    fn compare(&self, a: ValueId, b: ValueId) -> Sameness {
        let (a, b) = (a.expr as usize, b.expr as usize);
        if self.exact[a] == self.exact[b] {
            Sameness::Exact
        } else if self.commuted[a] == self.commuted[b] {
            Sameness::Commuted
        } else {
            Sameness::Differs
        }
    }
}
