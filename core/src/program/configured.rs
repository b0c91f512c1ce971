//! A checked algorithm, ready to be laid out: with values for its parameters, on a topology, under demands.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::ir::{self, Program};
use super::lower::lower;
use super::walk::trace::Trace;
use super::{advice, walk};
use crate::check::hir;
use crate::collective::Collective;
use crate::diagnostics::{Diagnostic, Finding};
use crate::ids::SpanId;
use crate::schedule::builder::{Builder, Stop};
use crate::schedule::demands::Resource;
use crate::schedule::params::{ParamTy, ParamValue};
use crate::schedule::{Algorithm, Limits};
use crate::source::Location;
use crate::syntax::Source;
use crate::topology::Topology;

/// A checked algorithm with values for its parameters, ready to be laid out.
#[derive(Clone, Debug)]
pub struct Configured {
    algorithm: Arc<hir::Algorithm>,
    program: Arc<Program>,
    /// The operands of its ops as they are written, where its source is at hand.
    written: Arc<advice::Written>,
    params: BTreeMap<String, ParamValue>,
    topology: Option<Arc<Topology>>,
    /// What the caller demands beside its attributes.
    deterministic: bool,
    budgets: Vec<(Resource, u64)>,
}

impl Configured {
    /// An algorithm of `source` with every parameter at its default.
    pub fn new(algorithm: hir::Algorithm, source: &Source) -> Self {
        let locations = algorithm.spans.iter().map(|span| source.location(*span)).collect();
        let program = Arc::new(lower(&algorithm, source.name(), locations));
        let written = Arc::new(advice::written(&algorithm, source));
        Self {
            algorithm: Arc::new(algorithm),
            program,
            written,
            params: BTreeMap::new(),
            topology: None,
            deterministic: false,
            budgets: Vec::new(),
        }
    }

    /// An algorithm that another one calls, with the values that it gives to parameters, by their index.
    pub(super) fn called(callee: &hir::Callee, given: Vec<(usize, ParamValue)>) -> Self {
        let program = lower(&callee.algorithm, &callee.file, callee.locations.clone());
        let name = |index: usize| {
            let param: &ir::Param = &program.params[index];
            program.vars[param.var.0 as usize].name.clone()
        };
        let params = given.into_iter().map(|(index, value)| (name(index), value)).collect();
        Self {
            algorithm: callee.algorithm.clone(),
            program: Arc::new(program),
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
        if written.locations().len() == self.program.locations.len() {
            let program = Arc::make_mut(&mut self.program);
            written.file().clone_into(&mut program.file);
            program.locations = written.locations().into();
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

    /// What every rank does.
    pub fn program(&self) -> &Arc<Program> {
        &self.program
    }

    /// The values that are given to parameters, by their index.
    pub(super) fn given(&self) -> Vec<(usize, ParamValue)> {
        let name = |p: &ir::Param| &self.program.vars[p.var.0 as usize].name;
        let params = self.program.params.iter().enumerate();
        params.filter_map(|(i, p)| Some((i, self.params.get(name(p))?.clone()))).collect()
    }

    /// What each rank looks up on its walk, for exports that keep the loops of the program.
    pub(crate) fn traces(&self, nranks: u32) -> Result<Vec<Trace>, Vec<Finding>> {
        let tracing = Tracing { whose: self, traces: RefCell::default() };
        tracing.schedule_within(nranks, Limits::FULL)?;
        Ok(tracing.traces.into_inner())
    }

    /// The checked algorithm.
    pub fn checked(&self) -> &hir::Algorithm {
        &self.algorithm
    }

    /// A finding of one of this algorithm's schedules, at its place in the source.
    pub fn diagnostic(&self, finding: Finding, nranks: u32) -> Diagnostic {
        let place = |at: SpanId| self.algorithm.spans.get(at.index()).copied().unwrap_or_default();
        let regions = advice::regions(&finding, &self.written, &self.program.locations);
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

impl Algorithm for Configured {
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
        &self.program.file
    }

    fn source(&self) -> &str {
        &self.algorithm.source
    }

    fn locations(&self) -> &[Location] {
        &self.program.locations
    }

    fn placed_on(&self) -> Option<&Arc<Topology>> {
        self.topology.as_ref()
    }

    fn build(&self, builder: &mut Builder<'_>) -> Result<(), Stop> {
        if self.deterministic {
            builder.deterministic(0)?;
        }
        for (resource, most) in &self.budgets {
            builder.budget(0, *resource, i64::try_from(*most).unwrap_or(i64::MAX))?;
        }
        walk::walk(&self.program, &self.given(), builder)
    }
}

/// Lays out an algorithm, and keeps what every rank looks up.
struct Tracing<'a> {
    whose: &'a Configured,
    traces: RefCell<Vec<Trace>>,
}

impl Algorithm for Tracing<'_> {
    fn name(&self) -> &str {
        self.whose.name()
    }

    fn collective(&self) -> Collective {
        self.whose.collective()
    }

    fn out_of_place(&self) -> bool {
        self.whose.out_of_place()
    }

    fn file(&self) -> &str {
        self.whose.file()
    }

    fn source(&self) -> &str {
        self.whose.source()
    }

    fn locations(&self) -> &[Location] {
        self.whose.locations()
    }

    fn placed_on(&self) -> Option<&Arc<Topology>> {
        self.whose.placed_on()
    }

    fn build(&self, builder: &mut Builder<'_>) -> Result<(), Stop> {
        let trace = walk::traced(&self.whose.program, &self.whose.given(), builder)?;
        self.traces.borrow_mut().push(trace);
        Ok(())
    }
}
