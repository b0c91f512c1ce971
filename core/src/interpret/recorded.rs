//! What a program asks of the host, kept where another engine is to follow it: see [`crate::schedule::record`].

use super::Run;
use super::eval::Value;
use crate::check::hir::{Expr, ExprKind, ParamTy};
use crate::ids::RankId;
use crate::schedule::arith::Fault;
use crate::schedule::builder::{Builder, Stop};
use crate::schedule::record::{Answer, Argument, Asked, Record};
use crate::source::Span;

impl<'a> Run<'a> {
    /// Keeps a value that only the host can make.
    pub(super) fn record(
        &mut self,
        b: &mut Builder<'_>,
        expr: &'a Expr,
        value: &Value,
    ) -> Result<(), Stop> {
        if let (ExprKind::Relays(topology, from, to), Value::List(relays)) = (&*expr.kind, value) {
            let ground = self.topology(b, topology)?;
            let (from, to) = (self.int(b, from)?, self.int(b, to)?);
            let relays = relays.to_vec();
            note(b, |record| {
                let number = record.topology(&ground);
                record.relays.insert((number, from, to), relays);
            });
            return Ok(());
        }
        let Some(parts) = expr.made_from() else { return Ok(()) };
        let mut args = Vec::with_capacity(parts.len());
        for part in parts {
            args.push(match self.eval(b, part)? {
                Value::Int(value) => Argument::Int(value),
                Value::List(list) => Argument::List(list.to_vec()),
                Value::Topology(ground) => {
                    let mut number = 0;
                    note(b, |record| number = record.topology(&ground));
                    Argument::Topology(number)
                }
                other => unreachable!("objects are made from numbers, not {other:?}"),
            });
        }
        let Some(answer) = self.answer(b, value)? else { return Ok(()) };
        let asked = self.asked(b, expr.span, args);
        note(b, |record| _ = record.objects.insert(asked, answer));
        Ok(())
    }

    /// Keeps the values of the parameters; of an algorithm that another calls, the topologies that nobody wrote.
    pub(super) fn record_params(&mut self, b: &mut Builder<'_>) -> Result<(), Stop> {
        if b.record().is_none() {
            return Ok(());
        }
        for (index, param) in self.algorithm.params.iter().enumerate() {
            let var = &self.algorithm.vars[param.var.0 as usize];
            let value = self.vars[param.var.0 as usize].clone();
            let answer = self.answer(b, &value)?.expect("a parameter has a value");
            if !b.is_called() {
                note(b, |record| record.param(index, &var.name, answer));
            } else if let (ParamTy::Topology, None) = (param.ty, &param.default) {
                let asked = self.asked(b, var.span, Vec::new());
                note(b, |record| _ = record.objects.insert(asked, answer));
            }
        }
        Ok(())
    }

    fn asked(&self, b: &Builder<'_>, span: Span, args: Vec<Argument>) -> Asked {
        Asked {
            algorithm: self.algorithm.name.clone(),
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
            Value::Bool(value) => Answer::Int((*value).into()),
            Value::List(list) => Answer::List(list.to_vec()),
            Value::Ring(chair) => {
                let order = order(b, &chair.order);
                Answer::Ring(b.settle(self.at, order)?)
            }
            Value::Rings(chairs) => {
                let orders = chairs.iter().map(|chair| order(b, &chair.order)).collect();
                Answer::Rings(b.settle(self.at, orders)?)
            }
            Value::Tree(place) => Answer::Tree(place.tree.clone()),
            Value::Groups(place) => Answer::Groups(place.groups.clone()),
            Value::Topology(ground) => {
                let mut number = 0;
                note(b, |record| number = record.topology(ground));
                Answer::Topology(number)
            }
            _ => return Ok(None),
        }))
    }
}

fn note(b: &mut Builder<'_>, keep: impl FnOnce(&mut Record)) {
    if let Some(record) = b.record() {
        keep(record);
    }
}
