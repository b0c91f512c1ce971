//! A checked algorithm, ready to be laid out: with values for its parameters, on a topology, under demands.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::advice;
use super::assembly::walk_ranks;
use super::loop_values::with_loop_values;
use super::roots::{self, Roots, RootsAt};
use super::walk::trace::Trace;
use super::walk::{self, Given, Origin};
use crate::collective::Collective;
use crate::diagnostics::{Diagnostic, Finding};
use crate::ids::SpanId;
use crate::layout::builder::{Builder, Stop};
use crate::layout::{Algorithm, Limits};
use crate::program::ir::{Expr, Op, Program};
use crate::source::{Location, Span};
use crate::syntax::Source;
use crate::topology::Topology;
use crate::values::order_class::OrderClass;
use crate::values::params::{ParamTy, ParamValue};
use crate::values::resource::Resource;
use crate::values::ring::Ring;

/// A checked algorithm with values for its parameters, ready to be laid out.
#[derive(Clone, Debug)]
pub struct Configured {
    program: Arc<Program>,
    /// The source texts of the algorithm, where its source is at hand.
    written: Arc<advice::SourceTexts>,
    given: Given,
    /// The values that were given as texts, by the numbers of the parameters.
    texts: BTreeMap<usize, String>,
    topology: Option<Arc<Topology>>,
    /// The caller's demands, beside those of attributes.
    order: Vec<OrderClass>,
    roundings: Option<u32>,
    budgets: Vec<(Resource, u64)>,
}

impl Configured {
    /// An algorithm of `source` with every parameter at its default.
    pub fn new(program: Program, source: &Source) -> Self {
        let written = Arc::new(advice::written(&program, source));
        Self { written, ..Self::called(Arc::new(program), Given::new()) }
    }

    /// An algorithm that another algorithm calls, with the values that the caller gives to parameters.
    pub(super) fn called(program: Arc<Program>, given: Given) -> Self {
        Self {
            program,
            written: Arc::default(),
            given,
            texts: BTreeMap::new(),
            topology: None,
            order: Vec::new(),
            roundings: None,
            budgets: Vec::new(),
        }
    }

    /// Gives the parameter `name` a value.
    ///
    /// # Errors
    /// A message that lists the parameters, or the values that this parameter takes.
    pub fn set(&mut self, name: &str, value: ParamValue) -> Result<(), String> {
        let (index, ty) = self.param(name)?;
        if !value.fits(ty) {
            return Err(format!("parameter `{name}` is {}", ty.takes()));
        }
        self.given.insert(index, value);
        self.texts.remove(&index);
        Ok(())
    }

    /// Gives the parameter `name` the value of `text`, in the form of the command line.
    ///
    /// # Errors
    /// A message that lists the parameters, or the values that this parameter takes.
    pub fn set_text(&mut self, name: &str, text: &str) -> Result<(), String> {
        let (index, ty) = self.param(name)?;
        let value = ParamValue::parse(ty, text, self.topology.as_ref());
        let refused = |why| format!("parameter `{name}: {}`: {why}", ty.name());
        self.set(name, value.map_err(refused)?)?;
        self.texts.insert(index, text.trim().to_owned());
        Ok(())
    }

    /// Returns the value of a parameter as it was set, or as `source` writes its default; `None` where the source says
    /// elsewhere what it is.
    fn value_text(&self, index: usize, source: &Source) -> Option<String> {
        const LONGEST: usize = 100;
        let param = &self.program.params[index];
        let text = match (self.texts.get(&index), self.given.get(&index), &param.default) {
            (Some(text), ..) => text.clone(),
            (_, Some(ParamValue::Int(value)), _) => value.to_string(),
            (_, Some(ParamValue::Bool(value)), _) => value.to_string(),
            (_, Some(_), _) => return None,
            (.., Some(Expr { op: Op::GroupsNatural, .. })) => self.natural_text(),
            (.., Some(default)) => source.text_at(default.span),
            (.., None) if param.ty == ParamTy::Ring => "natural".to_owned(),
            (.., None) => self.topology.as_ref()?.name().to_owned(),
        };
        match text.char_indices().nth(LONGEST) {
            Some((end, _)) => Some(format!("{}…", &text[..end])),
            None => Some(text),
        }
    }

    /// Returns the groups that `Groups::natural()` stands for on the topology of the run, in words.
    fn natural_text(&self) -> String {
        match self.topology.as_ref().map(|topology| topology.islands().len()) {
            None => "balanced".to_owned(),
            Some(0 | 1) => "balanced, for the topology is one island".to_owned(),
            Some(islands) => format!("the {islands} islands of the topology"),
        }
    }

    /// Returns the parameter values that `proofs` hold for, such as `root 0..=3`, `slices = 8` and `ring = natural`, as
    /// `source` writes them. Rings are left out where they are proved in `any_order`.
    pub fn held_values(&self, source: &Source, proofs: &[RootsAt], any_order: bool) -> Vec<String> {
        let params = self.program.params.iter().enumerate();
        let held = params.filter_map(|(index, param)| {
            let name = &*self.program.var(param.var).name;
            if name == "root" && self.collective().is_rooted() {
                return Some(roots::text(proofs));
            }
            if any_order && param.ty == ParamTy::Ring {
                return None;
            }
            Some(format!("{name} = {}", self.value_text(index, source)?))
        });
        held.collect()
    }

    /// Returns the roots with which the algorithm is to be proved.
    pub fn roots(&self) -> Roots {
        let free = |(index, _): &(usize, ParamTy)| !self.given.contains_key(index);
        let root = self.param("root").ok().filter(free).filter(|_| self.collective().is_rooted());
        let Some((index, _)) = root else { return Roots::fixed() };
        Roots::any(match &self.program.params[index].default {
            Some(Expr { op: Op::Int(own), .. }) => Some(u32::try_from(*own).unwrap_or(0)),
            Some(_) => None,
            None => Some(0),
        })
    }

    /// Returns the algorithm with a root, if one is to be set.
    #[must_use]
    pub fn with_root(&self, root: Option<u32>) -> Self {
        let mut with = self.clone();
        if let (Some(root), Ok((index, _))) = (root, self.param("root")) {
            with.given.insert(index, ParamValue::Int(i64::from(root)));
        }
        with
    }

    /// Places the run on `topology`: every parameter of type `Topology` takes it unless it is set.
    pub fn place_on(&mut self, topology: Arc<Topology>) {
        self.topology = Some(topology);
    }

    /// Demands that reductions keep a promise about their order.
    pub fn demand_order(&mut self, class: OrderClass) {
        self.order.push(class);
    }

    /// Demands that no result in a type narrower than f32 is rounded more than `most` times.
    pub fn demand_roundings(&mut self, most: u32) {
        self.roundings = Some(most);
    }

    /// Demands that at most `most` of a resource is used.
    pub fn demand_at_most(&mut self, resource: Resource, most: u64) {
        self.budgets.push((resource, most));
    }

    /// The topology that the run is on, if there is one.
    pub fn topology(&self) -> Option<&Arc<Topology>> {
        self.topology.as_ref()
    }

    /// The index and the type of the parameter `name`.
    fn param(&self, name: &str) -> Result<(usize, ParamTy), String> {
        let params = self.program.params.iter().map(|p| (&*self.program.var(p.var).name, p.ty));
        let found = params.clone().enumerate().find(|(_, (known, _))| *known == name);
        found.map(|(index, (_, ty))| (index, ty)).ok_or_else(|| {
            let known: Vec<_> = params.map(|(p, ty)| format!("`{p}: {}`", ty.name())).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            format!("{} has no parameter `{name}`; it has {known}", self.program.name)
        })
    }

    /// The program that every rank runs.
    pub fn program(&self) -> &Arc<Program> {
        &self.program
    }

    /// The values given to parameters.
    pub(super) fn given(&self) -> &Given {
        &self.given
    }

    /// Returns the values that each rank looks up on its walk, for exports that keep the loops of the program.
    pub fn traces(&self, nranks: u32) -> Result<Vec<Trace>, Vec<Finding>> {
        let traces = RefCell::new(Vec::new());
        walk_ranks(self, nranks, Limits::FULL, None, |b| {
            let trace = walk::traced(&self.program, &self.given, b)?;
            traces.borrow_mut().push(trace);
            Ok(())
        })?;
        Ok(traces.into_inner())
    }

    /// The algorithm with another program, as if its author had written that.
    pub(crate) fn with_program(&self, program: Program) -> Self {
        Self { program: Arc::new(program), ..self.clone() }
    }

    /// The algorithm with every ring in natural order; `None` where all rings are in natural order already.
    pub(crate) fn in_natural_order(&self) -> Option<Self> {
        let mut natural = self.clone();
        let mut turned = false;
        for (index, given) in &mut natural.given {
            if self.program.params[*index].ty == ParamTy::Ring {
                let ring = ParamValue::Ring(Ring::natural());
                turned |= *given != ring;
                *given = ring;
            }
        }
        Arc::make_mut(&mut natural.program).edit_exprs(&mut |expr| {
            if matches!(expr.op, Op::RingTwisted | Op::RingOrder | Op::RingAround) {
                *expr = Expr { op: Op::RingNatural, args: Box::default(), span: expr.span };
                turned = true;
            }
        });
        turned.then_some(natural)
    }

    /// Returns the source text of an expression that may be a mistake: bounds of loops, sums and indexes, operands.
    pub(crate) fn text(&self, expr: Span) -> Option<&str> {
        self.written.text(expr)
    }

    /// The lines of its doc comment.
    pub fn docs(&self) -> &[String] {
        &self.program.declaration.docs
    }

    /// A finding of one of this algorithm's schedules, at its place in the source.
    pub fn diagnostic(&self, finding: Finding, nranks: u32) -> Diagnostic {
        let finding = with_loop_values(self, nranks, None, finding);
        let place = |at: SpanId| self.program.spans.get(at.index()).copied().unwrap_or_default();
        let regions = advice::regions(&finding, &self.written, &self.program.locations);
        // The root that was tried, which shows the finding.
        let root = self.param("root").ok().and_then(|(index, _)| match self.given.get(&index) {
            Some(ParamValue::Int(root)) => Some(format!("with root {root}")),
            _ => None,
        });
        let exact = finding.exact.or_else(|| advice::operand(&finding, &self.written));
        let around = advice::around(&finding, &self.written);
        let advised = || {
            advice::to_oneself(&self.program, &finding, &self.written)
                .or_else(|| around.map(|around| around.help.clone()))
                .or_else(|| advice::length_of_slots(&self.program, &finding, &self.written))
        };
        let advised = if finding.has_remedy { None } else { advised() };
        let help = advised.or(finding.help);
        // Several statements may have one wrong number, or go one step too far alike.
        let cause = match around {
            Some(around) => Some(format!("{:?}", around.edit.at)),
            None => finding.code.is_of_layout().then(|| finding.title.clone()),
        };
        Diagnostic {
            code: finding.code,
            severity: finding.code.severity(),
            title: finding.title,
            primary: exact.unwrap_or_else(|| place(finding.at)),
            label: finding.label,
            others: finding.others.into_iter().map(|(at, label)| (place(at), label)).collect(),
            notes: regions.into_iter().chain(finding.notes).chain(root).collect(),
            help,
            edits: around.iter().map(|around| around.edit.clone()).collect(),
            nranks: Some(nranks),
            cause,
        }
    }
}

impl Algorithm for Configured {
    fn name(&self) -> &str {
        &self.program.name
    }

    fn collective(&self) -> Collective {
        self.program.collective
    }

    fn out_of_place(&self) -> bool {
        self.program.out_of_place
    }

    fn file(&self) -> &str {
        &self.program.file
    }

    fn source(&self) -> &str {
        &self.program.declaration.source
    }

    fn locations(&self) -> &[Location] {
        &self.program.locations
    }

    fn placed_on(&self) -> Option<&Arc<Topology>> {
        self.topology.as_ref()
    }

    fn settings(&self) -> String {
        let Self { given, order, roundings, budgets, .. } = self;
        let called = self.program.all_callees();
        let called: Vec<&str> = called.iter().map(|called| &*called.declaration.source).collect();
        format!("{given:?} {order:?} {roundings:?} {budgets:?} {}", called.join("\n"))
    }

    fn configured(&self) -> Configured {
        self.clone()
    }

    fn build(&self, builder: &mut Builder<'_>) -> Result<(), Stop> {
        for class in &self.order {
            builder.on_order(0, *class);
        }
        if let Some(most) = self.roundings {
            builder.on_roundings(0, i64::from(most))?;
        }
        for (resource, most) in &self.budgets {
            builder.budget(0, *resource, i64::try_from(*most).unwrap_or(i64::MAX))?;
        }
        walk::walk(&self.program, &self.given, builder, Origin::Source)
    }
}

impl Program {
    /// Returns the program as an algorithm with every parameter at its default.
    pub fn algorithm(&self) -> Configured {
        Configured::called(Arc::new(self.clone()), Given::new())
    }
}
