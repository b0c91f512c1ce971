//! Expressions in a loop over the bits k of nranks: every value is a term of known quantities, or is not covered.

use super::program::{Blocks, SeatPlace, has_blocks};
use super::terms::{Quantity, RoundSeat, Term};
use crate::collective::Collective;
use crate::program::ir::{Expr, Op};
use crate::schedule::Buffer;
use crate::source::Span;
use crate::syntax::ast::BinOp;
use crate::values::arith::{self, IntFn};
use crate::verify::parametric::rounds::NotCovered;

/// The value of an expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum TermValue {
    /// A number, or a known truth value.
    Number(Term),
    Peer(RoundSeat),
    Region(Buffer, Blocks),
    /// The nranks blocks of a buffer.
    Pieces(Buffer),
    Place(SeatPlace),
}

/// The state of the walk that expressions read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TermScope {
    pub(super) collective: Collective,
    /// Whether nranks is a power of two.
    pub(super) powers_of_two: bool,
    pub(super) vars: Vec<Option<TermValue>>,
    /// For each scratch buffer whether it has nranks blocks.
    pub(super) scratch: Vec<bool>,
}

type Answer<T> = Result<T, NotCovered>;

fn unknown<T>(span: Span) -> Answer<T> {
    Err(NotCovered::new(span, "this is no known term in the bits of nranks"))
}

impl TermScope {
    pub(super) fn number(&self, expr: &Expr) -> Answer<Term> {
        match self.eval(expr)? {
            TermValue::Number(term) => Ok(term),
            _ => unknown(expr.span),
        }
    }

    pub(super) fn peer(&self, expr: &Expr) -> Answer<RoundSeat> {
        match self.eval(expr)? {
            TermValue::Peer(seat) => Ok(seat),
            _ => unknown(expr.span),
        }
    }

    pub(super) fn place(&self, expr: &Expr) -> Answer<SeatPlace> {
        match self.eval(expr)? {
            TermValue::Place(place) => Ok(place),
            _ => unknown(expr.span),
        }
    }

    pub(super) fn region(&self, expr: &Expr) -> Answer<(Buffer, Blocks)> {
        match self.eval(expr)? {
            TermValue::Region(buffer, blocks) => Ok((buffer, blocks)),
            _ => unknown(expr.span),
        }
    }

    /// Returns the truth value of a condition that is alike for all ranks, rank counts and rounds.
    pub(super) fn holds(&self, expr: &Expr) -> Answer<bool> {
        match self.number(expr)?.constant() {
            Some(value) => Ok(value != 0),
            None => unknown(expr.span),
        }
    }

    /// Returns the number of blocks that a round may add: `2^k` for a power of two nranks.
    fn lacking(&self) -> Quantity {
        if self.powers_of_two { Quantity::Distance } else { Quantity::Lacking }
    }

    pub(super) fn has_blocks(&self, buffer: Buffer) -> bool {
        has_blocks(self.collective, &self.scratch, buffer)
    }

    pub(super) fn eval(&self, expr: &Expr) -> Answer<TermValue> {
        let (span, args) = (expr.span, &expr.args);
        let number =
            |term: Option<Term>| term.map_or_else(|| unknown(span), |t| Ok(TermValue::Number(t)));
        match expr.op {
            Op::Int(value) if value.abs() <= 1 << 20 => number(Some(Term::int(value))),
            Op::Var(var) => self.vars[var.index()].clone().map_or_else(|| unknown(span), Ok),
            Op::Rank => number(Some(Term::rank(RoundSeat::Own))),
            Op::Nranks => number(Some(Term::of(Quantity::Nranks))),
            Op::Local => Ok(TermValue::Peer(RoundSeat::Own)),
            Op::Input => Ok(TermValue::Region(Buffer::Input, Blocks::All)),
            Op::Output => Ok(TermValue::Region(Buffer::Output, Blocks::All)),
            Op::Neg => number(Term::int(0).plus(&self.number(&args[0])?, -1)),
            Op::Not => number(Some(Term::int((!self.holds(&args[0])?).into()))),
            Op::Binary(op) => number(Some(self.binary(op, &args[0], &args[1], span)?)),
            Op::If => self.eval(if self.holds(&args[0])? { &args[1] } else { &args[2] }),
            Op::Function(function) => {
                let first = self.number(&args[0])?;
                let second = args.get(1).map_or(Ok(Term::int(0)), |arg| self.number(arg))?;
                number(Some(self.function(function, &first, &second, span)?))
            }
            Op::IsPowerOfTwo => {
                let term = self.number(&args[0])?;
                let known = term.constant().map(|value| value > 0 && value & (value - 1) == 0);
                let nranks = self.powers_of_two && term == Term::of(Quantity::Nranks);
                match known.or(nranks.then_some(true)) {
                    Some(holds) => number(Some(Term::int(holds.into()))),
                    None => Err(NotCovered::new(span, "this does not hold of every nranks")),
                }
            }
            Op::Peer => match self.number(&args[0])?.seat() {
                Some(seat) => Ok(TermValue::Peer(seat)),
                None => Err(NotCovered::new(
                    span,
                    "neither the rank, nor `rank ^ 2^k`, nor `(rank + 2^k) % nranks` or its inverse",
                )),
            },
            Op::RankOf => number(Some(Term::rank(self.peer(&args[0])?))),
            Op::Split => {
                let (buffer, blocks) = self.region(&args[0])?;
                let by = self.number(&args[1])?;
                let whole = blocks == Blocks::All && self.has_blocks(buffer);
                if whole && by == Term::of(Quantity::Nranks) {
                    return Ok(TermValue::Pieces(buffer));
                }
                let what = if self.has_blocks(buffer) {
                    "a cut other than in the blocks of the ranks"
                } else {
                    "parts of a sum, in a program that asks for the bits of nranks"
                };
                Err(NotCovered::new(span, what))
            }
            Op::Piece => match (self.eval(&args[0])?, self.number(&args[1])?.seat()) {
                (TermValue::Pieces(buffer), Some(seat)) => {
                    Ok(TermValue::Region(buffer, Blocks::One(seat)))
                }
                _ => Err(NotCovered::new(span, "this is not the block of a known rank")),
            },
            Op::Pieces => match self.eval(&args[0])? {
                TermValue::Pieces(buffer) => {
                    let (lo, hi) = (self.number(&args[1])?, self.number(&args[2])?);
                    let blocks = self.blocks(&lo, &hi);
                    let blocks = blocks.ok_or_else(|| {
                        NotCovered::new(span, "neither an aligned group of 2^k blocks nor a run")
                    })?;
                    Ok(TermValue::Region(buffer, blocks))
                }
                _ => unknown(span),
            },
            Op::On => {
                let owner = self.peer(&args[0])?;
                let (buffer, blocks) = self.region(&args[1])?;
                Ok(TermValue::Place(SeatPlace { owner, buffer, blocks }))
            }
            _ => unknown(span),
        }
    }

    /// Returns the blocks from `lo` up to, and without, `hi`.
    fn blocks(&self, lo: &Term, hi: &Term) -> Option<Blocks> {
        let many = hi.plus(lo, -1)?;
        if let Some(seat) = lo.seat() {
            return hi.is(&[(Quantity::End(seat), 1)]).then_some(Blocks::Front(seat));
        }
        if lo.constant() == Some(0) {
            if *hi == Term::of(Quantity::Nranks) {
                return Some(Blocks::All);
            }
            return self.beyond(hi).map(Blocks::Wrapped);
        }
        let seat = lo.plus(&Term::of(Quantity::Low), 1)?.seat()?;
        let group = many == Term::of(Quantity::Distance) && self.powers_of_two;
        (group && matches!(seat, RoundSeat::Own | RoundSeat::Partner))
            .then_some(Blocks::Group(seat))
    }

    /// Returns the seat of which `term` is the rank plus the blocks that are lacking minus nranks.
    fn beyond(&self, term: &Term) -> Option<RoundSeat> {
        let rest = term.plus(&Term::of(Quantity::Nranks), 1)?;
        rest.plus(&Term::of(self.lacking()), -1)?.seat()
    }

    /// Returns the seat whose run of blocks passes the last block exactly where the condition holds.
    pub(super) fn wraps(&self, condition: &Expr) -> Answer<Option<RoundSeat>> {
        let Op::Binary(op @ (BinOp::Gt | BinOp::Lt)) = condition.op else { return Ok(None) };
        let (left, right) = (self.number(&condition.args[0])?, self.number(&condition.args[1])?);
        let more = if op == BinOp::Gt { left.plus(&right, -1) } else { right.plus(&left, -1) };
        Ok(more.and_then(|more| self.beyond(&more)))
    }

    fn binary(&self, op: BinOp, left: &Expr, right: &Expr, span: Span) -> Answer<Term> {
        if let BinOp::And | BinOp::Or = op {
            let decided = op == BinOp::Or;
            let left = self.holds(left)?;
            let holds = if left == decided { decided } else { self.holds(right)? };
            return Ok(Term::int(holds.into()));
        }
        let (l, r) = (self.number(left)?, self.number(right)?);
        let compares = op.precedence() <= BinOp::Eq.precedence();
        if compares {
            let between = l.plus(&r, -1).and_then(|between| between.constant());
            return match between {
                Some(between) => Ok(Term::int(arith::compare(op, between, 0).into())),
                None => unknown(span),
            };
        }
        if let (Some(a), Some(b)) = (l.constant(), r.constant()) {
            let value = arith::arithmetic(op, a, b)
                .map_err(|fault| NotCovered::new(span, fault.to_string()))?;
            return if value.abs() <= 1 << 20 { Ok(Term::int(value)) } else { unknown(span) };
        }
        let distance = Term::of(Quantity::Distance);
        let term = match op {
            BinOp::Add => l.plus(&r, 1),
            BinOp::Sub => l.plus(&r, -1),
            BinOp::Mul => match (l.constant(), r.constant()) {
                (Some(by), _) => Term::int(0).plus(&r, by),
                (_, Some(by)) => Term::int(0).plus(&l, by),
                _ if r == distance => l.of_group(),
                _ if l == distance => r.of_group(),
                _ => None,
            },
            BinOp::Shl if l.constant() == Some(1) && r == Term::of(Quantity::Round) => {
                Some(distance)
            }
            BinOp::Rem if r == Term::of(Quantity::Nranks) => l.residue(),
            BinOp::Rem | BinOp::Div if r == distance => {
                let seat =
                    l.seat().filter(|seat| matches!(seat, RoundSeat::Own | RoundSeat::Partner));
                let part =
                    |seat| if op == BinOp::Rem { Quantity::Low } else { Quantity::Group(seat) };
                seat.map(|seat| Term::of(part(seat)))
            }
            BinOp::BitXor if r == distance || l == distance => {
                if !self.powers_of_two {
                    let what = "such a rank is always there only where nranks is a power of two: \
                                state it by `require is_power_of_two(nranks)`";
                    return Err(NotCovered::new(span, what));
                }
                if r == distance { l.flipped() } else { r.flipped() }
            }
            _ => None,
        };
        term.map_or_else(|| unknown(span), Ok)
    }

    fn function(&self, function: IntFn, a: &Term, b: &Term, span: Span) -> Answer<Term> {
        if let (Some(a), Some(b)) = (a.constant(), b.constant()) {
            let value = function.apply(a, b).ok().filter(|value| value.abs() <= 1 << 20);
            return value.map_or_else(|| unknown(span), |value| Ok(Term::int(value)));
        }
        let nranks = Term::of(Quantity::Nranks);
        let term = match function {
            IntFn::CeilLog2 if *a == nranks => Some(Term::of(Quantity::Rounds)),
            IntFn::Log2 if *a == nranks && self.powers_of_two => Some(Term::of(Quantity::Rounds)),
            IntFn::Pow2 if *a == Term::of(Quantity::Round) => Some(Term::of(Quantity::Distance)),
            IntFn::Min => self.least(a, b).or_else(|| self.least(b, a)),
            _ => None,
        };
        term.map_or_else(|| unknown(span), Ok)
    }

    /// Returns the smaller of two terms that are known together.
    fn least(&self, a: &Term, b: &Term) -> Option<Term> {
        let nranks = (Quantity::Nranks, 1);
        if a.is(&[(Quantity::Distance, 1)]) && b.is(&[nranks, (Quantity::Distance, -1)]) {
            return Some(Term::of(self.lacking()));
        }
        let seat = a.plus(&Term::of(self.lacking()), -1)?.seat()?;
        b.is(&[nranks]).then(|| Term::of(Quantity::End(seat)))
    }
}
