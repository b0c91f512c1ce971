//! Demands of attributes on the schedule. Every rank makes equal demands, which are kept once. A demand of a called
//! algorithm is about a run of its own, and is ignored here.

use std::sync::Arc;

use super::{At, Builder, Stop};
use crate::diagnostics::{Code, Finding};
use crate::ids::SpanId;
use crate::rational::lcm;
use crate::schedule::demands::Budget;
use crate::topology::Topology;
use crate::values::arith::Fault;
use crate::values::order_class::OrderClass;
use crate::values::resource::Resource;

impl Builder<'_> {
    /// `#[topology(…)]`; a topology that the caller placed the run on comes first.
    pub(crate) fn on_topology(&mut self, at: At, topology: Arc<Topology>) {
        if !self.is_called() {
            self.tables.demands.topology.get_or_insert((topology, SpanId(at)));
        }
    }

    /// `#[deterministic]`, `#[order(…)]`
    pub(crate) fn on_order(&mut self, at: At, class: OrderClass) {
        let called = self.is_called();
        let demands = &mut self.tables.demands.order;
        if !called && !demands.iter().any(|(known, _)| *known == class) {
            demands.push((class, SpanId(at)));
        }
    }

    /// `#[roundings(at_most = most)]`
    pub(crate) fn on_roundings(&mut self, at: At, most: i64) -> Result<(), Stop> {
        let Ok(most) = u32::try_from(most) else {
            let title = format!("at most {most} roundings");
            return Err(self.fail(Finding::new(Code::BadArgument, SpanId(at), title)));
        };
        if !self.is_called() {
            self.tables.demands.roundings.get_or_insert((most, SpanId(at)));
        }
        Ok(())
    }

    /// `#[uneven]`
    pub(crate) fn uneven(&mut self, at: At) {
        if !self.is_called() {
            self.tables.demands.uneven.get_or_insert(SpanId(at));
        }
    }

    /// `require count % of == 0, "why";`: every count of the algorithm that is running is a multiple of `of`.
    pub(crate) fn multiple(&mut self, at: At, of: i64, why: &str) -> Result<(), Stop> {
        let positive = u64::try_from(of).ok().filter(|of| *of > 0);
        let takes = "a divisor of 1 at least";
        let fault = Fault::Argument { function: "require count %", takes, got: of };
        let of = self.settle(at, positive.ok_or(fault))?;
        let all = self.in_counts_of_run(of).and_then(|of| lcm(self.tables.multiple, of));
        self.tables.multiple = self.settle(at, all.ok_or(Fault::Fraction))?;
        self.tables.demands.multiple.get_or_insert_with(|| why.into());
        Ok(())
    }

    /// `#[budget(resource = most)]`
    pub(crate) fn budget(&mut self, at: At, resource: Resource, most: i64) -> Result<(), Stop> {
        let Ok(most) = u64::try_from(most) else {
            let title = format!("a budget of {most} {resource}");
            return Err(self.fail(Finding::new(Code::BadArgument, SpanId(at), title)));
        };
        if self.is_called() {
            return Ok(());
        }
        let at = SpanId(at);
        let budgets = &mut self.tables.demands.budgets;
        if !budgets.iter().any(|b| (b.resource, b.at) == (resource, at)) {
            budgets.push(Budget { resource, most, at });
        }
        Ok(())
    }
}
