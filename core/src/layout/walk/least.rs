//! A lower bound of the steps that statements take, computed without running them. Steps that call steps grow
//! exponentially, so a program that must exceed the budget is refused before it starts.

use super::Walk;
use crate::layout::builder::{Builder, Stop};
use crate::program::ir::{Program, StepId, Stmt, StmtKind};

/// The least number of steps that each step of a program takes, its own call included.
pub(super) struct Least(Vec<u64>);

impl Least {
    /// Computes the bounds. Steps call only steps declared before them, so one pass in the order of the source is
    /// enough.
    pub(super) fn of(program: &Program) -> Self {
        let mut least = Self(Vec::with_capacity(program.steps.len()));
        for step in &program.steps {
            let steps = least.block(&step.body).saturating_add(1);
            least.0.push(steps);
        }
        least
    }

    /// Returns the least number of steps of one call of a step.
    fn step(&self, step: StepId) -> u64 {
        self.0[step.0 as usize]
    }

    /// Returns the least number of steps of a block. A loop whose bounds are not known yet may take none.
    pub(super) fn block(&self, body: &[Stmt]) -> u64 {
        // Most programs declare no steps, and a walk calls this for each loop.
        if self.0.is_empty() {
            return 0;
        }
        let calls = body.iter().map(|stmt| match &stmt.kind {
            StmtKind::Step(step, _) => self.step(*step),
            StmtKind::If(arms, otherwise) => {
                let arms = arms.iter().map(|(_, body)| self.block(body));
                arms.chain([self.block(otherwise)]).min().unwrap_or(0)
            }
            _ => 0,
        });
        calls.fold(0, u64::saturating_add)
    }
}

impl<'p> Walk<'p> {
    /// Runs the whole program.
    pub(super) fn body(&mut self, b: &mut Builder<'_>) -> Result<(), Stop> {
        let body = &self.program.body;
        let mut steps = 0_u64;
        for stmt in body {
            steps = steps.saturating_add(self.least.block(std::slice::from_ref(stmt)));
            b.foresee(stmt.at.0, steps)?;
        }
        self.block(b, body)?;
        self.trace_owed(b);
        Ok(())
    }

    /// Refuses a loop whose iterations call more steps in total than the budget has.
    pub(super) fn repeat(
        &self,
        b: &mut Builder<'_>,
        at: u32,
        times: i64,
        body: &'p [Stmt],
    ) -> Result<(), Stop> {
        let times = u64::try_from(times).unwrap_or(0);
        b.foresee(at, times.saturating_mul(self.least.block(body)))
    }
}
