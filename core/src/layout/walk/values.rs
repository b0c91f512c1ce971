//! Numbers, regions and lists: the types of most expressions, with a function for each.

use std::rc::Rc;

use super::Walk;
use crate::diagnostics::{Code, Finding};
use crate::ids::{RankId, SpanId};
use crate::layout::area::{Area, Pieces};
use crate::layout::builder::data::SwitchEnd;
use crate::layout::builder::{Builder, Place, Stop};
use crate::program::ir::{Expr, Op};
use crate::schedule::Buffer;
use crate::values::arith::{Fault, pick};
use crate::values::groups::GroupPlace;
use crate::values::params::{ParamTy, ParamValue};
use crate::values::ranked_topology::RankedTopology;
use crate::values::ring::RingAtRank;
use crate::values::tree::TreePlace;
use crate::values::trees::TreesPlace;

/// A value. A fault is not a value.
#[derive(Clone, Debug)]
pub(super) enum Value {
    Unset,
    /// A number, a truth value or a peer.
    Int(i64),
    List(Rc<[i64]>),
    Region(Area),
    Pieces(Pieces),
    Place(RankId, Area),
    Ring(RingAtRank),
    Rings(Rc<[RingAtRank]>),
    Tree(TreePlace),
    Trees(TreesPlace),
    Groups(GroupPlace),
    Topology(RankedTopology),
}

impl Value {
    /// Returns the value as a called program's parameter.
    pub(super) fn given(
        self,
        b: &mut Builder<'_>,
        ty: ParamTy,
        at: u32,
    ) -> Result<ParamValue, Stop> {
        let given = match self {
            Self::Int(value) if ty == ParamTy::Bool => ParamValue::Bool(value != 0),
            Self::Int(value) => ParamValue::Int(value),
            Self::List(list) => ParamValue::Ranks(list.to_vec()),
            Self::Topology(ranked) => ParamValue::Topology(ranked.topology),
            Self::Ring(ring) => ParamValue::Ring(b.settle(at, b.given_ring(&ring))?),
            Self::Rings(rings) => {
                let rings = rings.iter().map(|ring| b.given_ring(ring)).collect();
                ParamValue::Rings(b.settle(at, rings)?)
            }
            Self::Tree(place) => ParamValue::Tree(b.settle(at, b.given_tree(&place))?),
            Self::Trees(place) => ParamValue::Trees(b.settle(at, b.given_trees(&place))?),
            Self::Groups(place) => ParamValue::Groups(b.settle(at, b.given_groups(&place))?),
            other => unreachable!("checked as a parameter, is {other:?}"),
        };
        Ok(given)
    }
}

/// Defines a function that evaluates an expression to a type. The checker ensures that values have the types of their
/// places.
macro_rules! typed {
    ($name:ident, $variant:ident, $ty:ty) => {
        pub(super) fn $name(&mut self, b: &mut Builder<'_>, expr: &'p Expr) -> Result<$ty, Stop> {
            // Most expressions are variables, of which only the value asked for is copied.
            if let Op::Var(var) = expr.op
                && let Value::$variant(value) = &self.vars[var.index()]
            {
                return Ok(value.clone());
            }
            match self.value(b, expr)? {
                Value::$variant(value) => Ok(value),
                other => unreachable!("checked for {:?}, is {other:?}", expr.op),
            }
        }
    };
}

impl<'p> Walk<'p> {
    typed!(list, List, Rc<[i64]>);
    typed!(ring, Ring, RingAtRank);
    typed!(rings, Rings, Rc<[RingAtRank]>);
    typed!(tree, Tree, TreePlace);
    typed!(trees, Trees, TreesPlace);
    typed!(groups, Groups, GroupPlace);
    typed!(topology, Topology, RankedTopology);

    /// Evaluates a number before its statement is reached: a fault is not reported yet.
    pub(super) fn foreseen(&mut self, b: &mut Builder<'_>, expr: &'p Expr) -> Option<i64> {
        self.quiet = true;
        let value = self.int(b, expr);
        self.quiet = false;
        value.ok()
    }

    pub(super) fn holds(&mut self, b: &mut Builder<'_>, expr: &'p Expr) -> Result<bool, Stop> {
        Ok(self.int(b, expr)? != 0)
    }

    /// Evaluates a rank of the whole run.
    pub(super) fn rank(&mut self, b: &mut Builder<'_>, expr: &'p Expr) -> Result<RankId, Stop> {
        let rank = self.int(b, expr)?;
        let known = u32::try_from(rank).ok().filter(|known| *known < self.ranks);
        let known = known.ok_or(Fault::Rank { rank, nranks: self.ranks });
        self.settle(b, expr.span, known).map(RankId)
    }

    /// Evaluates a number, a truth value or a peer.
    pub(super) fn int(&mut self, b: &mut Builder<'_>, expr: &'p Expr) -> Result<i64, Stop> {
        // Most expressions are literals and variables.
        match expr.op {
            Op::Int(value) => return Ok(value),
            Op::Var(var) => {
                if let Value::Int(value) = self.vars[var.index()] {
                    return Ok(value);
                }
            }
            _ => {}
        }
        let value = self.computed(b, expr)?;
        self.trace_number(expr, value);
        Ok(value)
    }

    fn computed(&mut self, b: &mut Builder<'_>, expr: &'p Expr) -> Result<i64, Stop> {
        if let Some(value) = expr.arithmetic(|arg| self.int(b, arg)) {
            return self.settle(b, expr.span, value?);
        }
        let args = &expr.args;
        let fallible = match expr.op {
            Op::Rank => return Ok(b.here().into()),
            Op::Nranks => return Ok(b.size().into()),
            Op::Local => return Ok(self.local.0.into()),
            Op::Escape(number) => return self.escape(b, expr, number),
            Op::Len => {
                return Ok(match self.value(b, &args[0])? {
                    Value::List(list) => list.len() as i64,
                    Value::Rings(rings) => rings.len() as i64,
                    Value::Trees(trees) => trees.len(),
                    Value::Groups(groups) => groups.len(),
                    Value::Pieces(pieces) => pieces.len(),
                    other => unreachable!("checked as a list or pieces, is {other:?}"),
                });
            }
            Op::Element => {
                let (list, index) = (self.list(b, &args[0])?, self.int(b, &args[1])?);
                pick(&list, index)
            }
            Op::Peer => {
                let rank = self.int(b, &args[0])?;
                b.find_rank(rank).map(|rank| rank.0.into())
            }
            Op::RankOf => {
                let peer = self.rank(b, &args[0])?;
                b.number(peer)
            }
            _ => self.asked(b, expr)?,
        };
        self.settle(b, expr.span, fallible)
    }

    pub(super) fn region(&mut self, b: &mut Builder<'_>, expr: &'p Expr) -> Result<Area, Stop> {
        let args = &expr.args;
        let fallible = match expr.op {
            Op::Var(var) => match &self.vars[var.index()] {
                Value::Region(area) => return Ok(*area),
                _ => return Err(self.misfit(b, expr)),
            },
            Op::Input => return Ok(b.buffer(Buffer::Input)),
            Op::Output => return Ok(b.buffer(Buffer::Output)),
            Op::If => {
                self.still(b, &args[..1], "this condition")?;
                let chosen = if self.holds(b, &args[0])? { &args[1] } else { &args[2] };
                return self.region(b, chosen);
            }
            Op::Piece => {
                let index = self.int(b, &args[1])?;
                let cut = |pieces: &Pieces| {
                    pieces.piece(index).map(|piece| (piece, pieces.whole, pieces.cut.clone()))
                };
                let piece = self.with_pieces(b, &args[0], cut)?;
                let piece = self.settle(b, expr.span, piece)?;
                return self.piece(b, expr, piece);
            }
            Op::Pieces => {
                self.still(b, &args[1..], "the range of pieces")?;
                let (lo, hi) = (self.int(b, &args[1])?, self.int(b, &args[2])?);
                self.with_pieces(b, &args[0], |pieces| pieces.range(lo, hi))?
            }
            other => unreachable!("checked as a region, is {other:?}"),
        };
        self.settle(b, expr.span, fallible)
    }

    /// Applies `then` to pieces, without a copy of those that a variable holds.
    fn with_pieces<T>(
        &mut self,
        b: &mut Builder<'_>,
        expr: &'p Expr,
        then: impl FnOnce(&Pieces) -> T,
    ) -> Result<T, Stop> {
        if let Op::Var(var) = expr.op
            && let Value::Pieces(pieces) = &self.vars[var.index()]
        {
            return Ok(then(pieces));
        }
        match self.value(b, expr)? {
            Value::Pieces(pieces) => Ok(then(&pieces)),
            other => unreachable!("checked as pieces, is {other:?}"),
        }
    }

    pub(super) fn places(
        &mut self,
        b: &mut Builder<'_>,
        exprs: &'p [Expr],
    ) -> Result<Vec<Place>, Stop> {
        exprs.iter().map(|expr| self.place(b, expr)).collect()
    }

    pub(super) fn place(&mut self, b: &mut Builder<'_>, expr: &'p Expr) -> Result<Place, Stop> {
        if expr.op == Op::On {
            return Ok((self.rank(b, &expr.args[0])?, self.region(b, &expr.args[1])?));
        }
        match self.value(b, expr)? {
            Value::Place(peer, area) => Ok((peer, area)),
            other => unreachable!("checked as a place, is {other:?}"),
        }
    }

    /// Evaluates the source or the destination of a move by a switch.
    pub(super) fn switch_end(
        &mut self,
        b: &mut Builder<'_>,
        expr: &'p Expr,
    ) -> Result<SwitchEnd, Stop> {
        match self.value(b, expr)? {
            Value::Place(peer, area) => Ok(SwitchEnd::One((peer, area))),
            Value::Region(area) => Ok(SwitchEnd::All(area)),
            other => unreachable!("checked as a place or a region, is {other:?}"),
        }
    }

    pub(super) fn value(&mut self, b: &mut Builder<'_>, expr: &'p Expr) -> Result<Value, Stop> {
        let args = &expr.args;
        Ok(match expr.op {
            Op::Var(var) => match &self.vars[var.index()] {
                Value::Unset => return Err(self.misfit(b, expr)),
                value => value.clone(),
            },
            Op::If => {
                self.still(b, &args[..1], "this condition")?;
                let chosen = if self.holds(b, &args[0])? { &args[1] } else { &args[2] };
                self.value(b, chosen)?
            }
            Op::Input | Op::Output | Op::Piece | Op::Pieces => Value::Region(self.region(b, expr)?),
            Op::Split => {
                self.still(b, &args[1..], "the number of pieces")?;
                let area = self.region(b, &args[0])?;
                let pieces = match self.value(b, &args[1])? {
                    Value::List(weights) => {
                        self.trace_list(&args[1], &weights);
                        area.split_weighted(&weights)
                    }
                    Value::Int(many) => area.split(many),
                    other => unreachable!("checked as an int or a list, is {other:?}"),
                };
                Value::Pieces(self.settle(b, expr.span, pieces)?)
            }
            Op::On => {
                let (peer, region) = (self.rank(b, &args[0])?, self.region(b, &args[1])?);
                Value::Place(peer, region)
            }
            Op::List => {
                Value::List(args.iter().map(|item| self.int(b, item)).collect::<Result<_, _>>()?)
            }
            Op::Rev => Value::List(self.list(b, &args[0])?.iter().rev().copied().collect()),
            _ => match self.object(b, expr)? {
                Some(object) => object,
                None => Value::Int(self.int(b, expr)?),
            },
        })
    }

    /// Reports a value that is not there. Only a program's text, which no checker has seen, can use such a value.
    pub(super) fn misfit(&self, b: &mut Builder<'_>, expr: &Expr) -> Stop {
        let title = "there is no such value here";
        self.fail(b, expr.span, Finding::new(Code::WrongType, SpanId(self.at), title))
    }
}
