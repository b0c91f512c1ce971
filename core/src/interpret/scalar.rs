//! Integers, truth values and peers, which most expressions are: computed as what they are. A [`Value`] also
//! holds regions and lists, and to move one about costs more than the arithmetic.

use super::Run;
use super::eval::Value;
use crate::check::hir::{Expr, ExprKind, Stmt, Ty};
use crate::ids::RankId;
use crate::schedule::arith;
use crate::schedule::builder::{Builder, Stop};
use crate::schedule::value::{Int, pick};
use crate::syntax::ast::{BinOp, UnOp};

impl<'a> Run<'a> {
    /// What the loops in `stmt` take at least, where it is known before they begin.
    pub(super) fn nested(&self, b: &mut Builder<'_>, stmt: &'a Stmt) -> Result<(), Stop> {
        for nest in stmt.nests() {
            let loops: Vec<_> =
                nest.iter().map(|(lo, hi)| (self.told(b, lo), self.told(b, hi))).collect();
            b.nested(stmt.at.0, &loops)?;
        }
        Ok(())
    }

    /// A number that may be asked for before its statement is reached: a fault is not told yet.
    fn told(&self, b: &Builder<'_>, expr: &Expr) -> Int {
        match &*expr.kind {
            ExprKind::Int(value) => Int::from(*value),
            ExprKind::Rank => b.rank(),
            ExprKind::Nranks => b.nranks(),
            ExprKind::Var(var) => match &self.vars[var.0 as usize] {
                Value::Int(value) => Int::from(*value),
                other => unreachable!("checked as {:?}, is {other:?}", expr.ty),
            },
            ExprKind::Unary(UnOp::Not, operand) => !self.told(b, operand),
            ExprKind::Unary(_, operand) => -self.told(b, operand),
            ExprKind::Binary(op, l, r) => {
                let (l, r) = (self.told(b, l).0, self.told(b, r).0);
                Int(l.and_then(|l| arith::arithmetic(*op, l, r?)))
            }
            ExprKind::IntFn(function, args) => {
                let second = args.get(1).map_or(Ok(0), |arg| self.told(b, arg).0);
                Int(self.told(b, &args[0]).0.and_then(|first| function.apply(first, second?)))
            }
            other => unreachable!("no bound is told by {other:?}"),
        }
    }

    pub(super) fn int(&mut self, b: &mut Builder<'_>, expr: &'a Expr) -> Result<i64, Stop> {
        let fallible = match &*expr.kind {
            ExprKind::Int(value) => return Ok(*value),
            ExprKind::Rank => return Ok(b.rank().get()),
            ExprKind::Nranks => return Ok(b.nranks().get()),
            ExprKind::Var(var) => match &self.vars[var.0 as usize] {
                Value::Int(value) => return Ok(*value),
                other => unreachable!("checked as {:?}, is {other:?}", expr.ty),
            },
            ExprKind::Unary(UnOp::Not, operand) => return Ok(!self.int(b, operand)?),
            ExprKind::Unary(_, operand) => arith::arithmetic(BinOp::Sub, 0, self.int(b, operand)?),
            ExprKind::Binary(op, l, r) => {
                let (l, r) = (self.int(b, l)?, self.int(b, r)?);
                arith::arithmetic(*op, l, r)
            }
            ExprKind::If(condition, then, otherwise) => {
                let chosen = if self.bool(b, condition)? { then } else { otherwise };
                return self.int(b, chosen);
            }
            ExprKind::IntFn(function, args) => {
                let first = self.int(b, &args[0])?;
                let second = args.get(1).map_or(Ok(0), |arg| self.int(b, arg))?;
                function.apply(first, second)
            }
            ExprKind::Element(list, index) => {
                let (list, index) = (self.list(b, list)?, self.int(b, index)?);
                pick(&list, index)
            }
            ExprKind::RankOf(peer) => {
                let peer = self.peer(b, peer)?;
                b.number(peer)
            }
            ExprKind::RingPosition(ring) => return Ok(i64::from(self.ring(b, ring)?.position)),
            _ => match self.object(b, expr)? {
                Value::Int(value) => return Ok(value),
                other => unreachable!("checked as {:?}, is {other:?}", expr.ty),
            },
        };
        self.settle(b, expr.span, fallible)
    }

    pub(super) fn bool(&mut self, b: &mut Builder<'_>, expr: &'a Expr) -> Result<bool, Stop> {
        Ok(match &*expr.kind {
            ExprKind::Bool(value) => *value,
            ExprKind::Var(var) => match &self.vars[var.0 as usize] {
                Value::Bool(value) => *value,
                other => unreachable!("checked as {:?}, is {other:?}", expr.ty),
            },
            ExprKind::Unary(_, operand) => !self.bool(b, operand)?,
            ExprKind::Binary(BinOp::And, l, r) => self.bool(b, l)? && self.bool(b, r)?,
            ExprKind::Binary(BinOp::Or, l, r) => self.bool(b, l)? || self.bool(b, r)?,
            ExprKind::Binary(op, l, r) => match l.ty {
                Ty::Int => {
                    let (l, r) = (self.int(b, l)?, self.int(b, r)?);
                    arith::compare(*op, l, r)
                }
                Ty::Bool => (self.bool(b, l)? == self.bool(b, r)?) == (*op == BinOp::Eq),
                _ => (self.peer(b, l)? == self.peer(b, r)?) == (*op == BinOp::Eq),
            },
            ExprKind::If(condition, then, otherwise) => {
                let chosen = if self.bool(b, condition)? { then } else { otherwise };
                self.bool(b, chosen)?
            }
            ExprKind::IsPowerOfTwo(x) => {
                let x = self.int(b, x)?;
                x > 0 && x & (x - 1) == 0
            }
            _ => match self.object(b, expr)? {
                Value::Bool(value) => value,
                other => unreachable!("checked as {:?}, is {other:?}", expr.ty),
            },
        })
    }

    pub(super) fn peer(&mut self, b: &mut Builder<'_>, expr: &'a Expr) -> Result<RankId, Stop> {
        Ok(match &*expr.kind {
            ExprKind::Local => self.local,
            ExprKind::Var(var) => match &self.vars[var.0 as usize] {
                Value::Peer(peer) => *peer,
                other => unreachable!("checked as {:?}, is {other:?}", expr.ty),
            },
            ExprKind::Peer(rank) => {
                let rank = self.int(b, rank)?;
                let rank = b.find_rank(rank);
                self.settle(b, expr.span, rank)?
            }
            ExprKind::RingLeft(ring) => self.ring(b, ring)?.left,
            ExprKind::RingRight(ring) => self.ring(b, ring)?.right,
            ExprKind::RingSeat(ring, index) => {
                let (chair, index) = (self.ring(b, ring)?, self.int(b, index)?);
                self.settle(b, expr.span, pick(&chair.order, index))?
            }
            ExprKind::If(condition, then, otherwise) => {
                let chosen = if self.bool(b, condition)? { then } else { otherwise };
                self.peer(b, chosen)?
            }
            _ => match self.object(b, expr)? {
                Value::Peer(peer) => peer,
                other => unreachable!("checked as {:?}, is {other:?}", expr.ty),
            },
        })
    }
}
