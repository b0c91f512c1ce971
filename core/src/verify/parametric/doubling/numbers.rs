//! Expressions in a loop over the bits k of nranks: numbers are sums of a few known quantities with integer factors,
//! and every value is named by them, or is not covered.

use super::{Blocks, Doubling, Region, Shape};
use crate::program::ir::{Expr, Op};
use crate::source::Span;
use crate::syntax::ast::BinOp;
use crate::values::arith::IntFn;
use crate::verify::parametric::eval::{Cut, EvalScope, Numbers, Value};
use crate::verify::parametric::rounds::{Answer, Covered as _, Naming as _, NotCovered};
use crate::verify::parametric::terms::Combination;

/// A rank, as the rank that runs the statement names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::verify::parametric) enum RoundSeat {
    /// The rank itself.
    Own,
    /// `rank ^ 2^k`, for a power of two nranks.
    Partner,
    /// `(rank + 2^k) % nranks`
    Ahead,
    /// `(rank - 2^k) % nranks`
    Behind,
}

use RoundSeat::{Ahead, Behind, Own, Partner};

impl RoundSeat {
    /// Returns the seat at which the rank at seat `to` sees that rank.
    pub(super) fn seen(self, to: Self) -> Option<Self> {
        match (self, to) {
            (seat, Own) => Some(seat),
            (Own, to) => Some(Doubling::back(to)),
            (seat, to) => (seat == to).then_some(Own),
        }
    }
}

/// A sum of quantities that are not the same for all ranks, rank counts and rounds: those below, and three of each
/// seat.
pub(in crate::verify::parametric) type Term = Combination<19>;

const NRANKS: Term = Term::unit(1);
/// The number of rounds: `ceil_log2(nranks)`.
pub(super) const ROUNDS: Term = Term::unit(2);
/// The round, k.
pub(super) const ROUND: Term = Term::unit(3);
/// `2^k`, which is below nranks in every round.
const DISTANCE: Term = Term::unit(4);
/// `min(2^k, nranks - 2^k)`, where nranks may be any number.
const LACKING: Term = Term::unit(5);
/// `rank % 2^k`, which is the partner's too.
const LOW: Term = Term::unit(6);

/// Returns the number of a rank.
const fn rank(seat: RoundSeat) -> Term {
    Term::unit(7 + seat as usize)
}

/// Returns the number of a rank's group: `rank / 2^k`.
const fn group(seat: RoundSeat) -> Term {
    Term::unit(11 + seat as usize)
}

/// Returns `min(seat + lacking, nranks)`: the end of as many blocks, or of all blocks.
const fn end(seat: RoundSeat) -> Term {
    Term::unit(15 + seat as usize)
}

/// Returns the seat whose quantity `of` this term is.
fn seat_by(of: impl Fn(RoundSeat) -> Term, term: Term) -> Option<RoundSeat> {
    [Own, Partner, Ahead, Behind].into_iter().find(|seat| of(*seat) == term)
}

/// Returns the seat whose rank this number is.
fn seat(term: Term) -> Option<RoundSeat> {
    seat_by(rank, term)
}

/// Returns the seat whose rank this number is, if the rank and its partner are meant.
fn paired(term: Term) -> Option<RoundSeat> {
    seat(term).filter(|seat| matches!(seat, Own | Partner))
}

/// Returns the residue of this term modulo nranks.
fn residue(term: Term) -> Option<Term> {
    let term = term.with(1, 0);
    let far = [(rank(Own) + DISTANCE, Ahead), (rank(Own) - DISTANCE, Behind)];
    let far = far.into_iter().find(|(shifted, _)| *shifted == term);
    far.map(|(_, seat)| seat).or_else(|| seat(term)).map(rank)
}

/// Returns this term with bit k inverted, for a power of two nranks: of a rank, or of the start of its group.
fn flipped(term: Term) -> Option<Term> {
    let other = |term| paired(term).map(|seat| rank(if seat == Own { Partner } else { Own }));
    other(term).or_else(|| Some(other(term + LOW)? - LOW))
}

impl Numbers for Doubling {
    type Number = Term;

    const UNKNOWN: &'static str = "this is no known term in the bits of nranks";

    fn rank_of(_scope: &mut EvalScope<Self>, peer: RoundSeat, _at: Span) -> Answer<Term> {
        Ok(rank(peer))
    }

    fn peer(_scope: &mut EvalScope<Self>, rank: &Term, _of: &Expr, at: Span) -> Answer<RoundSeat> {
        let what = "neither the rank, nor `rank ^ 2^k`, nor `(rank + 2^k) % nranks` or its inverse";
        seat(*rank).covered(at, what)
    }

    fn arithmetic(self, op: BinOp, left: &Term, right: &Term, at: Span) -> Answer<Term> {
        let (l, r) = (*left, *right);
        let term = match (op, l.constant(), r.constant()) {
            (BinOp::Add, ..) => Some(l + r),
            (BinOp::Sub, ..) => Some(l - r),
            (BinOp::Mul, Some(by), _) => Some(r * by),
            (BinOp::Mul, _, Some(by)) => Some(l * by),
            (BinOp::Mul | BinOp::BitXor, ..) if l == DISTANCE && r != DISTANCE => {
                return self.arithmetic(op, right, left, at);
            }
            // The first rank of a group.
            (BinOp::Mul, ..) if r == DISTANCE => seat_by(group, l).map(|seat| rank(seat) - LOW),
            (BinOp::Shl, Some(1), _) if r == ROUND => Some(DISTANCE),
            (BinOp::Rem, ..) if r == NRANKS => residue(l),
            (BinOp::Rem, ..) if r == DISTANCE => paired(l).map(|_| LOW),
            (BinOp::Div, ..) if r == DISTANCE => paired(l).map(group),
            (BinOp::BitXor, ..) if r == DISTANCE && !self.powers_of_two => {
                let what = "such a rank is always there only where nranks is a power of two: \
                            state it by `require is_power_of_two(nranks)`";
                return Err(NotCovered::new(at, what));
            }
            (BinOp::BitXor, ..) if r == DISTANCE => flipped(l),
            _ => None,
        };
        term.filter(|term| term.is_below(1 << 20)).covered(at, Self::UNKNOWN)
    }

    fn function(self, function: IntFn, a: &Term, b: &Term, at: Span) -> Answer<Term> {
        let term = match function {
            IntFn::CeilLog2 if *a == NRANKS => Some(ROUNDS),
            IntFn::Log2 if *a == NRANKS && self.powers_of_two => Some(ROUNDS),
            IntFn::Pow2 if *a == ROUND => Some(DISTANCE),
            IntFn::Min => self.least(*a, *b).or_else(|| self.least(*b, *a)),
            _ => None,
        };
        term.covered(at, Self::UNKNOWN)
    }

    fn is_power_of_two(self, number: &Term) -> bool {
        self.powers_of_two && *number == NRANKS
    }

    fn cut(region: &Region, by: Value<Self>, _of: &Expr, at: Span) -> Answer<Cut> {
        let (whole, by) = (region.block.is_none(), by == Value::Number(NRANKS));
        let sum = "parts of a sum, in a program that asks for the bits of nranks";
        let what = if region.many { "a cut other than in the blocks of the ranks" } else { sum };
        (region.many && whole && by).then_some(Cut::Blocks).covered(at, what)
    }

    fn piece(region: Region, _cut: &Cut, index: &Term, at: Span) -> Answer<Region> {
        let seat = seat(*index).covered(at, "this is not the block of a known rank")?;
        Ok(Region { block: Some(Self::block_of(seat)), ..region })
    }

    fn other(scope: &mut EvalScope<Self>, expr: &Expr) -> Answer<Value<Self>> {
        let at = expr.span;
        let (Op::Pieces, [of, lo, hi]) = (expr.op, &expr.args[..]) else {
            return Self::unknown(at);
        };
        let Value::Pieces(region, _) = scope.eval(of)? else { return Self::unknown(at) };
        let block = scope.class.blocks(scope.number(lo)?, scope.number(hi)?, at)?;
        Ok(Value::Region(Region { block, ..region }))
    }
}

impl Doubling {
    /// Returns the number of blocks that a round may add: `2^k` for a power of two nranks.
    fn lacking(self) -> Term {
        if self.powers_of_two { DISTANCE } else { LACKING }
    }

    /// Returns the smaller of two terms that are known together.
    fn least(self, a: Term, b: Term) -> Option<Term> {
        if a == DISTANCE && b == NRANKS - DISTANCE {
            return Some(self.lacking());
        }
        seat(a - self.lacking()).filter(|_| b == NRANKS).map(end)
    }

    /// Returns the blocks from `lo` up to, and without, `hi`: all, or some.
    fn blocks(self, lo: Term, hi: Term, at: Span) -> Answer<Option<Blocks>> {
        let group = (self.powers_of_two && hi - lo == DISTANCE).then_some(lo + LOW);
        let (shape, seat) = match seat(lo) {
            Some(seat) => (Shape::Front, (hi == end(seat)).then_some(seat)),
            None if (lo, hi) == (Term::ZERO, NRANKS) => return Ok(None),
            None if lo == Term::ZERO => (Shape::Wrapped, self.beyond(hi)),
            None => (Shape::Group, group.and_then(paired)),
        };
        let seat = seat.covered(at, "neither an aligned group of 2^k blocks nor a run")?;
        Ok(Some(Blocks { shape, seat }))
    }

    /// Returns the seat of which `term` is the rank plus the blocks that are lacking minus nranks.
    pub(super) fn beyond(self, term: Term) -> Option<RoundSeat> {
        seat(term + NRANKS - self.lacking())
    }
}
