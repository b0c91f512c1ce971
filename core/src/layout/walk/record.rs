//! Keeps the answers that a program gets from the host, if another engine is to follow it: see
//! [`crate::layout::record`].

use super::Walk;
use super::values::Value;
use crate::ids::RankId;
use crate::layout::builder::{Builder, Stop};
use crate::layout::record::{Answer, Argument, ObjectQuery, Record};
use crate::program::ir::{Expr, Op};
use crate::source::Span;
use crate::values::arith::Fault;
use crate::values::params::ParamTy;

impl<'p> Walk<'p> {
    /// Keeps an object, or a list, that only the host can make.
    pub(super) fn record(
        &mut self,
        b: &mut Builder<'_>,
        expr: &'p Expr,
        value: &Value,
    ) -> Result<(), Stop> {
        if let (Op::Relays, Value::List(relays)) = (expr.op, value) {
            let ranked = self.topology(b, &expr.args[0])?;
            let (from, to) = (self.int(b, &expr.args[1])?, self.int(b, &expr.args[2])?);
            let relays = relays.to_vec();
            note(b, |record| {
                let number = record.topology(&ranked);
                record.relays.insert((number, from, to), relays);
            });
            return Ok(());
        }
        if !expr.op.searches() {
            return Ok(());
        }
        let mut args = Vec::with_capacity(expr.args.len());
        for arg in expr.args.iter().filter(|arg| !matches!(arg.op, Op::Rate(_) | Op::Time(_))) {
            args.push(match self.value(b, arg)? {
                Value::Int(value) => Argument::Int(value),
                Value::List(list) => Argument::List(list.to_vec()),
                Value::Topology(ranked) => {
                    let mut number = 0;
                    note(b, |record| number = record.topology(&ranked));
                    Argument::Topology(number)
                }
                Value::Trees(place) => {
                    let mut number = 0;
                    note(b, |record| number = record.trees(&place.forest));
                    Argument::Trees(number)
                }
                other => unreachable!("objects are not made from {other:?}"),
            });
        }
        let Some(answer) = self.answer(b, value)? else { return Ok(()) };
        let asked = self.question(b, expr.span, args);
        note(b, |record| _ = record.objects.insert(asked, answer));
        Ok(())
    }

    /// Keeps the values of the parameters; of a called program, the topologies that no default gives.
    pub(super) fn record_params(&mut self, b: &mut Builder<'_>) -> Result<(), Stop> {
        if b.record().is_none() {
            return Ok(());
        }
        for (index, param) in self.program.params.iter().enumerate() {
            let var = self.program.var(param.var);
            let value = self.vars[param.var.index()].clone();
            let answer = self.answer(b, &value)?.expect("a parameter has a value");
            if !b.is_called() {
                note(b, |record| record.param(index, &var.name, answer));
            } else if let (ParamTy::Topology, None) = (param.ty, &param.default) {
                let asked = self.question(b, var.span, Vec::new());
                note(b, |record| _ = record.objects.insert(asked, answer));
            }
        }
        Ok(())
    }

    fn question(&self, b: &Builder<'_>, span: Span, args: Vec<Argument>) -> ObjectQuery {
        ObjectQuery {
            algorithm: self.program.name.clone(),
            place: (span.lo, span.hi),
            size: b.size(),
            members: b.seen(),
            args,
        }
    }

    fn answer(&self, b: &mut Builder<'_>, value: &Value) -> Result<Option<Answer>, Stop> {
        let order = |b: &Builder<'_>, order: &[RankId]| -> Result<Vec<i64>, Fault> {
            b.numbers(order.iter().copied())
        };
        Ok(Some(match value {
            Value::Int(value) => Answer::Int(*value),
            Value::List(list) => Answer::List(list.to_vec()),
            Value::Ring(ring) => {
                let order = order(b, &ring.order);
                Answer::Ring(b.settle(self.at, order)?)
            }
            Value::Rings(rings) => {
                let orders = rings.iter().map(|ring| order(b, &ring.order)).collect();
                Answer::Rings(b.settle(self.at, orders)?)
            }
            Value::Tree(place) => Answer::Tree(place.tree.clone()),
            Value::Trees(place) => {
                let mut number = 0;
                note(b, |record| number = record.trees(&place.forest));
                Answer::Trees(number)
            }
            Value::Groups(place) => Answer::Groups(place.groups.clone()),
            Value::Topology(ranked) => {
                let mut number = 0;
                note(b, |record| number = record.topology(ranked));
                Answer::Topology(number)
            }
            _ => return Ok(None),
        }))
    }
}

impl Op {
    /// Whether the op makes an object that needs a search or a table.
    fn searches(self) -> bool {
        matches!(
            self,
            Self::RingTwisted
                | Self::RingAround
                | Self::RingsChannels
                | Self::RingsDisjoint
                | Self::Tree(_)
                | Self::TreeDoubleBinary
                | Self::TreeParents
                | Self::Trees(_)
                | Self::TreesDoubleBinary
                | Self::TreesParents
                | Self::TreesTurned
                | Self::TreesEven
                | Self::GroupsOf
                | Self::GroupsSizes
                | Self::GroupsColors
                | Self::GroupsBalanced
                | Self::GroupsIslands
                | Self::GroupsRails
                | Self::Topology(..)
        )
    }
}

fn note(b: &mut Builder<'_>, keep: impl FnOnce(&mut Record)) {
    if let Some(record) = b.record() {
        keep(record);
    }
}
