//! One rank's walk through a program: it runs loops, computes expressions, and gives every op to the builder, which
//! lays out this rank alone. A fault is reported at its exact expression.

mod changes;
mod escape;
mod fifo;
mod least;
mod loop_values;
mod objects;
pub mod trace;
mod values;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::sync::Arc;

use crate::diagnostics::{Code, Finding};
use crate::ids::{RankId, SpanId};
use crate::layout::builder::fifo::{CREDITS, SLICES};
use crate::layout::builder::{Builder, Stop};
use crate::program::ir::{Call, Demand, Expr, Param, Program, Stmt, StmtKind, VarId};
use crate::source::Span;
use crate::topology::Topology;
use crate::values::arith::Fault;
use crate::values::params::{ParamTy, ParamValue};
use crate::values::ring::Ring;
use changes::Change;
pub(super) use escape::Origin;
use least::Least;
use trace::Trace;
use values::Value;

/// The values given to a program's parameters, by their index; the other parameters take their defaults.
pub(super) type Given = BTreeMap<usize, ParamValue>;

/// Lays out the rank of `builder` by the program, with the values `given` for its parameters.
pub(super) fn walk(
    program: &Program,
    given: &Given,
    builder: &mut Builder<'_>,
    origin: Origin,
) -> Result<(), Stop> {
    walk_on(program, given, builder, origin, None).map(drop)
}

/// Walks the program, adds to `trace` if there is one, and returns it.
fn walk_on(
    program: &Program,
    given: &Given,
    builder: &mut Builder<'_>,
    origin: Origin,
    trace: Option<Trace>,
) -> Result<Option<Trace>, Stop> {
    let mut walk = Walk::new(program, given, builder, origin)?;
    walk.trace = trace;
    walk.body(builder)?;
    Ok(walk.trace)
}

/// Returns the values that the rank of `builder` looks up on its walk.
pub(super) fn traced(
    program: &Program,
    given: &Given,
    builder: &mut Builder<'_>,
) -> Result<Trace, Stop> {
    let mut walk = Walk::new(program, given, builder, Origin::Source)?;
    let mut trace = Trace::default();
    for param in &program.params {
        if let Value::Int(value) = walk.vars[param.var.index()] {
            trace.params.insert(param.var, value);
        }
    }
    walk.trace = Some(trace);
    walk.body(builder)?;
    Ok(walk.trace.unwrap_or_default())
}

/// Returns the arguments of the first call among a program's statements, as the rank of `builder` computes them.
pub(super) fn only_call(
    program: &Program,
    given: &Given,
    builder: &mut Builder<'_>,
) -> Result<Option<Given>, Stop> {
    let mut walk = Walk::new(program, given, builder, Origin::Source)?;
    for stmt in &program.body {
        if let StmtKind::Call(call) = &stmt.kind {
            walk.at = stmt.at.0;
            return walk.args(builder, call).map(Some);
        }
    }
    Ok(None)
}

/// The state of a walk.
struct Walk<'p> {
    program: &'p Program,
    origin: Origin,
    vars: Vec<Value>,
    /// The variables of the loops around the statement, from the outermost on.
    loops: Vec<VarId>,
    local: RankId,
    /// The number of ranks of the whole run.
    ranks: u32,
    /// The statement that is being run.
    at: u32,
    /// Whether faults are not reported, as the computed expression may never be reached.
    quiet: bool,
    /// The topology that the run was placed on.
    placed: Option<Arc<Topology>>,
    least: Least,
    /// The values looked up so far, where a trace is asked for.
    trace: Option<Trace>,
    /// The change of each variable's value from rank to rank, where changes are followed.
    changes: Vec<Change>,
}

impl<'p> Walk<'p> {
    /// Returns a walk at the start of the program, with the values of its parameters.
    fn new(
        program: &'p Program,
        given: &Given,
        b: &mut Builder<'_>,
        origin: Origin,
    ) -> Result<Self, Stop> {
        let mut walk = Self {
            program,
            origin,
            vars: vec![Value::Unset; program.vars.len()],
            loops: Vec::new(),
            local: b.local(),
            ranks: b.ranks_of_run(),
            at: 0,
            quiet: false,
            placed: b.placed(),
            least: Least::of(program),
            trace: None,
            changes: b.changes(program.vars.len()),
        };
        let mut args = b.changed_args();
        for (index, param) in program.params.iter().enumerate() {
            walk.param(b, param, given.get(&index))?;
            walk.param_changes(b, param, args.remove(&index), given.contains_key(&index))?;
        }
        Ok(walk)
    }

    fn param(
        &mut self,
        b: &mut Builder<'_>,
        param: &'p Param,
        given: Option<&ParamValue>,
    ) -> Result<(), Stop> {
        let var = self.program.var(param.var);
        let value = match (given, &param.default) {
            (Some(given), _) => self.given(b, given, var.span)?,
            (None, _) if param.ty == ParamTy::Topology && self.placed.is_some() => {
                self.site(b, self.placed.as_ref(), var.span)?
            }
            (None, Some(default)) => self.value(b, default)?,
            (None, None) if param.ty == ParamTy::Ring => {
                self.seat(b, &Ring::natural(), var.span)?
            }
            (None, None) if param.ty == ParamTy::Topology => self.site(b, None, var.span)?,
            (None, None) => {
                let title = format!("parameter `{}` has no value", var.name);
                let help =
                    format!("give it a default, or set it to {} when you run it", param.ty.takes());
                let finding = Finding::new(Code::BadParameter, SpanId(0), title).help(help);
                return Err(self.fail(b, var.span, finding));
            }
        };
        if let (ParamTy::Rank, Value::Int(rank)) = (param.ty, &value) {
            if !b.is_called()
                && given.is_some()
                && let Err(fault) = b.find_rank(*rank)
            {
                let (name, nranks) = (&var.name, b.size());
                let more = if *rank < 0 { "" } else { ", or run more ranks" };
                let help =
                    format!("`{name}` was set to {rank}: set it to a rank in 0..{nranks}{more}");
                let finding = fault.finding(SpanId(0)).label(format!("set to {rank}")).remedy(help);
                return Err(self.fail(b, var.span, finding));
            }
            b.rank_param(0, *rank, var.name == "root")?;
        }
        self.set(param.var, value);
        Ok(())
    }

    fn set(&mut self, var: VarId, value: Value) {
        self.vars[var.index()] = value;
    }

    fn block(&mut self, b: &mut Builder<'_>, body: &'p [Stmt]) -> Result<(), Stop> {
        body.iter().try_for_each(|stmt| self.stmt(b, stmt))
    }

    fn stmt(&mut self, b: &mut Builder<'_>, stmt: &'p Stmt) -> Result<(), Stop> {
        let done = self.run(b, stmt);
        if done.is_err() || b.is_watched() {
            b.end(stmt.at.0, || self.loop_values(stmt));
        }
        done
    }

    fn run(&mut self, b: &mut Builder<'_>, stmt: &'p Stmt) -> Result<(), Stop> {
        let at = stmt.at.0;
        self.at = at;
        match &stmt.kind {
            StmtKind::Let(var, value) => {
                self.follow(b, *var, value)?;
                let value = self.value(b, value)?;
                self.set(*var, value);
            }
            StmtKind::Limit(loops) => {
                let bounds: Vec<_> = loops
                    .iter()
                    .map(|(lo, hi)| (self.foreseen(b, lo), self.foreseen(b, hi)))
                    .collect();
                b.nested(at, &bounds)?;
            }
            StmtKind::For(var, lo, hi, body) => {
                self.still(b, [lo, hi], "the bounds of this loop")?;
                let (lo, hi) = (self.int(b, lo)?, self.int(b, hi)?);
                self.repeat(b, at, hi.saturating_sub(lo), body)?;
                b.spend(at, lo, hi)?;
                if !body.is_empty() {
                    for value in lo..hi {
                        self.set(*var, Value::Int(value));
                        self.enter(value - lo, stmt);
                        self.block(b, body)?;
                        self.leave();
                    }
                }
            }
            StmtKind::Each(var, ranks, body) => {
                self.still(b, [ranks], "the ranks of this loop")?;
                let list = self.list(b, ranks)?;
                self.repeat(b, at, list.len() as i64, body)?;
                b.spend(at, 0, list.len() as i64)?;
                self.trace_list(ranks, &list);
                for (number, value) in (0..).zip(list.iter()) {
                    self.set(*var, Value::Int(*value));
                    self.enter(number, stmt);
                    self.block(b, body)?;
                    self.leave();
                }
            }
            StmtKind::Parallel(var, lo, hi, body) => {
                self.still(b, [lo, hi], "the bounds of this loop")?;
                let (lo, hi) = (self.int(b, lo)?, self.int(b, hi)?);
                self.repeat(b, at, hi.saturating_sub(lo), body)?;
                b.parallel(at, lo, hi, |b, value| {
                    self.set(*var, Value::Int(value));
                    self.enter(value - lo, stmt);
                    let done = self.block(b, body);
                    self.leave();
                    done
                })?;
            }
            StmtKind::If(arms, otherwise) => {
                for (arm, (condition, body)) in arms.iter().enumerate() {
                    self.still(b, [condition], "this condition")?;
                    if self.holds(b, condition)? {
                        self.trace_arm(stmt, arm);
                        return self.block(b, body);
                    }
                }
                self.trace_arm(stmt, arms.len());
                self.block(b, otherwise)?;
            }
            StmtKind::Require(condition, why) => {
                self.still(b, [condition], "this condition")?;
                let holds = self.holds(b, condition)?;
                b.require(at, holds, why)?;
            }
            StmtKind::Scratch(var, count, like, wide) => {
                self.still(b, count.as_ref(), "the number of slots")?;
                let value = self.scratch(b, (*var, *wide), count.as_ref(), like)?;
                self.trace_scratch(stmt, &value);
                self.set(*var, value);
            }
            StmtKind::Step(step, args) => {
                let step = &self.program.steps[step.0 as usize];
                b.step(at)?;
                for (param, arg) in step.params.iter().zip(args) {
                    self.follow(b, *param, arg)?;
                    let value = self.value(b, arg)?;
                    self.set(*param, value);
                }
                self.enter_call(at);
                self.block(b, &step.body)?;
                self.leave_call();
            }
            StmtKind::Copy(src, dsts) => {
                self.turned_places(b, std::iter::once(src).chain(dsts))?;
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
                self.trace_move(b, stmt);
            }
            StmtKind::Reduce(srcs, dst) => {
                self.turned_places(b, srcs.iter().chain([dst]))?;
                match &srcs[..] {
                    [src] => {
                        let (src, dst) = (self.place(b, src)?, self.place(b, dst)?);
                        b.reduce(at, &[src], dst)?;
                    }
                    _ => {
                        let srcs = self.places(b, srcs)?;
                        let dst = self.place(b, dst)?;
                        b.reduce(at, &srcs, dst)?;
                    }
                }
                self.trace_move(b, stmt);
            }
            StmtKind::Switch(src, dst) => {
                self.outside(b, src, "a switch moves data of all ranks at once")?;
                let (src, dst) = (self.switch_end(b, src)?, self.switch_end(b, dst)?);
                b.switch(at, src, dst)?;
            }
            StmtKind::Post(kind, peer) => {
                self.turned_peer(b, peer)?;
                let peer = self.rank(b, peer)?;
                b.post(at, peer, *kind)?;
            }
            StmtKind::Wait(kind, peer) => {
                self.turned_peer(b, peer)?;
                let peer = self.rank(b, peer)?;
                b.wait(at, peer, *kind)?;
            }
            StmtKind::Within(ranks, body) => {
                let digits = self.group_digits(b, ranks)?;
                let list = self.list(b, ranks)?;
                b.exact = self.exact(ranks.span);
                let mut member = false;
                b.within(at, &list, |b| {
                    member = true;
                    if self.trace.is_some() {
                        self.trace_group(stmt, &b.seen().unwrap_or_default());
                    }
                    b.seeing(digits, |b| self.block(b, body))
                })?;
                if !member {
                    self.trace_group(stmt, &[]);
                }
            }
            StmtKind::Call(call) => {
                self.follow_args(b, call)?;
                let (program, given) = (&*call.program, self.args(b, call)?);
                let (input, output) = (self.region(b, &call.input)?, self.region(b, &call.output)?);
                self.enter_call(at);
                // The values that the caller looked up so far, to which the callee adds.
                let trace = RefCell::new(self.trace.take());
                // Whether the callee's input and output are the rank's own blocks of a region.
                let (blocks, origin) = (Cell::new([false; 2]), self.origin);
                let body = |b: &mut Builder<'_>| {
                    blocks.set(b.blocks());
                    trace.replace(walk_on(program, &given, b, origin, trace.take())?);
                    Ok(())
                };
                b.run(at, program, (input, output), body)?;
                let blocks = blocks.get();
                self.trace = trace.into_inner();
                self.leave_call();
                self.trace_bounds(stmt, blocks);
            }
            StmtKind::Fifo(like, credits, slices) => {
                self.still(b, credits.iter().chain(slices), "this option of the fifo")?;
                let shape = self.value(b, like)?;
                let credits = self.option(b, "credits", credits.as_ref(), CREDITS)?;
                let slices = self.option(b, "slices", slices.as_ref(), SLICES)?;
                match shape {
                    Value::Region(like) => b.fifo(at, &like, credits, slices)?,
                    Value::Pieces(like) => b.fifo_blocks(at, &like, credits, slices)?,
                    other => unreachable!("checked as a region, is {other:?}"),
                }
            }
            StmtKind::Pass(pass) => {
                self.turned_pass(b, pass)?;
                self.pass(b, stmt, pass)?;
            }
            StmtKind::Demand(Demand::Order(class)) => b.on_order(at, *class),
            StmtKind::Demand(Demand::Roundings(most)) => {
                self.still(b, [most], "this demand")?;
                let most = self.int(b, most)?;
                b.on_roundings(at, most)?;
            }
            StmtKind::Demand(Demand::Uneven) => b.uneven(at),
            // The topology that the run was placed on replaces the author's.
            StmtKind::Demand(Demand::Links(_)) if self.placed.is_some() => {}
            StmtKind::Demand(Demand::Links(topology)) => {
                self.outside(b, topology, "links between ranks are demanded")?;
                let ranked = self.topology(b, topology)?;
                b.on_topology(at, ranked.topology);
            }
            StmtKind::Demand(Demand::AtMost(resource, most)) => {
                self.still(b, [most], "this demand")?;
                let most = self.int(b, most)?;
                b.budget(at, *resource, most)?;
            }
            StmtKind::Demand(Demand::Multiple(of, why)) => {
                self.still(b, [of], "this demand")?;
                let of = self.int(b, of)?;
                b.multiple(at, of, why)?;
            }
        }
        Ok(())
    }

    fn scratch(
        &mut self,
        b: &mut Builder<'_>,
        (var, wide): (VarId, bool),
        count: Option<&'p Expr>,
        like: &'p Expr,
    ) -> Result<Value, Stop> {
        let at = self.at;
        let count = count.map(|count| self.int(b, count)).transpose()?;
        let name = (&*self.program.var(var).name, wide);
        Ok(match (self.value(b, like)?, count) {
            (Value::Region(like), None) => Value::Region(b.scratch(at, name, like)?),
            (Value::Region(like), Some(count)) => {
                Value::Pieces(b.scratch_slots(at, name, count, like)?)
            }
            (Value::Pieces(like), count) => {
                Value::Pieces(b.scratch_blocks(at, name, count.unwrap_or(1), &like)?)
            }
            (other, _) => unreachable!("checked as a region, is {other:?}"),
        })
    }

    /// Returns the values that a call gives to parameters.
    fn args(&mut self, b: &mut Builder<'_>, call: &'p Call) -> Result<Given, Stop> {
        let mut given = Given::new();
        for (index, expr) in &call.args {
            let value = self.value(b, expr)?;
            given.insert(*index, value.given(b, call.program.params[*index].ty, self.at)?);
        }
        Ok(given)
    }

    /// Asks the builder, and reports its fault at the expression at `span`.
    fn exactly<T>(
        &self,
        b: &mut Builder<'_>,
        span: Span,
        ask: impl FnOnce(&mut Builder<'_>, u32) -> Result<T, Stop>,
    ) -> Result<T, Stop> {
        b.exact = self.exact(span);
        let answer = ask(b, self.at);
        b.exact = None;
        answer
    }

    /// Returns the value, or reports the fault at its expression.
    fn settle<T>(
        &self,
        b: &mut Builder<'_>,
        span: Span,
        value: Result<T, Fault>,
    ) -> Result<T, Stop> {
        value.map_err(|fault| self.fault(b, span, fault))
    }

    #[cold]
    fn fault(&self, b: &mut Builder<'_>, span: Span, fault: Fault) -> Stop {
        self.fail(b, span, fault.finding(SpanId(self.at)))
    }

    fn fail(&self, b: &mut Builder<'_>, span: Span, mut finding: Finding) -> Stop {
        if self.quiet {
            return Stop;
        }
        finding.exact = self.exact(span);
        b.fail(finding)
    }

    /// Returns the place of an expression, where its source is at hand.
    fn exact(&self, span: Span) -> Option<Span> {
        matches!(self.origin, Origin::Source).then_some(span)
    }
}
