//! The interpreter: walks a checked algorithm once for each rank and calls the same builder that expanded
//! Rust calls. It alone serves `.coll` files, and it knows the exact expression that a fault stands in.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::area::{Area, Pieces};
use super::arith::{self, Fault};
use super::builder::{Builder, Stop};
use super::params::ParamValue;
use super::ring::Ring;
use super::value::{Flag, Int, Peer, Piece, Place, Seat, Split, pick};
use super::{Algorithm, Buffer, Location};
use crate::check::hir::{self, Expr, ExprKind, Iter, ParamTy, Signal, Step, Stmt, StmtKind, VarId};
use crate::collective::Collective;
use crate::diagnostics::{Code, Diagnostic, Finding};
use crate::ids::{RankId, SpanId};
use crate::source::{Source, Span};
use crate::syntax::ast::{BinOp, UnOp};

/// A checked algorithm with values for its parameters, ready to be laid out.
#[derive(Clone, Debug)]
pub struct Interpreted {
    algorithm: hir::Algorithm,
    file: String,
    locations: Vec<Location>,
    params: BTreeMap<String, ParamValue>,
}

impl Interpreted {
    /// An algorithm of `source` with every parameter at its default.
    pub fn new(algorithm: hir::Algorithm, source: &Source) -> Self {
        let locations = algorithm.spans.iter().map(|span| source.location(*span)).collect();
        Self { algorithm, file: source.name().to_owned(), locations, params: BTreeMap::new() }
    }

    /// Gives a parameter its value; the error says which parameters there are.
    pub fn set(&mut self, name: &str, value: ParamValue) -> Result<(), String> {
        let ty = self.param_type(name)?;
        if !value.fits(ty) {
            return Err(format!("parameter `{name}` is {}", ty.takes()));
        }
        self.params.insert(name.to_owned(), value);
        Ok(())
    }

    /// Gives a parameter the value that `text` stands for.
    pub fn set_text(&mut self, name: &str, text: &str) -> Result<(), String> {
        let value = ParamValue::parse(self.param_type(name)?, text)?;
        self.set(name, value)
    }

    fn param_type(&self, name: &str) -> Result<ParamTy, String> {
        let named = |p: &hir::Param| self.algorithm.vars[p.var.0 as usize].name.clone();
        let params = &self.algorithm.params;
        params.iter().find(|p| named(p) == name).map(|p| p.ty).ok_or_else(|| {
            let known: Vec<_> =
                params.iter().map(|p| format!("`{}: {}`", named(p), p.ty.name())).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            format!("{} has no parameter `{name}`; it has {known}", self.algorithm.name)
        })
    }

    /// The checked algorithm.
    pub fn checked(&self) -> &hir::Algorithm {
        &self.algorithm
    }

    /// A finding of one of this algorithm's schedules, at its place in the source.
    pub fn diagnostic(&self, finding: Finding, nranks: u32) -> Diagnostic {
        let place = |at: SpanId| self.algorithm.spans.get(at.index()).copied().unwrap_or_default();
        Diagnostic {
            code: finding.code,
            title: finding.title,
            primary: finding.exact.unwrap_or_else(|| place(finding.at)),
            label: finding.label,
            others: finding.others.into_iter().map(|(at, label)| (place(at), label)).collect(),
            notes: finding.notes,
            help: finding.help,
            nranks: Some(nranks),
        }
    }
}

impl Algorithm for Interpreted {
    fn name(&self) -> &str {
        &self.algorithm.name
    }

    fn collective(&self) -> Collective {
        self.algorithm.collective
    }

    fn out_of_place(&self) -> bool {
        self.algorithm.out_of_place
    }

    fn file(&self) -> &str {
        &self.file
    }

    fn source(&self) -> &str {
        &self.algorithm.source
    }

    fn locations(&self) -> &[Location] {
        &self.locations
    }

    fn build(&self, builder: &mut Builder<'_>) -> Result<(), Stop> {
        let mut run = Run {
            algorithm: &self.algorithm,
            vars: vec![Value::Unset; self.algorithm.vars.len()],
            steps: vec![None; self.algorithm.vars.len()],
            rank: builder.local().0.map_err(|_| Stop)?,
            at: 0,
        };
        for param in &self.algorithm.params {
            run.param(builder, param, &self.params)?;
        }
        run.block(builder, &self.algorithm.body)
    }
}

/// A value of the language. Faults never get this far.
#[derive(Clone, Debug)]
enum Value {
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

/// One rank's walk.
struct Run<'a> {
    algorithm: &'a hir::Algorithm,
    vars: Vec<Value>,
    steps: Vec<Option<&'a Step>>,
    rank: RankId,
    at: u32,
}

/// The checker has seen to it that values have the types their places ask for.
macro_rules! typed {
    ($name:ident, $variant:ident, $ty:ty) => {
        fn $name(&mut self, b: &mut Builder<'_>, expr: &'a Expr) -> Result<$ty, Stop> {
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

    fn int(&mut self, b: &mut Builder<'_>, expr: &'a Expr) -> Result<i64, Stop> {
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
    fn settle<T>(
        &self,
        b: &mut Builder<'_>,
        span: Span,
        value: Result<T, Fault>,
    ) -> Result<T, Stop> {
        value.map_err(|fault| {
            let mut finding = Finding::new(fault.code(), SpanId(self.at), fault.to_string());
            finding.exact = Some(span);
            b.fail(finding)
        })
    }

    fn param(
        &mut self,
        b: &mut Builder<'_>,
        param: &'a hir::Param,
        given: &BTreeMap<String, ParamValue>,
    ) -> Result<(), Stop> {
        let var = &self.algorithm.vars[param.var.0 as usize];
        let value = match (given.get(&var.name), &param.default) {
            (Some(ParamValue::Int(v)), _) => Value::Int(*v),
            (Some(ParamValue::Bool(v)), _) => Value::Bool(*v),
            (Some(ParamValue::Ranks(v)), _) => Value::List(v.as_slice().into()),
            (Some(ParamValue::Ring(v)), _) => self.seat(b, v)?,
            (None, Some(default)) => self.eval(b, default)?,
            (None, None) if param.ty == ParamTy::Ring => self.seat(b, &Ring::natural())?,
            (None, None) => {
                let title = format!("parameter `{}` has no value", var.name);
                let mut finding = Finding::new(Code::BadParameter, SpanId(0), title).help(format!(
                    "give it a default, or set it to {} when you run it",
                    param.ty.takes()
                ));
                finding.exact = Some(var.span);
                return Err(b.fail(finding));
            }
        };
        if let (ParamTy::Rank, Value::Int(rank)) = (param.ty, &value) {
            b.rank_param(0, Int::from(*rank), var.name == "root")?;
        }
        self.vars[param.var.0 as usize] = value;
        Ok(())
    }

    fn seat(&self, b: &mut Builder<'_>, ring: &Ring) -> Result<Value, Stop> {
        Ok(Value::Ring(b.ring(self.at, ring)?))
    }

    fn block(&mut self, b: &mut Builder<'_>, body: &'a [Stmt]) -> Result<(), Stop> {
        body.iter().try_for_each(|stmt| self.stmt(b, stmt))
    }

    fn set(&mut self, var: VarId, value: Value) {
        self.vars[var.0 as usize] = value;
    }

    fn stmt(&mut self, b: &mut Builder<'_>, stmt: &'a Stmt) -> Result<(), Stop> {
        let at = stmt.at.0;
        self.at = at;
        match &stmt.kind {
            StmtKind::Let(var, value) => {
                let value = self.eval(b, value)?;
                self.set(*var, value);
            }
            StmtKind::For(var, iter, body) => {
                let (range, list) = match iter {
                    Iter::Range(lo, hi) => (self.int(b, lo)?..self.int(b, hi)?, None),
                    Iter::List(list) => {
                        let list = self.list(b, list)?;
                        (0..list.len() as i64, Some(list))
                    }
                };
                b.spend(at, range.start, range.end)?;
                for i in range {
                    let value = list.as_ref().map_or(i, |list| list[i as usize]);
                    self.set(*var, Value::Int(value));
                    self.block(b, body)?;
                }
            }
            StmtKind::Parallel(var, lo, hi, body) => {
                let (lo, hi) = (self.int(b, lo)?, self.int(b, hi)?);
                b.parallel(at, lo, hi, |b, value| {
                    self.set(*var, Value::Int(value.get()));
                    self.block(b, body)
                })?;
            }
            StmtKind::If(arms, otherwise) => {
                for (condition, body) in arms {
                    if self.bool(b, condition)? {
                        return self.block(b, body);
                    }
                    self.at = at;
                }
                if let Some(body) = otherwise {
                    self.block(b, body)?;
                }
            }
            StmtKind::Require(condition, why) => {
                let holds = self.bool(b, condition)?;
                b.require(at, Flag::from(holds), why)?;
            }
            StmtKind::Scratch(var, count, like) => {
                let count = count.as_ref().map(|c| self.int(b, c)).transpose()?;
                let name = &self.algorithm.vars[var.0 as usize].name;
                let value = match (self.eval(b, like)?, count) {
                    (Value::Region(like), None) => {
                        let slot = b.scratch(at, name, Piece(Ok(like)))?;
                        Value::Region(b.settle(at, slot.0)?)
                    }
                    (Value::Region(like), Some(n)) => {
                        let slots = b.scratch_slots(at, name, n, Piece(Ok(like)))?;
                        Value::Pieces(b.settle(at, slots.0)?)
                    }
                    (Value::Pieces(like), n) => {
                        let slots = b.scratch_blocks(at, name, n.unwrap_or(1), &Split(Ok(like)))?;
                        Value::Pieces(b.settle(at, slots.0)?)
                    }
                    (other, _) => unreachable!("checked as a region, is {other:?}"),
                };
                self.set(*var, value);
            }
            StmtKind::Step(step) => self.steps[step.name.0 as usize] = Some(step),
            StmtKind::Call(step, args) => {
                let step =
                    self.steps[step.0 as usize].expect("a step is declared before its calls");
                b.step(at)?;
                for (param, arg) in step.params.iter().zip(args) {
                    let value = self.eval(b, arg)?;
                    self.set(*param, value);
                }
                self.block(b, &step.body)?;
            }
            StmtKind::Copy(src, dsts) => {
                let src = self.place(b, src)?;
                match &dsts[..] {
                    [dst] => {
                        let dst = self.place(b, dst)?;
                        b.copy(at, src, &[dst])?;
                    }
                    _ => {
                        let dsts = self.places(b, dsts)?;
                        b.copy(at, src, &dsts)?;
                    }
                }
            }
            StmtKind::Reduce(srcs, dst) => match &srcs[..] {
                [src] => {
                    let (src, dst) = (self.place(b, src)?, self.place(b, dst)?);
                    b.reduce(at, &[src], dst)?;
                }
                _ => {
                    let srcs = self.places(b, srcs)?;
                    let dst = self.place(b, dst)?;
                    b.reduce(at, &srcs, dst)?;
                }
            },
            StmtKind::Signal(signal, peer) => {
                let peer = Peer(Ok(self.peer(b, peer)?));
                match signal {
                    Signal::TxAck => b.tx_ack(at, peer)?,
                    Signal::RxAck => b.rx_ack(at, peer)?,
                    Signal::TxDataSignal => b.tx_data_signal(at, peer)?,
                    Signal::RxDataSignal => b.rx_data_signal(at, peer)?,
                }
            }
        }
        Ok(())
    }

    fn places(&mut self, b: &mut Builder<'_>, exprs: &'a [Expr]) -> Result<Vec<Place>, Stop> {
        exprs.iter().map(|expr| self.place(b, expr)).collect()
    }

    fn place(&mut self, b: &mut Builder<'_>, expr: &'a Expr) -> Result<Place, Stop> {
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
    fn with_pieces<T>(
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

    fn eval(&mut self, b: &mut Builder<'_>, expr: &'a Expr) -> Result<Value, Stop> {
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

    fn ring(&mut self, b: &mut Builder<'_>, expr: &'a Expr) -> Result<Seat, Stop> {
        match self.eval(b, expr)? {
            Value::Ring(seat) => Ok(seat),
            other => unreachable!("checked as a ring, is {other:?}"),
        }
    }

    fn binary(
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
