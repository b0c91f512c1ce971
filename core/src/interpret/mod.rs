//! The interpreter: walks a checked algorithm once for each rank and calls the same builder that expanded
//! Rust calls. It alone serves `.coll` files, and it knows the exact expression that a fault stands in.

mod advice;
mod eval;
mod fifo;
mod membership;
mod recorded;
mod runs;
mod scalar;

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::check::hir::{
    self, Demand, Expr, Iter, ParamTy, Signal, Step, Stmt, StmtKind, Ty, VarId,
};
use crate::collective::Collective;
use crate::diagnostics::{Code, Diagnostic, Finding};
use crate::ids::{RankId, SpanId};
use crate::schedule::Algorithm;
use crate::schedule::builder::{Builder, Stop};
use crate::schedule::demands::Resource;
use crate::schedule::params::ParamValue;
use crate::schedule::ring::Ring;
use crate::schedule::site::Site;
use crate::schedule::value::{Flag, Int, List, Peer, Piece, Split};
use crate::source::Location;
use crate::source::Span;
use crate::syntax::Source;
use crate::topology::Topology;
use eval::Value;

/// A checked algorithm with values for its parameters, ready to be laid out.
#[derive(Clone, Debug)]
pub struct Interpreted {
    algorithm: Arc<hir::Algorithm>,
    file: String,
    locations: Arc<[Location]>,
    /// The operands of its ops as they are written, where its source is at hand.
    written: Arc<advice::Written>,
    params: BTreeMap<String, ParamValue>,
    topology: Option<Arc<Topology>>,
    /// What the caller demands beside its attributes.
    deterministic: bool,
    budgets: Vec<(Resource, u64)>,
}

impl Interpreted {
    /// An algorithm of `source` with every parameter at its default.
    pub fn new(algorithm: hir::Algorithm, source: &Source) -> Self {
        let locations = algorithm.spans.iter().map(|span| source.location(*span)).collect();
        let written = Arc::new(advice::written(&algorithm, source));
        Self {
            algorithm: Arc::new(algorithm),
            file: source.name().to_owned(),
            locations,
            written,
            params: BTreeMap::new(),
            topology: None,
            deterministic: false,
            budgets: Vec::new(),
        }
    }

    /// An algorithm that another one calls.
    fn called(callee: &hir::Callee, params: BTreeMap<String, ParamValue>) -> Self {
        Self {
            algorithm: callee.algorithm.clone(),
            file: callee.file.clone(),
            locations: callee.locations.clone(),
            written: Arc::default(),
            params,
            topology: None,
            deterministic: false,
            budgets: Vec::new(),
        }
    }

    /// Moves the algorithm to where `written` says that it stands: to its file and places, if its statements are
    /// numbered alike.
    #[must_use]
    pub(crate) fn standing_where<A: Algorithm + ?Sized>(mut self, written: &A) -> Self {
        if written.locations().len() == self.locations.len() {
            written.file().clone_into(&mut self.file);
            self.locations = written.locations().into();
        }
        self
    }

    /// Gives the parameter `name` a value.
    ///
    /// # Errors
    /// A message that says which parameters there are, or which values this one takes.
    pub fn set(&mut self, name: &str, value: ParamValue) -> Result<(), String> {
        let ty = self.param_type(name)?;
        if !value.fits(ty) {
            return Err(format!("parameter `{name}` is {}", ty.takes()));
        }
        self.params.insert(name.to_owned(), value);
        Ok(())
    }

    /// Gives the parameter `name` the value that `text` stands for, as the command line writes it.
    ///
    /// # Errors
    /// A message that says which parameters there are, or which values this one takes.
    pub fn set_text(&mut self, name: &str, text: &str) -> Result<(), String> {
        let value = ParamValue::parse(self.param_type(name)?, text, self.topology.as_ref())?;
        self.set(name, value)
    }

    /// Puts the run on `topology`: every parameter of type `Topology` takes it unless it is set.
    pub fn place_on(&mut self, topology: Arc<Topology>) {
        self.topology = Some(topology);
    }

    /// Demands one order of reduction on every rank.
    pub fn demand_one_order(&mut self) {
        self.deterministic = true;
    }

    /// Demands that no more than `most` of a resource is taken.
    pub fn demand_at_most(&mut self, resource: Resource, most: u64) {
        self.budgets.push((resource, most));
    }

    /// The topology that the run is on, if there is one.
    pub fn topology(&self) -> Option<&Arc<Topology>> {
        self.topology.as_ref()
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
        let regions = advice::regions(&finding, &self.written, &self.locations);
        let help = advice::to_oneself(&self.algorithm, &finding, &self.written).or(finding.help);
        Diagnostic {
            code: finding.code,
            severity: finding.code.severity(),
            title: finding.title,
            primary: finding.exact.unwrap_or_else(|| place(finding.at)),
            label: finding.label,
            others: finding.others.into_iter().map(|(at, label)| (place(at), label)).collect(),
            notes: regions.into_iter().chain(finding.notes).collect(),
            help,
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

    fn placed_on(&self) -> Option<&Arc<Topology>> {
        self.topology.as_ref()
    }

    fn build(&self, builder: &mut Builder<'_>) -> Result<(), Stop> {
        let mut run = Run::new(self, builder)?;
        if self.deterministic {
            builder.deterministic(0)?;
        }
        for (resource, most) in &self.budgets {
            builder.budget(0, *resource, i64::try_from(*most).unwrap_or(i64::MAX))?;
        }
        for param in &self.algorithm.params {
            run.param(builder, param, self)?;
        }
        run.record_params(builder)?;
        run.block(builder, &self.algorithm.body)
    }
}

/// One rank's walk.
struct Run<'a> {
    algorithm: &'a hir::Algorithm,
    vars: Vec<Value>,
    steps: Vec<Option<&'a Step>>,
    local: RankId,
    at: u32,
    /// What the caller put the run on.
    placed: Option<Arc<Topology>>,
}

impl<'a> Run<'a> {
    fn new(of: &'a Interpreted, builder: &Builder<'_>) -> Result<Self, Stop> {
        Ok(Self {
            algorithm: &of.algorithm,
            vars: vec![Value::Unset; of.algorithm.vars.len()],
            steps: vec![None; of.algorithm.vars.len()],
            local: builder.local().0.map_err(|_| Stop)?,
            at: 0,
            placed: builder.placed(),
        })
    }

    /// The algorithm that `run` calls, with its arguments.
    fn called(&mut self, b: &mut Builder<'_>, run: &'a hir::Run) -> Result<Interpreted, Stop> {
        let mut params = BTreeMap::new();
        for (param, value) in &run.args {
            let param = &run.callee.algorithm.params[*param];
            let name = &run.callee.algorithm.vars[param.var.0 as usize].name;
            let value = self.eval(b, value)?;
            params.insert(name.clone(), value.given(b, self.at)?);
        }
        Ok(Interpreted::called(&run.callee, params))
    }

    fn param(
        &mut self,
        b: &mut Builder<'_>,
        param: &'a hir::Param,
        given: &Interpreted,
    ) -> Result<(), Stop> {
        let var = &self.algorithm.vars[param.var.0 as usize];
        let value = match (given.params.get(&var.name), &param.default) {
            (Some(ParamValue::Int(v)), _) => Value::Int(*v),
            (Some(ParamValue::Bool(v)), _) => Value::Bool(*v),
            (Some(ParamValue::Ranks(v)), _) => Value::List(v.as_slice().into()),
            (Some(ParamValue::Ring(v)), _) => self.seat(b, v, var.span)?,
            (Some(ParamValue::Rings(v)), _) => {
                let seats = self.exactly(b, var.span, |b, at| b.rings(at, v))?;
                Value::Rings(b.settle(self.at, seats.0)?.into())
            }
            (Some(ParamValue::Tree(v)), _) => self.tree(b, var.span, |b, at| b.tree(at, v))?,
            (Some(ParamValue::Groups(v)), _) => {
                self.groups(b, var.span, |b, at| b.groups(at, v))?
            }
            (Some(ParamValue::Topology(v)), _) => self.site(b, Some(v), var.span)?,
            (None, _) if param.ty == ParamTy::Topology && self.placed.is_some() => {
                self.site(b, self.placed.as_ref(), var.span)?
            }
            (None, Some(default)) => self.eval(b, default)?,
            (None, None) if param.ty == ParamTy::Ring => {
                self.seat(b, &Ring::natural(), var.span)?
            }
            (None, None) if param.ty == ParamTy::Topology => self.site(b, None, var.span)?,
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
            if !b.is_called()
                && given.params.contains_key(&var.name)
                && let Err(fault) = b.find_rank(*rank)
            {
                let (name, nranks) = (&var.name, b.nranks().get());
                let more = if *rank < 0 { "" } else { ", or run more ranks" };
                let help =
                    format!("`{name}` was set to {rank}: set it to a rank in 0..{nranks}{more}");
                let label = format!("set to {rank}");
                let mut finding = fault.finding(SpanId(0)).label(label).help(help);
                finding.exact = Some(var.span);
                return Err(b.fail(finding));
            }
            b.rank_param(0, Int::from(*rank), var.name == "root")?;
        }
        self.vars[param.var.0 as usize] = value;
        Ok(())
    }

    /// What the builder says of the expression at `span`.
    fn exactly<T>(
        &self,
        b: &mut Builder<'_>,
        span: Span,
        ask: impl FnOnce(&mut Builder<'_>, u32) -> Result<T, Stop>,
    ) -> Result<T, Stop> {
        b.exact = Some(span);
        let answer = ask(b, self.at);
        b.exact = None;
        answer
    }

    fn seat(&self, b: &mut Builder<'_>, ring: &Ring, span: Span) -> Result<Value, Stop> {
        let seat = self.exactly(b, span, |b, at| b.ring(at, ring))?;
        Ok(Value::Ring(b.settle(self.at, seat.0)?))
    }

    fn site(
        &self,
        b: &mut Builder<'_>,
        given: Option<&Arc<Topology>>,
        span: Span,
    ) -> Result<Value, Stop> {
        let site = self.exactly(b, span, |b, at| b.topology_param(at, given))?;
        Ok(Value::Topology(b.settle(self.at, site.0)?))
    }

    fn block(&mut self, b: &mut Builder<'_>, body: &'a [Stmt]) -> Result<(), Stop> {
        body.iter().try_for_each(|stmt| self.stmt(b, stmt))
    }

    fn set(&mut self, var: VarId, value: Value) {
        self.vars[var.0 as usize] = value;
    }

    /// Gives a variable its value, which is not moved through a [`Value`] where it is less than one.
    fn assign(&mut self, b: &mut Builder<'_>, var: VarId, value: &'a Expr) -> Result<(), Stop> {
        match value.ty {
            Ty::Int => {
                let value = self.int(b, value)?;
                self.set(var, Value::Int(value));
            }
            Ty::Bool => {
                let value = self.bool(b, value)?;
                self.set(var, Value::Bool(value));
            }
            Ty::Peer => {
                let value = self.peer(b, value)?;
                self.set(var, Value::Peer(value));
            }
            _ => {
                let value = self.eval(b, value)?;
                self.set(var, value);
            }
        }
        Ok(())
    }

    fn stmt(&mut self, b: &mut Builder<'_>, stmt: &'a Stmt) -> Result<(), Stop> {
        let at = stmt.at.0;
        self.at = at;
        match &stmt.kind {
            StmtKind::Let(var, value) => self.assign(b, *var, value)?,
            StmtKind::For(var, iter, body) => {
                self.nested(b, stmt)?;
                let (range, list) = match iter {
                    Iter::Range(lo, hi) => (self.int(b, lo)?..self.int(b, hi)?, None),
                    Iter::List(list) => {
                        let list = self.list(b, list)?;
                        (0..list.len() as i64, Some(list))
                    }
                };
                b.spend(at, range.start, range.end)?;
                if body.is_empty() {
                    return Ok(());
                }
                for i in range {
                    let value = list.as_ref().map_or(i, |list| list[i as usize]);
                    self.set(*var, Value::Int(value));
                    self.block(b, body)?;
                }
            }
            StmtKind::Parallel(var, lo, hi, body) => {
                self.nested(b, stmt)?;
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
                    self.assign(b, *param, arg)?;
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
            StmtKind::Within(group, body) => {
                let list = List(Ok(self.list(b, group)?.to_vec()));
                b.exact = Some(group.span);
                b.within(at, &list, |b| self.block(b, body))?;
            }
            StmtKind::Run(run) => {
                let called = self.called(b, run)?;
                let (input, output) = (self.region(b, &run.input)?, self.region(b, &run.output)?);
                b.run(at, &called, Piece(Ok(input)), Piece(Ok(output)))?;
            }
            StmtKind::Fifo { like, credits, slices } => {
                self.fifo(b, like, credits.as_ref(), slices.as_ref())?;
            }
            StmtKind::Primitive { primitive, peer, places, onward } => {
                self.primitive(b, *primitive, peer, places, onward.as_ref())?;
            }
            StmtKind::Demand(Demand::Deterministic) => b.deterministic(at)?,
            // What the run was put on is what there is.
            StmtKind::Demand(Demand::Topology(_)) if self.placed.is_some() => {}
            StmtKind::Demand(Demand::Topology(topology)) => {
                let Value::Topology(ground) = self.eval(b, topology)? else {
                    unreachable!("checked as a topology")
                };
                b.on_topology(at, &Site(Ok(ground)))?;
            }
            StmtKind::Demand(Demand::Budget(resource, most)) => {
                let most = self.int(b, most)?;
                b.budget(at, *resource, most)?;
            }
        }
        Ok(())
    }
}
