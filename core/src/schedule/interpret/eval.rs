//! Expressions: every value of the language, and every fault at the exact expression that it stands in.

use std::rc::Rc;

use super::Run;
use crate::check::hir::{Expr, ExprKind};
use crate::diagnostics::{Code, Finding};
use crate::ids::{RankId, SpanId};
use crate::schedule::Buffer;
use crate::schedule::area::{Area, Pieces};
use crate::schedule::arith::{self, Fault};
use crate::schedule::builder::{Builder, Stop};
use crate::schedule::ring::Ring;
use crate::schedule::value::{Place, Seat, pick};
use crate::source::Span;
use crate::syntax::ast::{BinOp, UnOp};

/// A value of the language. Faults never get this far.
#[derive(Clone, Debug)]
pub(super) enum Value {
    Unset,
    Int(i64),
    Bool(bool),
    Peer(RankId),
    Ring(Seat),
    List(Rc<[i64]>),
    Region(Area),
    Pieces(Pieces),
    Place(RankId, Area),
}
/// The checker has seen to it that values have the types their places ask for.
macro_rules! typed {
    ($name:ident, $variant:ident, $ty:ty) => {
        pub(super) fn $name(&mut self, b: &mut Builder<'_>, expr: &'a Expr) -> Result<$ty, Stop> {
            match self.eval(b, expr)? {
                Value::$variant(value) => Ok(value),
                other => unreachable!("checked as {:?}, is {other:?}", expr.ty),
            }
        }
    };
}

impl<'a> Run<'a> {
    typed!(bool, Bool, bool);
    typed!(peer, Peer, RankId);
    typed!(list, List, Rc<[i64]>);
    typed!(region, Region, Area);

    pub(super) fn int(&mut self, b: &mut Builder<'_>, expr: &'a Expr) -> Result<i64, Stop> {
        match &*expr.kind {
            ExprKind::Int(value) => Ok(*value),
            ExprKind::Binary(op, l, r) if op.precedence() > BinOp::Eq.precedence() => {
                let (l, r) = (self.int(b, l)?, self.int(b, r)?);
                self.settle(b, expr.span, arith::arithmetic(*op, l, r))
            }
            _ => match self.eval(b, expr)? {
                Value::Int(value) => Ok(value),
                other => unreachable!("checked as {:?}, is {other:?}", expr.ty),
            },
        }
    }

    /// The value, or the fault reported at its expression.
    pub(super) fn settle<T>(
        &self,
        b: &mut Builder<'_>,
        span: Span,
        value: Result<T, Fault>,
    ) -> Result<T, Stop> {
        value.map_err(|fault| {
            let mut finding = fault.finding(SpanId(self.at));
            finding.exact = Some(span);
            b.fail(finding)
        })
    }

    pub(super) fn places(
        &mut self,
        b: &mut Builder<'_>,
        exprs: &'a [Expr],
    ) -> Result<Vec<Place>, Stop> {
        exprs.iter().map(|expr| self.place(b, expr)).collect()
    }

    pub(super) fn place(&mut self, b: &mut Builder<'_>, expr: &'a Expr) -> Result<Place, Stop> {
        match &*expr.kind {
            ExprKind::On(peer, region) => {
                let peer = self.peer(b, peer)?;
                Ok(Place(Ok((peer, self.region(b, region)?))))
            }
            _ => match self.eval(b, expr)? {
                Value::Place(peer, area) => Ok(Place(Ok((peer, area)))),
                other => unreachable!("checked as a place, is {other:?}"),
            },
        }
    }

    /// Applies `then` to pieces, without a copy of those that a variable holds.
    pub(super) fn with_pieces<T>(
        &mut self,
        b: &mut Builder<'_>,
        expr: &'a Expr,
        then: impl FnOnce(&Pieces) -> T,
    ) -> Result<T, Stop> {
        if let ExprKind::Var(var) = &*expr.kind
            && let Value::Pieces(pieces) = &self.vars[var.0 as usize]
        {
            return Ok(then(pieces));
        }
        match self.eval(b, expr)? {
            Value::Pieces(pieces) => Ok(then(&pieces)),
            other => unreachable!("checked as pieces, is {other:?}"),
        }
    }

    pub(super) fn eval(&mut self, b: &mut Builder<'_>, expr: &'a Expr) -> Result<Value, Stop> {
        let span = expr.span;
        Ok(match &*expr.kind {
            ExprKind::Int(value) => Value::Int(*value),
            ExprKind::Bool(value) => Value::Bool(*value),
            ExprKind::Var(var) => self.vars[var.0 as usize].clone(),
            ExprKind::Rank => Value::Int(i64::from(self.rank.0)),
            ExprKind::Nranks => Value::Int(b.nranks().get()),
            ExprKind::Local => Value::Peer(self.rank),
            ExprKind::Input => Value::Region(b.buffer(Buffer::Input)),
            ExprKind::Output => Value::Region(b.buffer(Buffer::Output)),
            ExprKind::Unary(op, operand) => match (op, self.eval(b, operand)?) {
                (UnOp::Not, Value::Bool(value)) => Value::Bool(!value),
                (UnOp::Not, Value::Int(value)) => Value::Int(!value),
                (_, Value::Int(value)) => {
                    Value::Int(self.settle(b, span, arith::arithmetic(BinOp::Sub, 0, value))?)
                }
                (_, other) => unreachable!("checked as a number, is {other:?}"),
            },
            ExprKind::Binary(op, left, right) => self.binary(b, *op, left, right, span)?,
            ExprKind::If(condition, then, otherwise) => {
                let chosen = if self.bool(b, condition)? { then } else { otherwise };
                self.eval(b, chosen)?
            }
            ExprKind::List(items) => {
                let items = items.iter().map(|i| self.int(b, i)).collect::<Result<Rc<[_]>, _>>()?;
                Value::List(items)
            }
            ExprKind::IntFn(function, args) => {
                let first = self.int(b, &args[0])?;
                let second = args.get(1).map_or(Ok(0), |arg| self.int(b, arg))?;
                Value::Int(self.settle(b, span, function.apply(first, second))?)
            }
            ExprKind::IsPowerOfTwo(x) => {
                let x = self.int(b, x)?;
                Value::Bool(x > 0 && x & (x - 1) == 0)
            }
            ExprKind::Peer(rank) => {
                let rank = self.int(b, rank)?;
                let rank = b.find_rank(rank);
                Value::Peer(self.settle(b, span, rank)?)
            }
            ExprKind::Len(of) => match self.eval(b, of)? {
                Value::List(list) => Value::Int(list.len() as i64),
                Value::Pieces(pieces) => Value::Int(pieces.len()),
                other => unreachable!("checked as a list or pieces, is {other:?}"),
            },
            ExprKind::Rev(list) => Value::List(self.list(b, list)?.iter().rev().copied().collect()),
            ExprKind::Element(list, index) => {
                let (list, index) = (self.list(b, list)?, self.int(b, index)?);
                Value::Int(self.settle(b, span, pick(&list, index))?)
            }
            ExprKind::RankOf(peer) => Value::Int(i64::from(self.peer(b, peer)?.0)),
            ExprKind::RingLeft(ring) => Value::Peer(self.ring(b, ring)?.left),
            ExprKind::RingRight(ring) => Value::Peer(self.ring(b, ring)?.right),
            ExprKind::RingPosition(ring) => Value::Int(i64::from(self.ring(b, ring)?.position)),
            ExprKind::RingNatural => self.seat(b, &Ring::natural())?,
            ExprKind::RingTwisted => self.seat(b, &Ring::twisted())?,
            ExprKind::RingOrder(list) => {
                let order = self.list(b, list)?;
                self.seat(b, &Ring::order(order.iter().copied()))?
            }
            ExprKind::Split(region, by) => {
                let area = self.region(b, region)?;
                let pieces = match self.eval(b, by)? {
                    Value::List(weights) => area.split_weighted(&weights),
                    Value::Int(n) => area.split(n),
                    other => unreachable!("checked as an int or a list, is {other:?}"),
                };
                Value::Pieces(self.settle(b, span, pieces)?)
            }
            ExprKind::Block(region, index) => {
                let (area, index) = (self.region(b, region)?, self.int(b, index)?);
                let piece = area.split(b.nranks().get()).and_then(|pieces| pieces.at(index));
                Value::Region(self.settle(b, span, piece)?)
            }
            ExprKind::Piece(pieces, index) => {
                let index = self.int(b, index)?;
                let piece = self.with_pieces(b, pieces, |pieces| pieces.at(index))?;
                Value::Region(self.settle(b, span, piece)?)
            }
            ExprKind::Range(pieces, lo, hi) => {
                let (lo, hi) = (self.int(b, lo)?, self.int(b, hi)?);
                let piece = self.with_pieces(b, pieces, |pieces| pieces.range(lo, hi))?;
                Value::Region(self.settle(b, span, piece)?)
            }
            ExprKind::On(peer, region) => {
                let peer = self.peer(b, peer)?;
                Value::Place(peer, self.region(b, region)?)
            }
            ExprKind::Rust(_) => {
                let mut finding = Finding::new(
                    Code::EscapeInFile,
                    SpanId(self.at),
                    "a `rust { }` escape runs only in expanded Rust",
                );
                finding.exact = Some(span);
                return Err(b.fail(finding));
            }
            ExprKind::Error => unreachable!("a program with errors is not interpreted"),
        })
    }

    pub(super) fn ring(&mut self, b: &mut Builder<'_>, expr: &'a Expr) -> Result<Seat, Stop> {
        match self.eval(b, expr)? {
            Value::Ring(seat) => Ok(seat),
            other => unreachable!("checked as a ring, is {other:?}"),
        }
    }

    pub(super) fn binary(
        &mut self,
        b: &mut Builder<'_>,
        op: BinOp,
        left: &'a Expr,
        right: &'a Expr,
        span: Span,
    ) -> Result<Value, Stop> {
        if let BinOp::And | BinOp::Or = op {
            let decided = op == BinOp::Or;
            let left = self.bool(b, left)?;
            return Ok(Value::Bool(if left == decided { decided } else { self.bool(b, right)? }));
        }
        Ok(match (self.eval(b, left)?, self.eval(b, right)?) {
            (Value::Int(l), Value::Int(r)) if op.precedence() > BinOp::Eq.precedence() => {
                Value::Int(self.settle(b, span, arith::arithmetic(op, l, r))?)
            }
            (Value::Int(l), Value::Int(r)) => Value::Bool(arith::compare(op, l, r)),
            (Value::Bool(l), Value::Bool(r)) => Value::Bool((l == r) == (op == BinOp::Eq)),
            (Value::Peer(l), Value::Peer(r)) => Value::Bool((l == r) == (op == BinOp::Eq)),
            (l, r) => unreachable!("checked as comparable, are {l:?} and {r:?}"),
        })
    }
}
