//! What attributes demand of the schedule in the making. Every rank says the same; it is kept once. What a
//! called algorithm demands is of a run of its own.

use super::{At, Builder, Stop};
use crate::diagnostics::{Code, Finding};
use crate::ids::SpanId;
use crate::rational::lcm;
use crate::schedule::arith::Fault;
use crate::schedule::demands::{Budget, Resource};
use crate::schedule::site::Site;
use crate::schedule::value::Int;

impl Builder<'_> {
    /// `#[topology(…)]`; what the caller puts the run on stands before it.
    pub fn on_topology(&mut self, at: At, site: &Site) -> Result<(), Stop> {
        if self.is_called() {
            return Ok(());
        }
        let topology = self.settle(at, site.0.clone())?.topology;
        self.tables.demands.topology.get_or_insert((topology, SpanId(at)));
        Ok(())
    }

    /// `#[deterministic]`
    pub fn deterministic(&mut self, at: At) -> Result<(), Stop> {
        if !self.is_called() {
            self.tables.demands.deterministic.get_or_insert(SpanId(at));
        }
        Ok(())
    }

    /// `require count % of == 0, "why";`: every count of the algorithm that is running is a multiple of `of`.
    pub fn multiple(&mut self, at: At, of: impl Into<Int>, why: &str) -> Result<(), Stop> {
        let of = self.settle(at, of.into().0)?;
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
    pub fn budget(&mut self, at: At, resource: Resource, most: impl Into<Int>) -> Result<(), Stop> {
        let most = self.settle(at, most.into().0)?;
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
