//! Groups that arithmetic on the rank tells: ranks side by side, or at equal distances.

use super::numbers::binary;
use crate::contest::tree::Number;
use roundelay_core::syntax::ast::BinOp;

/// The ranks cut in groups whose members lie at equal distances, and whose first members fill the gaps.
#[derive(Clone, Copy)]
pub(super) struct Grid {
    pub(super) stride: i64,
    pub(super) size: i64,
}

impl Grid {
    /// All grids of so many ranks.
    pub(super) fn all(nranks: u32) -> impl Iterator<Item = Self> {
        let n = i64::from(nranks);
        let divisors = move |of: i64| (1..=of).filter(move |d| of % d == 0);
        divisors(n)
            .flat_map(move |stride| divisors(n / stride).map(move |size| Self { stride, size }))
    }

    /// A rank's number in its group.
    pub(super) fn number(self, rank: i64) -> i64 {
        rank / self.stride % self.size
    }

    /// A member of a rank's group.
    pub(super) fn member(self, rank: i64, number: i64) -> i64 {
        rank + (number - self.number(rank)) * self.stride
    }

    /// The number in its group of a rank among so many.
    pub(super) fn text(self, rank: Number, nranks: u32) -> Number {
        let Self { stride, size } = self;
        let row = match stride {
            1 => rank,
            _ => binary(BinOp::Div, rank, Number::Const(stride)),
        };
        if stride * size == i64::from(nranks) {
            return row;
        }
        binary(BinOp::Rem, row, Number::Const(size))
    }
}
