//! Expressions in relative coordinates: every value is named from the rank that runs the statement, or is not covered.

use std::fmt::Debug;

use super::rounds::{Answer, Covered as _, Naming, NotCovered, Owned, Region, WHOLE};
use super::terms::Combination;
use crate::collective::Collective;
use crate::program::ir::{Expr, Op, VarId};
use crate::schedule::Buffer;
use crate::source::Span;
use crate::syntax::ast::BinOp;
use crate::values::arith::{self, IntFn};

/// The value of an expression.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value<C: Numbers> {
    /// A number, or a known truth value.
    Number(C::Number),
    Peer(C::Peer),
    Ring(Frame),
    List(Vec<C::Number>),
    Region(Region<C::Block>),
    Pieces(Region<C::Block>, Cut),
    Place(Owned<C>),
}

/// The unit that coordinates count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Frame {
    /// Ranks.
    Rank,
    /// Positions in the ring of that parameter.
    Ring(VarId),
}

/// The cut of a region.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Cut {
    /// A cut in nranks blocks.
    Blocks,
    /// A cut at these sums of weights; the last sum is the total.
    At(Vec<u64>),
}

/// A number of one rank, as a term in what differs from rank to rank, from count to count, and from round to round.
pub(super) trait Numeric: Clone + Debug + PartialEq {
    const NRANKS: Self;

    fn int(value: i64) -> Self;

    /// Returns a number that is equal at every rank, count and round.
    fn constant(&self) -> Option<i64>;
}

impl<const K: usize> Numeric for Combination<K> {
    const NRANKS: Self = Self::unit(1);

    fn int(value: i64) -> Self {
        Self::int(value)
    }

    fn constant(&self) -> Option<i64> {
        Self::constant(*self)
    }
}

/// The numbers of a class, and what they name.
pub(super) trait Numbers: Naming {
    type Number: Numeric;

    /// The reason why an expression has no value.
    const UNKNOWN: &'static str;

    /// Refuses an expression that has no value.
    fn unknown<T>(at: Span) -> Answer<T> {
        Err(NotCovered::new(at, Self::UNKNOWN))
    }

    /// Returns the number of a rank.
    fn rank_of(scope: &mut EvalScope<Self>, peer: Self::Peer, at: Span) -> Answer<Self::Number>;

    /// Returns the rank with the number `rank`, the value of `of`.
    fn peer(
        scope: &mut EvalScope<Self>,
        rank: &Self::Number,
        of: &Expr,
        at: Span,
    ) -> Answer<Self::Peer>;

    /// Returns the result of an operator for numbers of which one is no constant.
    fn arithmetic(
        self,
        op: BinOp,
        left: &Self::Number,
        right: &Self::Number,
        at: Span,
    ) -> Answer<Self::Number>;

    /// Compares two numbers; the answer must be equal at every rank, count and round.
    fn compare(
        scope: &EvalScope<Self>,
        op: BinOp,
        left: &Self::Number,
        right: &Self::Number,
        at: Span,
    ) -> Answer<bool> {
        let between = scope.arithmetic(BinOp::Sub, left, right, at)?.constant();
        between.map(|by| arith::compare(op, by, 0)).covered(at, Self::UNKNOWN)
    }

    /// Returns the value of a function of numbers of which one is no constant.
    fn function(
        self,
        function: IntFn,
        a: &Self::Number,
        b: &Self::Number,
        at: Span,
    ) -> Answer<Self::Number>;

    /// Whether a number that is no constant is always a power of two.
    fn is_power_of_two(self, _number: &Self::Number) -> bool {
        false
    }

    /// Returns the cut of a region by `by`, the value of `of`.
    fn cut(region: &Region<Self::Block>, by: Value<Self>, of: &Expr, at: Span) -> Answer<Cut>;

    fn piece(
        region: Region<Self::Block>,
        cut: &Cut,
        index: &Self::Number,
        at: Span,
    ) -> Answer<Region<Self::Block>>;

    /// Returns the value of an expression that other classes may not have.
    fn other(scope: &mut EvalScope<Self>, expr: &Expr) -> Answer<Value<Self>>;
}

/// The state of the walk that expressions read.
#[derive(Debug)]
pub(super) struct EvalScope<C: Numbers> {
    pub(super) class: C,
    pub(super) collective: Collective,
    pub(super) vars: Vec<Option<Value<C>>>,
    /// The rounds of the statement.
    pub(super) rounds: C::Rounds,
}

impl<C: Numbers> EvalScope<C> {
    pub(super) fn number(&mut self, expr: &Expr) -> Answer<C::Number> {
        match self.eval(expr)? {
            Value::Number(number) => Ok(number),
            _ => C::unknown(expr.span),
        }
    }

    /// Returns the truth value of a condition, which must be equal at every rank, count and round.
    pub(super) fn holds(&mut self, expr: &Expr) -> Answer<bool> {
        let value = self.number(expr)?.constant();
        Ok(value.covered(expr.span, C::UNKNOWN)? != 0)
    }

    pub(super) fn peer(&mut self, expr: &Expr) -> Answer<C::Peer> {
        match self.eval(expr)? {
            Value::Peer(peer) => Ok(peer),
            _ => C::unknown(expr.span),
        }
    }

    pub(super) fn place(&mut self, expr: &Expr) -> Answer<Owned<C>> {
        match self.eval(expr)? {
            Value::Place(place) => Ok(place),
            _ => C::unknown(expr.span),
        }
    }

    pub(super) fn region(&mut self, expr: &Expr) -> Answer<Region<C::Block>> {
        match self.eval(expr)? {
            Value::Region(region) => Ok(region),
            _ => C::unknown(expr.span),
        }
    }

    pub(super) fn eval(&mut self, expr: &Expr) -> Answer<Value<C>> {
        let (span, args) = (expr.span, &expr.args);
        let truth = |holds: bool| Value::Number(C::Number::int(holds.into()));
        Ok(match expr.op {
            Op::Int(value) => Value::Number(small::<C>(value, span)?),
            Op::Var(var) => self.vars[var.index()].clone().covered(span, C::UNKNOWN)?,
            Op::Rank => Value::Number(C::rank_of(self, C::OWN, span)?),
            Op::Nranks => Value::Number(C::Number::NRANKS),
            Op::Local => Value::Peer(C::OWN),
            Op::Input => Value::Region(self.buffer(Buffer::Input)),
            Op::Output => Value::Region(self.buffer(Buffer::Output)),
            Op::Not => truth(!self.holds(&args[0])?),
            Op::Neg => {
                let value = self.number(&args[0])?;
                Value::Number(self.arithmetic(BinOp::Sub, &C::Number::int(0), &value, span)?)
            }
            Op::Binary(op) => self.binary(op, &args[0], &args[1], span)?,
            Op::If => {
                let chosen = if self.holds(&args[0])? { &args[1] } else { &args[2] };
                self.eval(chosen)?
            }
            Op::List => Value::List(args.iter().map(|i| self.number(i)).collect::<Answer<_>>()?),
            Op::Function(function) => {
                let a = self.number(&args[0])?;
                let b = args.get(1).map_or(Ok(C::Number::int(0)), |arg| self.number(arg))?;
                let constants = a.constant().zip(b.constant());
                Value::Number(match constants.and_then(|(a, b)| function.apply(a, b).ok()) {
                    Some(value) => small::<C>(value, span)?,
                    None => self.class.function(function, &a, &b, span)?,
                })
            }
            Op::IsPowerOfTwo => {
                let value = self.number(&args[0])?;
                let known = value.constant().map(|value| value > 0 && value & (value - 1) == 0);
                let always = || self.class.is_power_of_two(&value).then_some(true);
                truth(
                    known.or_else(always).ok_or_else(|| {
                        NotCovered::new(span, "this does not hold of every nranks")
                    })?,
                )
            }
            Op::Peer => {
                let rank = self.number(&args[0])?;
                Value::Peer(C::peer(self, &rank, &args[0], span)?)
            }
            Op::RankOf => {
                let peer = self.peer(&args[0])?;
                Value::Number(C::rank_of(self, peer, span)?)
            }
            Op::Split => {
                let region = self.region(&args[0])?;
                let by = self.eval(&args[1])?;
                let cut = C::cut(&region, by, &args[1], span)?;
                Value::Pieces(region, cut)
            }
            Op::Piece => {
                let index = self.number(&args[1])?;
                match self.eval(&args[0])? {
                    Value::Pieces(region, cut) => {
                        Value::Region(C::piece(region, &cut, &index, span)?)
                    }
                    _ => return C::unknown(span),
                }
            }
            Op::On => {
                let owner = self.peer(&args[0])?;
                Value::Place(Owned { owner, region: self.region(&args[1])? })
            }
            _ => C::other(self, expr)?,
        })
    }

    fn buffer(&self, buffer: Buffer) -> Region<C::Block> {
        let many = match buffer {
            Buffer::Input => {
                matches!(self.collective, Collective::ReduceScatter | Collective::AllToAll)
            }
            _ => matches!(self.collective, Collective::AllGather | Collective::AllToAll),
        };
        Region { buffer, many, outer: WHOLE, block: None, inner: WHOLE }
    }

    fn binary(&mut self, op: BinOp, left: &Expr, right: &Expr, span: Span) -> Answer<Value<C>> {
        if let BinOp::And | BinOp::Or = op {
            let decided = op == BinOp::Or;
            let left = self.holds(left)?;
            let holds = if left == decided { decided } else { self.holds(right)? };
            return Ok(Value::Number(C::Number::int(holds.into())));
        }
        match (self.eval(left)?, self.eval(right)?) {
            (Value::Number(l), Value::Number(r)) => {
                Ok(Value::Number(if op.precedence() > BinOp::Eq.precedence() {
                    self.arithmetic(op, &l, &r, span)?
                } else {
                    C::Number::int(C::compare(self, op, &l, &r, span)?.into())
                }))
            }
            (Value::Peer(_), Value::Peer(_)) => {
                Err(NotCovered::new(span, "two peers are compared"))
            }
            _ => C::unknown(span),
        }
    }

    pub(super) fn arithmetic(
        &self,
        op: BinOp,
        left: &C::Number,
        right: &C::Number,
        span: Span,
    ) -> Answer<C::Number> {
        let Some((l, r)) = left.constant().zip(right.constant()) else {
            return self.class.arithmetic(op, left, right, span);
        };
        let value = arith::arithmetic(op, l, r)
            .map_err(|fault| NotCovered::new(span, fault.to_string()))?;
        small::<C>(value, span)
    }
}

fn small<C: Numbers>(value: i64, span: Span) -> Answer<C::Number> {
    if value.abs() > 1 << 20 {
        return Err(NotCovered::new(span, "this number is too large to reason about"));
    }
    Ok(C::Number::int(value))
}
