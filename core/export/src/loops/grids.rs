//! Groups of ranks that arithmetic on the rank can express: adjacent ranks, or ranks at equal distances.

use super::ir::{Number, binary};
use roundelay_core::syntax::ast::BinOp;

/// A partition of the ranks into groups of `size` members at distance `stride`; groups between these members are
/// interleaved.
#[derive(Clone, Copy)]
pub(crate) struct Grid {
    pub(crate) stride: i64,
    pub(crate) size: i64,
}

impl Grid {
    /// Returns all grids of `nranks` ranks.
    pub(crate) fn all(nranks: u32) -> impl Iterator<Item = Self> {
        let n = i64::from(nranks);
        let divisors = move |of: i64| (1..=of).filter(move |d| of % d == 0);
        divisors(n)
            .flat_map(move |stride| divisors(n / stride).map(move |size| Self { stride, size }))
    }

    /// Returns a rank's number in its group.
    pub(crate) fn number(self, rank: i64) -> i64 {
        rank / self.stride % self.size
    }

    /// Returns the member of a rank's group with a number.
    pub(crate) fn member(self, rank: i64, number: i64) -> i64 {
        rank + (number - self.number(rank)) * self.stride
    }

    /// Returns the expression of a rank's number in its group.
    pub(crate) fn text(self, rank: Number, nranks: u32) -> Number {
        let Self { stride, size } = self;
        let row = match stride {
            1 => rank,
            _ => binary(BinOp::Div, rank, Number::int(stride)),
        };
        if stride * size == i64::from(nranks) {
            return row;
        }
        binary(BinOp::Rem, row, Number::int(size))
    }
}
