//! Contests between MPI and the library: the calls for which there can be one, and the ranks' agreement on the times.

use roundelay::{Call, Error, Rank, ReduceOp};
use roundelay_interposer::{Contests, Shape, Verdict};

use crate::call::MpiCollective;

/// Whether a result has the same bits whoever makes the call, where both combine two values to the same bits: data is
/// only moved, or its values combine exactly or in one order. Else a program would get other bits from one call to the
/// next.
pub(crate) fn is_same_from_both(call: &Call, nranks: u32) -> bool {
    let Call { collective, dtype, op, .. } = *call;
    let sums = matches!(op, ReduceOp::Sum | ReduceOp::Prod);
    !collective.reduces() || !dtype.is_float() || sums && nranks == 2
}

/// Has the ranks agree on the times, each the slowest rank's, and settles the shape.
///
/// # Errors
/// The errors of a call.
pub(crate) fn agree(
    contests: &Contests<MpiCollective>,
    shape: Shape<MpiCollective>,
    by_table: bool,
    rank: &mut Rank<'_>,
) -> Result<Verdict, Error> {
    let mut times = contests.times(shape);
    rank.all_reduce(&mut times, ReduceOp::Max)?;
    Ok(contests.decide(shape, times, by_table))
}
