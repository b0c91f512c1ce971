//! The values that expanded Rust computes with. A fault travels inside the value to the statement that
//! uses it, where the builder reports it: so the author's arithmetic reads as arithmetic.

use std::ops;
use std::sync::Arc;

use super::area::{Area, Pieces};
use super::arith::{self, Fault, IntFn};
use crate::ids::RankId;
use crate::syntax::ast::BinOp;

/// A checked 64-bit integer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Int(pub(crate) Result<i64, Fault>);

/// A truth value, or the fault of what it was computed from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flag(pub(crate) Result<bool, Fault>);

/// A rank that this rank talks to (or itself).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer(pub(crate) Result<RankId, Fault>);

/// A list of integers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct List(pub(crate) Result<Vec<i64>, Fault>);

/// A region of any rank's buffer: what `view` names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece(pub(crate) Result<Area, Fault>);

/// A region cut in pieces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Split(pub(crate) Result<Pieces, Fault>);

/// A region of one rank's buffer: an operand of `copy` and `reduce`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place(pub(crate) Result<(RankId, Area), Fault>);

/// A rank's seat in a ring.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seat(pub(crate) Result<RingAtRank, Fault>);

/// A ring as one of its ranks stands in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RingAtRank {
    /// The rank on the left.
    pub(crate) left: RankId,
    /// The rank on the right.
    pub(crate) right: RankId,
    /// The position of the rank itself.
    pub(crate) position: u32,
    /// The rank at each position.
    pub(crate) order: Arc<[RankId]>,
}

/// A rank's seats in several rings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seats(pub(crate) Result<Vec<RingAtRank>, Fault>);

impl From<i64> for Int {
    fn from(value: i64) -> Self {
        Self(Ok(value))
    }
}

impl From<u32> for Int {
    fn from(value: u32) -> Self {
        Self(Ok(i64::from(value)))
    }
}

impl From<i32> for Int {
    fn from(value: i32) -> Self {
        Self(Ok(i64::from(value)))
    }
}

impl From<usize> for Int {
    fn from(value: usize) -> Self {
        let takes = "what fits 64 signed bits";
        Self(i64::try_from(value).map_err(|_| Fault::Argument {
            function: "int",
            takes,
            got: i64::MAX,
        }))
    }
}

/// A literal, where plain Rust arithmetic would begin.
pub const fn int(value: i64) -> Int {
    Int(Ok(value))
}

/// An `if` inside an expression.
pub fn choose<T: Faulty>(
    condition: Flag,
    then: impl FnOnce() -> T,
    otherwise: impl FnOnce() -> T,
) -> T {
    match condition.0 {
        Ok(true) => then(),
        Ok(false) => otherwise(),
        Err(fault) => T::faulty(fault),
    }
}

/// Values that can carry a fault.
pub trait Faulty {
    /// The value that could not be computed.
    fn faulty(fault: Fault) -> Self;
}

macro_rules! faulty {
    ($($name:ident)*) => {$(
        impl Faulty for $name {
            fn faulty(fault: Fault) -> Self {
                Self(Err(fault))
            }
        }
    )*};
}

faulty!(Int Flag Peer List Piece Split Place Seat Seats);

macro_rules! operators {
    ($($trait:ident $method:ident $op:ident,)*) => {$(
        impl ops::$trait for Int {
            type Output = Self;
            fn $method(self, other: Self) -> Self {
                Self(self.0.and_then(|a| arith::arithmetic(BinOp::$op, a, other.0?)))
            }
        }

        impl ops::$trait<i64> for Int {
            type Output = Self;
            fn $method(self, other: i64) -> Self {
                ops::$trait::$method(self, int(other))
            }
        }

        impl ops::$trait<Int> for i64 {
            type Output = Int;
            fn $method(self, other: Int) -> Int {
                ops::$trait::$method(int(self), other)
            }
        }
    )*};
}

operators! {
    Add add Add,
    Sub sub Sub,
    Mul mul Mul,
    Div div Div,
    Rem rem Rem,
    Shl shl Shl,
    Shr shr Shr,
    BitAnd bitand BitAnd,
    BitXor bitxor BitXor,
    BitOr bitor BitOr,
}

impl ops::Neg for Int {
    type Output = Self;
    fn neg(self) -> Self {
        0 - self
    }
}

impl ops::Not for Int {
    type Output = Self;
    fn not(self) -> Self {
        Self(self.0.map(|a| !a))
    }
}

macro_rules! comparisons {
    ($($(#[$doc:meta])* $method:ident $op:ident,)*) => {
        impl Int {$(
            $(#[$doc])*
            pub fn $method(self, other: impl Into<Self>) -> Flag {
                Flag(self.0.and_then(|a| Ok(arith::compare(BinOp::$op, a, other.into().0?))))
            }
        )*}
    };
}

comparisons! {
    /// `==`
    equals Eq,
    /// `!=`
    differs Ne,
    /// `<`
    less Lt,
    /// `<=`
    at_most Le,
    /// `>`
    more Gt,
    /// `>=`
    at_least Ge,
}

impl Int {
    /// The plain number, for `rust { }` escapes; 0 where it could not be computed (the statement that
    /// uses it reports why).
    pub fn get(self) -> i64 {
        self.0.unwrap_or(0)
    }

    fn apply(self, function: IntFn, other: Self) -> Self {
        Self(self.0.and_then(|a| function.apply(a, other.0?)))
    }
}

macro_rules! int_functions {
    ($($name:ident $variant:ident ($($arg:ident)*);)*) => {$(
        #[doc = concat!("The built-in `", stringify!($name), "`.")]
        pub fn $name(x: impl Into<Int> $(, $arg: impl Into<Int>)*) -> Int {
            let other = int(0);
            $(let other = { let _ = other; $arg.into() };)*
            x.into().apply(IntFn::$variant, other)
        }
    )*};
}

int_functions! {
    log2 Log2 ();
    ceil_log2 CeilLog2 ();
    pow2 Pow2 ();
    min Min (y);
    max Max (y);
    abs Abs ();
    popcount Popcount ();
    trailing_zeros TrailingZeros ();
    bit_reverse BitReverse (bits);
}

/// The built-in `is_power_of_two`.
pub fn is_power_of_two(x: impl Into<Int>) -> Flag {
    Flag(x.into().0.map(|x| x > 0 && x & (x - 1) == 0))
}

impl From<bool> for Flag {
    fn from(value: bool) -> Self {
        Self(Ok(value))
    }
}

impl Flag {
    /// `&&`
    #[must_use]
    pub fn and(self, other: impl FnOnce() -> Self) -> Self {
        match self.0 {
            Ok(true) => other(),
            _ => self,
        }
    }

    /// `||`
    #[must_use]
    pub fn or(self, other: impl FnOnce() -> Self) -> Self {
        match self.0 {
            Ok(false) => other(),
            _ => self,
        }
    }

    /// `==` of truth values.
    #[must_use]
    pub fn equals(self, other: impl Into<Self>) -> Self {
        Self(self.0.and_then(|a| Ok(a == other.into().0?)))
    }

    /// `!=` of truth values.
    #[must_use]
    pub fn differs(self, other: impl Into<Self>) -> Self {
        !self.equals(other)
    }
}

impl ops::Not for Flag {
    type Output = Self;
    fn not(self) -> Self {
        Self(self.0.map(|a| !a))
    }
}

impl Peer {
    /// `==` of ranks.
    pub fn equals(self, other: Self) -> Flag {
        Flag(self.0.and_then(|a| Ok(a == other.0?)))
    }

    /// `!=` of ranks.
    pub fn differs(self, other: Self) -> Flag {
        !self.equals(other)
    }

    /// The region as it lies on this rank.
    pub fn on(self, piece: Piece) -> Place {
        Place(self.0.and_then(|rank| Ok((rank, piece.0?))))
    }
}

impl From<Vec<i64>> for List {
    fn from(values: Vec<i64>) -> Self {
        Self(Ok(values))
    }
}

impl List {
    /// A list of the values.
    pub fn of(values: impl IntoIterator<Item = Int>) -> Self {
        Self(values.into_iter().map(|v| v.0).collect())
    }

    /// Element `index`.
    pub fn at(&self, index: impl Into<Int>) -> Int {
        Int(self.0.as_ref().map_err(|f| *f).and_then(|list| pick(list, index.into().0?)))
    }

    /// Number of elements.
    pub fn len(&self) -> Int {
        Int(self.0.as_ref().map(|list| list.len() as i64).map_err(|f| *f))
    }

    /// The elements from last to first.
    #[must_use]
    pub fn rev(&self) -> Self {
        Self(self.0.clone().map(|list| list.into_iter().rev().collect()))
    }
}

pub(crate) fn pick<T: Clone>(list: &[T], index: i64) -> Result<T, Fault> {
    let len = list.len() as i64;
    usize::try_from(index)
        .ok()
        .and_then(|i| list.get(i).cloned())
        .ok_or(Fault::Index { index, len })
}

impl Piece {
    /// `.split(n)`
    pub fn split(self, n: impl Into<Int>) -> Split {
        Split(self.0.and_then(|area| area.split(n.into().0?)))
    }

    /// `.split([w0, w1, …])`
    pub fn split_weighted(self, weights: &List) -> Split {
        Split(self.0.and_then(|area| area.split_weighted(weights.0.as_ref().map_err(|f| *f)?)))
    }
}

impl Split {
    /// `[index]`
    pub fn at(&self, index: impl Into<Int>) -> Piece {
        Piece(self.0.as_ref().map_err(|f| *f).and_then(|pieces| pieces.at(index.into().0?)))
    }

    /// `[lo..hi]`
    pub fn range(&self, lo: impl Into<Int>, hi: impl Into<Int>) -> Piece {
        Piece(
            self.0
                .as_ref()
                .map_err(|f| *f)
                .and_then(|pieces| pieces.range(lo.into().0?, hi.into().0?)),
        )
    }

    /// Number of pieces.
    pub fn len(&self) -> Int {
        Int(self.0.as_ref().map(Pieces::len).map_err(|f| *f))
    }
}

impl RingAtRank {
    /// The position of a rank; a fault where that is not in the ring.
    pub(crate) fn position_of(&self, rank: RankId) -> Result<i64, Fault> {
        let position = self.order.iter().position(|known| *known == rank);
        position.map(|position| position as i64).ok_or(Fault::Outside { rank: rank.0 })
    }
}

impl Seat {
    pub(crate) fn ask<T>(
        &self,
        of: impl FnOnce(&RingAtRank) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        self.0.as_ref().map_err(|fault| *fault).and_then(of)
    }

    /// The peer on the left.
    pub fn left(&self) -> Peer {
        Peer(self.ask(|ring| Ok(ring.left)))
    }

    /// The peer on the right.
    pub fn right(&self) -> Peer {
        Peer(self.ask(|ring| Ok(ring.right)))
    }

    /// This rank's position, `0..nranks`.
    pub fn position(&self) -> Int {
        Int(self.ask(|ring| Ok(i64::from(ring.position))))
    }

    /// The peer at position `index`.
    pub fn at(&self, index: impl Into<Int>) -> Peer {
        Peer(self.ask(|ring| pick(&ring.order, index.into().0?)))
    }
}

impl Seats {
    /// The seat in ring `index`.
    pub fn at(&self, index: impl Into<Int>) -> Seat {
        Seat(self.0.as_ref().map_err(|f| *f).and_then(|seats| pick(seats, index.into().0?)))
    }

    /// Number of rings.
    pub fn len(&self) -> Int {
        Int(self.0.as_ref().map(|seats| seats.len() as i64).map_err(|f| *f))
    }
}
