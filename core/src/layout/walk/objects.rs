//! Rings, trees, groups and topologies: their constructors, and the questions that programs ask of them.

use std::sync::Arc;

use super::Walk;
use super::values::Value;
use crate::ids::RankId;
use crate::layout::builder::{Builder, Stop};
use crate::program::ir::{Expr, Op};
use crate::source::Span;
use crate::topology::Topology;
use crate::values::arith::{Fault, pick};
use crate::values::groups::Groups;
use crate::values::params::ParamValue;
use crate::values::ring::Ring;
use crate::values::rings::Rings;
use crate::values::tree::Tree;
use crate::values::trees::Trees;
use roundelay_topology::Problem;
use roundelay_topology::shape::{Argument, Shape, ShapeKind, Size};

impl<'p> Walk<'p> {
    /// Evaluates a question to an object whose answer is a number.
    pub(super) fn asked(
        &mut self,
        b: &mut Builder<'_>,
        expr: &'p Expr,
    ) -> Result<Result<i64, Fault>, Stop> {
        let args = &expr.args;
        Ok(match expr.op {
            Op::RingLeft => Ok(self.ring(b, &args[0])?.left.0.into()),
            Op::RingRight => Ok(self.ring(b, &args[0])?.right.0.into()),
            Op::RingPosition => Ok(self.ring(b, &args[0])?.position.into()),
            Op::RingSeat => {
                let (ring, index) = (self.ring(b, &args[0])?, self.int(b, &args[1])?);
                pick(&ring.order, index).map(|rank| rank.0.into())
            }
            Op::RingPositionOf => {
                let (ring, rank) = (self.ring(b, &args[0])?, self.int(b, &args[1])?);
                b.find_rank(rank).and_then(|rank| ring.position_of(rank))
            }
            Op::TreeRoot => Ok(self.tree(b, &args[0])?.root().0.into()),
            Op::TreeParent => self.tree(b, &args[0])?.parent().map(|rank| rank.0.into()),
            Op::TreeLevel => Ok(self.tree(b, &args[0])?.level().into()),
            Op::TreeDepth => Ok(self.tree(b, &args[0])?.depth().into()),
            Op::TreesPositionOf => {
                let (trees, tree) = (self.trees(b, &args[0])?, self.int(b, &args[1])?);
                trees.position_of(tree)
            }
            Op::GroupsIndex => Ok(self.groups(b, &args[0])?.index().into()),
            Op::GroupsPosition => Ok(self.groups(b, &args[0])?.position().into()),
            Op::GroupsEven => Ok(self.groups(b, &args[0])?.even().into()),
            Op::GroupsIndexOf | Op::GroupsPositionOf => {
                let (groups, rank) = (self.groups(b, &args[0])?, self.int(b, &args[1])?);
                let place = b.find_rank(rank).and_then(|rank| groups.of(rank));
                let index = expr.op == Op::GroupsIndexOf;
                place.map(|(group, position)| if index { group } else { position }.into())
            }
            Op::Linked => {
                let topology = self.topology(b, &args[0])?;
                let (from, to) = (self.int(b, &args[1])?, self.int(b, &args[2])?);
                topology.linked(from, to).map(i64::from)
            }
            _ => return Err(self.misfit(b, expr)),
        })
    }

    /// Evaluates an object, or a list that an object returns; `None` where the expression is a number.
    pub(super) fn object(
        &mut self,
        b: &mut Builder<'_>,
        expr: &'p Expr,
    ) -> Result<Option<Value>, Stop> {
        let (args, span) = (&expr.args, expr.span);
        let object = match expr.op {
            Op::RingNatural => self.seat(b, &Ring::natural(), span)?,
            Op::RingTwisted => self.seat(b, &Ring::twisted(), span)?,
            Op::RingOrder => {
                let order = self.list(b, &args[0])?;
                self.seat(b, &Ring::order(order.iter().copied()), span)?
            }
            Op::RingAround => {
                let topology = self.topology(b, &args[0])?.topology;
                self.seat(b, &Ring::around(topology), span)?
            }
            Op::RingsChannels => {
                let topology = self.topology(b, &args[0])?.topology;
                self.seats(b, &Rings::channels(topology), span)?
            }
            Op::RingsDisjoint => {
                let topology = self.topology(b, &args[0])?.topology;
                let many = self.int(b, &args[1])?.clamp(0, i64::from(u32::MAX)) as u32;
                self.seats(b, &Rings::disjoint(topology, many), span)?
            }
            Op::RingsAt => {
                let (rings, index) = (self.rings(b, &args[0])?, self.int(b, &args[1])?);
                Value::Ring(self.settle(b, span, pick(&rings, index))?)
            }
            Op::Tree(kind) => {
                let root = self.int(b, &args[0])?;
                self.node(b, &Tree::regular(kind, root), span)?
            }
            Op::TreeDoubleBinary => {
                let which = self.int(b, &args[0])?;
                let root = args.get(1).map(|root| self.int(b, root)).transpose()?;
                self.node(b, &Tree::double_binary(which, root), span)?
            }
            Op::TreeParents => {
                let parents = self.list(b, &args[0])?;
                self.node(b, &Tree::parents(parents.iter().copied()), span)?
            }
            Op::TreeChildren => {
                let tree = self.tree(b, &args[0])?;
                self.numbers(b, span, tree.children())?
            }
            Op::Trees(kind) => self.nodes(b, Ok(Trees::regular(kind)), span)?,
            Op::TreesDoubleBinary => {
                let root = args.first().map(|root| self.int(b, root)).transpose()?;
                self.nodes(b, Ok(Trees::double_binary(root)), span)?
            }
            Op::TreesParents | Op::TreesTurned => {
                let parents = self.list(b, &args[0])?;
                let weights = args.get(1).map(|list| self.list(b, list)).transpose()?;
                let trees = Trees::listed(&parents, weights.as_deref(), b.size());
                let turned = expr.op == Op::TreesTurned;
                let all = |trees| if turned { Trees::turned(trees) } else { Trees::of(trees) };
                self.nodes(b, trees.map(all), span)?
            }
            Op::TreesEven => {
                let place = self.trees(b, &args[0])?;
                let trees = self.settle(b, span, b.given_trees(&place))?;
                self.nodes(b, trees.even(), span)?
            }
            Op::TreesAt => {
                let (trees, index) = (self.trees(b, &args[0])?, self.int(b, &args[1])?);
                Value::Tree(self.settle(b, span, trees.tree(index))?)
            }
            Op::TreesWeights => Value::List(self.trees(b, &args[0])?.weights().into()),
            Op::TreesWeightsOf => {
                let (trees, rank) = (self.trees(b, &args[0])?, self.int(b, &args[1])?);
                let root = self.settle(b, args[1].span, b.find_rank(rank))?;
                let weights = self.settle(b, args[1].span, trees.weights_of(root))?;
                Value::List(weights.into())
            }
            Op::GroupsOf => {
                let size = self.int(b, &args[0])?;
                self.membership(b, &Groups::of(size), span)?
            }
            Op::GroupsSizes => {
                let sizes = self.list(b, &args[0])?;
                self.membership(b, &Groups::sizes(sizes.iter().copied()), span)?
            }
            Op::GroupsColors => {
                let colors = self.list(b, &args[0])?;
                self.membership(b, &Groups::colors(colors.iter().copied()), span)?
            }
            Op::GroupsBalanced => self.membership(b, &Groups::balanced(), span)?,
            Op::GroupsNatural => self.membership(b, &b.natural_groups(), span)?,
            Op::GroupsIslands => {
                let topology = self.topology(b, &args[0])?.topology;
                self.membership(b, &Groups::islands(topology), span)?
            }
            Op::GroupsRails => {
                let topology = self.topology(b, &args[0])?.topology;
                self.membership(b, &Groups::rails(topology), span)?
            }
            Op::GroupsMine => {
                let groups = self.groups(b, &args[0])?;
                self.numbers(b, span, groups.mine())?
            }
            Op::GroupsAcross => {
                let groups = self.groups(b, &args[0])?;
                self.numbers(b, span, groups.across())?
            }
            Op::GroupsAt => {
                let (groups, index) = (self.groups(b, &args[0])?, self.int(b, &args[1])?);
                let group = self.settle(b, span, groups.group(index))?;
                self.numbers(b, span, group)?
            }
            Op::Topology(kind, cuts) => self.drawn(b, expr, kind, cuts as usize)?,
            Op::Neighbors => {
                let (topology, rank) = (self.topology(b, &args[0])?, self.int(b, &args[1])?);
                Value::List(self.settle(b, span, topology.neighbors(rank))?.into())
            }
            Op::Relays => {
                let topology = self.topology(b, &args[0])?;
                let (from, to) = (self.int(b, &args[1])?, self.int(b, &args[2])?);
                Value::List(self.settle(b, span, topology.relays(from, to))?.into())
            }
            Op::Missing => Value::List(self.topology(b, &args[0])?.missing().into()),
            Op::Shares => Value::List(self.topology(b, &args[0])?.shares().into()),
            Op::Hubs => Value::List(self.topology(b, &args[0])?.hubs().into()),
            _ => return Ok(None),
        };
        Ok(Some(object))
    }

    /// Evaluates the constructor of a topology.
    fn drawn(
        &mut self,
        b: &mut Builder<'_>,
        expr: &'p Expr,
        kind: ShapeKind,
        cuts: usize,
    ) -> Result<Value, Stop> {
        let (sizes, cuts) = expr.args.split_at(expr.args.len() - 2 * cuts);
        let mut arguments = Vec::with_capacity(sizes.len());
        for arg in sizes {
            arguments.push(match arg.op {
                Op::Rate(rate) => Argument::Rate(rate),
                Op::Time(time) => Argument::Time(time),
                Op::Machine(machine) => Argument::Machine(machine),
                Op::Gpus(model) => Argument::Gpus(model),
                Op::Reducing => Argument::Reducing,
                _ => Argument::Size(match self.value(b, arg)? {
                    Value::List(list) => Size::List(list.to_vec()),
                    Value::Int(size) => Size::One(size),
                    other => unreachable!("checked as a size, is {other:?}"),
                }),
            });
        }
        let mut shape = Shape::new(kind, &arguments);
        for pair in cuts.chunks_exact(2) {
            let (from, to) = (self.int(b, &pair[0])?, self.int(b, &pair[1])?);
            shape = shape.map(|shape| shape.without(from, to));
        }
        Ok(Value::Topology(self.exactly(b, expr.span, |b, at| b.topology(at, shape))?))
    }

    /// Evaluates the value of a parameter that was given from outside.
    pub(super) fn given(
        &self,
        b: &mut Builder<'_>,
        given: &ParamValue,
        span: Span,
    ) -> Result<Value, Stop> {
        Ok(match given {
            ParamValue::Int(value) => Value::Int(*value),
            ParamValue::Bool(value) => Value::Int((*value).into()),
            ParamValue::Ranks(list) => Value::List(list.as_slice().into()),
            ParamValue::Ring(ring) => self.seat(b, ring, span)?,
            ParamValue::Rings(rings) => self.seats(b, rings, span)?,
            ParamValue::Tree(tree) => self.node(b, tree, span)?,
            ParamValue::Trees(trees) => self.nodes(b, Ok(trees.clone()), span)?,
            ParamValue::Groups(groups) => self.membership(b, groups, span)?,
            ParamValue::Topology(topology) => self.site(b, Some(topology), span)?,
        })
    }

    pub(super) fn seat(&self, b: &mut Builder<'_>, ring: &Ring, span: Span) -> Result<Value, Stop> {
        Ok(Value::Ring(self.exactly(b, span, |b, at| b.ring(at, ring))?))
    }

    fn seats(&self, b: &mut Builder<'_>, rings: &Rings, span: Span) -> Result<Value, Stop> {
        Ok(Value::Rings(self.exactly(b, span, |b, at| b.rings(at, rings))?.into()))
    }

    fn node(&self, b: &mut Builder<'_>, tree: &Tree, span: Span) -> Result<Value, Stop> {
        Ok(Value::Tree(self.exactly(b, span, |b, at| b.tree(at, tree))?))
    }

    fn nodes(
        &self,
        b: &mut Builder<'_>,
        trees: Result<Trees, Problem>,
        span: Span,
    ) -> Result<Value, Stop> {
        Ok(Value::Trees(self.exactly(b, span, |b, at| b.trees(at, trees))?))
    }

    fn membership(&self, b: &mut Builder<'_>, groups: &Groups, span: Span) -> Result<Value, Stop> {
        Ok(Value::Groups(self.exactly(b, span, |b, at| b.groups(at, groups))?))
    }

    pub(super) fn site(
        &self,
        b: &mut Builder<'_>,
        given: Option<&Arc<Topology>>,
        span: Span,
    ) -> Result<Value, Stop> {
        Ok(Value::Topology(self.exactly(b, span, |b, at| b.topology_param(at, given))?))
    }

    fn numbers(
        &self,
        b: &mut Builder<'_>,
        span: Span,
        ranks: impl IntoIterator<Item = RankId>,
    ) -> Result<Value, Stop> {
        let numbers: Result<_, Fault> = b.numbers(ranks);
        Ok(Value::List(self.settle(b, span, numbers)?))
    }
}
