//! Expressions: every value of the language, and every fault at the exact expression that it stands in.

use std::rc::Rc;

use super::Run;
use crate::check::hir::{Expr, ExprKind, ShapeArg, TopologyField, Ty};
use crate::diagnostics::{Code, Finding};
use crate::ids::{RankId, SpanId};
use crate::schedule::Buffer;
use crate::schedule::area::{Area, Pieces};
use crate::schedule::arith::Fault;
use crate::schedule::builder::{Builder, Stop};
use crate::schedule::groups::{GroupPlace, Membership};
use crate::schedule::params::ParamValue;
use crate::schedule::ring::Ring;
use crate::schedule::rings::Rings;
use crate::schedule::site::{Drawing, Ground, Site};
use crate::schedule::tree::{TreeNode, TreePlace};
use crate::schedule::value::{Chair, List, Place, Seat, Seats, pick};
use crate::source::Span;

/// A value of the language. Faults never get this far.
#[derive(Clone, Debug)]
pub(super) enum Value {
    Unset,
    Int(i64),
    Bool(bool),
    Peer(RankId),
    Ring(Chair),
    Rings(Rc<[Chair]>),
    Tree(TreePlace),
    Groups(GroupPlace),
    Topology(Ground),
    List(Rc<[i64]>),
    Region(Area),
    Pieces(Pieces),
    Place(RankId, Area),
}

impl Value {
    /// The value of a called algorithm's parameter.
    pub(super) fn given(self, b: &mut Builder<'_>, at: u32) -> Result<ParamValue, Stop> {
        Ok(match self {
            Self::Int(value) => ParamValue::Int(value),
            Self::Bool(value) => ParamValue::Bool(value),
            Self::List(list) => ParamValue::Ranks(list.to_vec()),
            Self::Ring(chair) => ParamValue::Ring(b.given(at, Seat(Ok(chair)))?),
            Self::Rings(chairs) => ParamValue::Rings(b.given(at, Seats(Ok(chairs.to_vec())))?),
            Self::Tree(place) => ParamValue::Tree(b.given(at, TreeNode(Ok(place)))?),
            Self::Groups(place) => ParamValue::Groups(b.given(at, Membership(Ok(place)))?),
            Self::Topology(ground) => ParamValue::Topology(b.given(at, Site(Ok(ground)))?),
            other => unreachable!("checked as a parameter, is {other:?}"),
        })
    }
}

/// The checker has seen to it that values have the types their places ask for.
macro_rules! typed {
    ($name:ident, $variant:ident, $ty:ty) => {
        pub(super) fn $name(&mut self, b: &mut Builder<'_>, expr: &'a Expr) -> Result<$ty, Stop> {
            // Most are variables: nothing is copied but what is asked for.
            if let ExprKind::Var(var) = &*expr.kind
                && let Value::$variant(value) = &self.vars[var.0 as usize]
            {
                return Ok(value.clone());
            }
            match self.eval(b, expr)? {
                Value::$variant(value) => Ok(value),
                other => unreachable!("checked as {:?}, is {other:?}", expr.ty),
            }
        }
    };
}

impl<'a> Run<'a> {
    typed!(list, List, Rc<[i64]>);
    typed!(ring, Ring, Chair);
    typed!(chairs, Rings, Rc<[Chair]>);
    typed!(tree_place, Tree, TreePlace);
    typed!(group_place, Groups, GroupPlace);
    typed!(topology, Topology, Ground);

    pub(super) fn region(&mut self, b: &mut Builder<'_>, expr: &'a Expr) -> Result<Area, Stop> {
        match &*expr.kind {
            ExprKind::Piece(pieces, index) => {
                let index = self.int(b, index)?;
                let piece = self.with_pieces(b, pieces, |pieces| pieces.at(index))?;
                self.settle(b, expr.span, piece)
            }
            ExprKind::Block(region, index) => {
                let (area, index) = (self.region(b, region)?, self.int(b, index)?);
                let piece = area.split(b.nranks().get()).and_then(|pieces| {
                    b.countable(&pieces)?;
                    pieces.at(index)
                });
                self.settle(b, expr.span, piece)
            }
            ExprKind::Var(var) => match &self.vars[var.0 as usize] {
                Value::Region(area) => Ok(*area),
                other => unreachable!("checked as {:?}, is {other:?}", expr.ty),
            },
            _ => match self.object(b, expr)? {
                Value::Region(area) => Ok(area),
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
        let value = match expr.ty {
            Ty::Int => return Ok(Value::Int(self.int(b, expr)?)),
            Ty::Bool => return Ok(Value::Bool(self.bool(b, expr)?)),
            Ty::Peer => return Ok(Value::Peer(self.peer(b, expr)?)),
            Ty::Region => return Ok(Value::Region(self.region(b, expr)?)),
            _ => self.object(b, expr)?,
        };
        if b.record().is_some() {
            self.record(b, expr, &value)?;
        }
        Ok(value)
    }

    /// What is not computed as what it is, by [`Self::region`] or in `scalar.rs`.
    pub(super) fn object(&mut self, b: &mut Builder<'_>, expr: &'a Expr) -> Result<Value, Stop> {
        let span = expr.span;
        Ok(match &*expr.kind {
            ExprKind::Var(var) => self.vars[var.0 as usize].clone(),
            ExprKind::Input => Value::Region(b.buffer(Buffer::Input)),
            ExprKind::Output => Value::Region(b.buffer(Buffer::Output)),
            ExprKind::If(condition, then, otherwise) => {
                let chosen = if self.bool(b, condition)? { then } else { otherwise };
                self.eval(b, chosen)?
            }
            ExprKind::List(items) => {
                let items = items.iter().map(|i| self.int(b, i)).collect::<Result<Rc<[_]>, _>>()?;
                Value::List(items)
            }
            ExprKind::Len(of) => match self.eval(b, of)? {
                Value::List(list) => Value::Int(list.len() as i64),
                Value::Rings(rings) => Value::Int(rings.len() as i64),
                Value::Groups(groups) => Value::Int(groups.len()),
                Value::Pieces(pieces) => Value::Int(pieces.len()),
                other => unreachable!("checked as a list or pieces, is {other:?}"),
            },
            ExprKind::Rev(list) => Value::List(self.list(b, list)?.iter().rev().copied().collect()),
            ExprKind::RingNatural => self.seat(b, &Ring::natural(), span)?,
            ExprKind::RingTwisted => self.seat(b, &Ring::twisted(), span)?,
            ExprKind::RingOrder(list) => {
                let order = self.list(b, list)?;
                self.seat(b, &Ring::order(order.iter().copied()), span)?
            }
            ExprKind::RingAround(topology) => {
                let topology = self.topology(b, topology)?.topology;
                self.seat(b, &Ring::around(topology), span)?
            }
            ExprKind::RingsChannels(topology) => {
                let rings = Rings::channels(self.topology(b, topology)?.topology);
                self.rings(b, &rings, span)?
            }
            ExprKind::RingsDisjoint(topology, k) => {
                let topology = self.topology(b, topology)?.topology;
                let k = self.int(b, k)?.clamp(0, i64::from(u32::MAX)) as u32;
                self.rings(b, &Rings::disjoint(topology, k), span)?
            }
            ExprKind::RingAt(rings, index) => {
                let (rings, index) = (self.chairs(b, rings)?, self.int(b, index)?);
                Value::Ring(self.settle(b, span, pick(&rings, index))?)
            }
            ExprKind::Tree(_)
            | ExprKind::TreeField(..)
            | ExprKind::Groups(_)
            | ExprKind::GroupsField(..)
            | ExprKind::GroupsOf(..)
            | ExprKind::GroupAt(..) => self.membership(b, expr)?,
            ExprKind::Topology(kind, args, cuts) => {
                let mut drawing = Drawing::new(*kind);
                for arg in args {
                    drawing = match arg {
                        ShapeArg::Rate(rate) => drawing.rate(*rate),
                        ShapeArg::Time(time) => drawing.time(*time),
                        ShapeArg::Size(size) if size.ty == Ty::List => {
                            drawing.sizes(&List(Ok(self.list(b, size)?.to_vec())))
                        }
                        ShapeArg::Size(size) => drawing.size(self.int(b, size)?),
                    };
                }
                for (from, to) in cuts {
                    drawing = drawing.without(self.int(b, from)?, self.int(b, to)?);
                }
                let site = self.exactly(b, span, |b, at| b.topology(at, drawing))?;
                Value::Topology(self.settle(b, span, site.0)?)
            }
            ExprKind::Linked(topology, from, to) => {
                let topology = self.topology(b, topology)?;
                let (from, to) = (self.int(b, from)?, self.int(b, to)?);
                Value::Bool(self.settle(b, span, topology.linked(from, to))?)
            }
            ExprKind::Neighbors(topology, rank) => {
                let (topology, rank) = (self.topology(b, topology)?, self.int(b, rank)?);
                Value::List(self.settle(b, span, topology.neighbors(rank))?.into())
            }
            ExprKind::TopologyField(field, topology) => {
                let topology = self.topology(b, topology)?;
                Value::List(match field {
                    TopologyField::Missing => topology.missing().into(),
                    TopologyField::Shares => topology.shares().into(),
                    TopologyField::Hubs => topology.hubs().into(),
                })
            }
            ExprKind::Relays(topology, from, to) => {
                let topology = self.topology(b, topology)?;
                let (from, to) = (self.int(b, from)?, self.int(b, to)?);
                Value::List(self.settle(b, span, topology.relays(from, to))?.into())
            }
            ExprKind::Split(region, by) => {
                let area = self.region(b, region)?;
                let pieces = match self.eval(b, by)? {
                    Value::List(weights) => area.split_weighted(&weights),
                    Value::Int(n) => area.split(n),
                    other => unreachable!("checked as an int or a list, is {other:?}"),
                };
                let pieces = pieces.and_then(|pieces| b.countable(&pieces).map(|()| pieces));
                Value::Pieces(self.settle(b, span, pieces)?)
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
            other => unreachable!("computed as what it is: {other:?}"),
        })
    }

    fn rings(&self, b: &mut Builder<'_>, rings: &Rings, span: Span) -> Result<Value, Stop> {
        let seats = self.exactly(b, span, |b, at| b.rings(at, rings))?;
        Ok(Value::Rings(self.settle(b, span, seats.0)?.into()))
    }
}
