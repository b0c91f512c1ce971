//! The order of reduction: whether every rank, and every piece, adds up in one order. If they do, floating point
//! results are equal on all ranks, and do not depend on count and chunking.

use super::orders::Results;
use super::piece::piece_text;
use super::values::{Commuted, ValueId, Values};
use crate::collective::Expected;
use crate::ids::RankId;
use crate::schedule::Buffer;

/// The agreement of two orders of reduction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sameness {
    /// The orders agree operand by operand.
    Exact,
    /// The orders agree except for the order of two operands, which changes no result of the built-in ops.
    Commuted,
    /// The orders differ, and so may the rounding of floats.
    Differs,
}

/// The agreement of the orders in which the results of a schedule are reduced, in every mode in which it may run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reduction {
    /// The agreement of the ranks that hold an element.
    pub ranks: Sameness,
    /// The agreement of the pieces of the buffer: where they agree, an element's result does not depend on the count,
    /// nor on how a message is cut into chunks.
    pub pieces: Sameness,
    /// The agreement of a run in place and a run out of place, element by element of each rank's output.
    pub modes: Sameness,
    /// Whether each result is the reduction of all ranks' contributions in the order of the ranks, so that an op need
    /// not commute.
    pub in_rank_order: bool,
    /// Two ranks that reduce in different orders, if there are two.
    pub witness: Option<Witness>,
}

/// Two ranks that hold one element, reduced in different orders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Witness {
    /// The two ranks.
    pub ranks: [RankId; 2],
    /// The piece of the output that they both hold, in words.
    pub piece: String,
    /// The order of each of the two ranks, such as `((0 1) 2)`: the outermost reduce comes last.
    pub orders: [String; 2],
    /// Whether they differ in place only, and agree out of place.
    pub in_place: bool,
}

/// Returns the agreement of the outputs of a replay without findings: the weakest agreement of all modes.
pub(super) fn reduction(modes: &[Results<'_>], values: &Values, commuted: &Commuted) -> Reduction {
    let stretches = values.stretches();
    let mut all = Reduction {
        ranks: Sameness::Exact,
        pieces: Sameness::Exact,
        modes: Sameness::Exact,
        in_rank_order: true,
        witness: None,
    };
    for (mode, results) in modes.iter().enumerate() {
        let Results { schedule, cells, .. } = results;
        let input_cells = schedule.collective.max_input_units(schedule.nranks) * cells.per_unit;
        // The first rank that holds each piece, with its value.
        let mut held: Vec<Option<(RankId, ValueId)>> = vec![None; input_cells as usize];
        let mut any: Option<ValueId> = None;
        for rank in (0..schedule.nranks).map(RankId) {
            let apart = modes[0].of(rank);
            for ((cell, value), apart) in (0..).zip(results.of(rank)).zip(apart) {
                let (unit, cut) = (cell / cells.per_unit, cell % cells.per_unit);
                let Expected::Reduced { unit } =
                    schedule.collective.expected(rank, unit, schedule.root)
                else {
                    continue;
                };
                let piece = &mut held[(unit * cells.per_unit + cut) as usize];
                let (other, same) = *piece.get_or_insert((rank, *value));
                let sameness = commuted.compare(same, *value);
                if sameness == Sameness::Differs && all.witness.is_none() {
                    let orders = [same, *value].map(|v| values.tree(v));
                    let region = cells.region(cell, Buffer::Output);
                    let piece = piece_text(schedule, &region);
                    let (ranks, in_place) = ([other, rank], mode > 0);
                    all.witness = Some(Witness { ranks, piece, orders, in_place });
                }
                all.ranks = all.ranks.max(sameness);
                all.in_rank_order &= stretches[value.expr as usize].is_some();
                all.pieces = all.pieces.max(commuted.compare(*any.get_or_insert(*value), *value));
                all.modes = all.modes.max(commuted.compare(*apart, *value));
            }
        }
    }
    all
}

impl Commuted {
    /// Compares the orders of two results. Equal expressions are reduced in one order, wherever they are.
    fn compare(&self, a: ValueId, b: ValueId) -> Sameness {
        if a.expr == b.expr {
            Sameness::Exact
        } else if self.class[a.expr as usize] == self.class[b.expr as usize] {
            Sameness::Commuted
        } else {
            Sameness::Differs
        }
    }
}
