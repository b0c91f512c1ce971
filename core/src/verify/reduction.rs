//! The order of reduction: whether every rank adds up in the same order, and whether every piece does. Then
//! floating point results are the same on all ranks, and do not depend on count and chunking.

use super::orders::Results;
use super::piece::piece_text;
use super::values::{Commuted, ValueId, Values};
use crate::collective::Expected;
use crate::ids::RankId;
use crate::schedule::Buffer;

/// How far two orders of reduction agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sameness {
    /// They agree operand by operand.
    Exact,
    /// They agree but for the order of two operands, which changes no result of the built-in ops.
    Commuted,
    /// They differ, and so may the rounding of floats.
    Differs,
}

/// How far the orders agree in which the results of a schedule are reduced, in every mode in which it may run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reduction {
    /// How far the ranks agree that hold the same element.
    pub ranks: Sameness,
    /// How far the pieces of the buffer agree: where they do, an element's result does not depend on the count, nor
    /// on how a message is cut into chunks.
    pub pieces: Sameness,
    /// How far a run in place and one out of place agree, element by element of each rank's output.
    pub modes: Sameness,
    /// Whether each result is the reduction of all ranks' contributions in the order of the ranks, so that an op need
    /// not commute.
    pub in_rank_order: bool,
    /// Two ranks that differ, where any do.
    pub witness: Option<Witness>,
}

/// Two ranks that hold the same element, reduced in different orders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Witness {
    /// The two ranks.
    pub ranks: [RankId; 2],
    /// The piece of the output that they both hold, in words.
    pub piece: String,
    /// The order of each of the two, such as `((0 1) 2)`: the outermost reduce comes last.
    pub orders: [String; 2],
    /// Whether they differ in place only, and agree out of place.
    pub in_place: bool,
}

/// What the outputs of a right replay say, mode by mode: the weakest of all modes.
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
        // The first rank that holds each piece, with what it holds.
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
    /// Results of the same expression are reduced in the same order, wherever they are.
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
