//! Executors: an algorithm for each range of sizes, laid out on one machine and proved, and the resources that they
//! use of the framework that runs them. All of this is known before any data is seen, so nothing here depends on a
//! count.

mod buffers;
mod needs;

use std::sync::Arc;

pub use crate::check::Asset;
use crate::check::{self, Declared};
use crate::collective::Collective;
use crate::diagnostics::{Code, Diagnostic, Finding};
use crate::ids::RankId;
use crate::layout::{Algorithm as _, Configured, with_loop_values};
use crate::program::Program;
use crate::source::Span;
use crate::syntax::Source;
use crate::topology::Topology;
use crate::units::size_text;
use crate::values::params::ParamTy;
use crate::verify::{Proved, Signals};
pub use buffers::holds_no_element;
pub use needs::{ExecutorLink, Exposed, Needs};
use roundelay_topology::search;

/// A compiled executor: its classes laid out and proved, and the resources that they need.
#[derive(Clone, Debug)]
pub struct Executor {
    /// The name of the executor.
    pub name: String,
    /// The lines of its doc comment.
    pub docs: Vec<String>,
    /// The collective that it implements.
    pub collective: Collective,
    /// The topology that it runs on, all of whose ranks take part.
    pub topology: Arc<Topology>,
    /// The size in bytes of each of the two CCL buffers of a rank.
    pub ccl_buffer: u64,
    /// The most bytes of a unit that one loop handles, where its author sets it.
    pub loop_bytes: Option<u64>,
    /// Whether it moves the caller's memory itself, also where that is larger than the CCL buffers.
    pub dma_reduce: bool,
    /// The classes by size, the smallest first; the last takes all larger sizes.
    pub classes: Vec<Class>,
    /// The resources that the executor uses of a framework: the most that any class uses.
    pub needs: Needs,
}

/// A range of sizes, and the algorithm that runs for them.
#[derive(Clone, Debug)]
pub struct Class {
    /// The size in bytes, as nccl-tests counts it, below which the class runs; `None` for all larger sizes.
    pub below: Option<u64>,
    /// The algorithm, on the executor's topology and with its arguments.
    pub algorithm: Configured,
    /// Its schedule as written, with the proof.
    pub proved: Proved,
    /// The resources that it uses of a framework.
    pub needs: Needs,
    /// The place in the source where the algorithm is named.
    pub span: Span,
}

impl Executor {
    /// Lays out and proves every class of a checked executor, and compares the declared resources with the needed
    /// ones.
    ///
    /// # Errors
    /// All errors, each at its place in `source`.
    pub fn compile(
        checked: &check::Executor<Program>,
        source: &Source,
    ) -> Result<Self, Vec<Diagnostic>> {
        let mut errors = Vec::new();
        let mut classes = Vec::new();
        for class in &checked.classes {
            match Class::compile(class, checked, source) {
                Ok(class) => classes.push(class),
                Err(found) => errors.extend(found),
            }
        }
        let units = checked.collective.max_units(checked.topology.nranks());
        if errors.is_empty() {
            let exceeded = |declared| exceeded(declared, &classes, checked.ccl_buffer, units);
            errors.extend(checked.declared.iter().filter_map(exceeded));
        }
        errors.extend(buffers::too_small(checked, units));
        if !errors.is_empty() {
            return Err(errors);
        }
        let needs = classes.iter().map(|class| class.needs.clone()).reduce(Needs::with);
        Ok(Self {
            name: checked.name.clone(),
            docs: checked.docs.clone(),
            collective: checked.collective,
            topology: checked.topology.clone(),
            ccl_buffer: checked.ccl_buffer,
            loop_bytes: checked.loop_bytes.map(|(bytes, _)| bytes),
            dma_reduce: checked.dma_reduce,
            classes,
            needs: needs.expect("checked: there is a class for all larger sizes"),
        })
    }

    /// Compiles checked executors.
    ///
    /// # Errors
    /// The errors of all of them, each at its place in `source`.
    pub fn compile_all<'c>(
        checked: impl IntoIterator<Item = &'c check::Executor<Program>>,
        source: &Source,
    ) -> Result<Vec<Self>, Vec<Diagnostic>> {
        let (mut executors, mut errors) = (Vec::new(), Vec::new());
        for checked in checked {
            match Self::compile(checked, source) {
                Ok(executor) => executors.push(executor),
                Err(found) => errors.extend(found),
            }
        }
        if errors.is_empty() { Ok(executors) } else { Err(errors) }
    }

    /// Proves every class with other `signals` than the counting ones, with which it was proved.
    ///
    /// # Errors
    /// The signals that are lost, at the places where the executor names its algorithms.
    pub fn prove_with(&self, signals: Signals) -> Result<(), Vec<Diagnostic>> {
        let errors: Vec<_> = self.classes.iter().flat_map(|c| c.wrong_with(signals)).collect();
        if errors.is_empty() { Ok(()) } else { Err(errors) }
    }

    /// The number of ranks.
    pub fn nranks(&self) -> u32 {
        self.topology.nranks()
    }

    /// The root of a rooted collective; rank 0 otherwise.
    pub fn root(&self) -> RankId {
        self.classes[0].proved.schedule().root
    }

    /// The index in [`Self::classes`] of the class that runs for a size of `bytes` bytes, as nccl-tests counts it.
    pub fn class_index(&self, bytes: u64) -> usize {
        let fits = |class: &Class| class.below.is_none_or(|below| bytes < below);
        self.classes.iter().position(fits).expect("checked: there is a class for all larger sizes")
    }

    /// The class that runs for a size of `bytes` bytes, as nccl-tests counts it.
    pub fn class(&self, bytes: u64) -> &Class {
        &self.classes[self.class_index(bytes)]
    }

    /// The scratch in bytes that a rank needs with CCL buffers of `ccl_buffer` bytes: enough for every class, element
    /// type and loop.
    pub fn scratch_bytes(&self, ccl_buffer: u64) -> u64 {
        let most = self.classes.iter().map(|class| class.scratch_bytes(ccl_buffer, self.units()));
        most.max().unwrap_or(0)
    }
}

impl Class {
    fn compile(
        class: &check::Class<Program>,
        executor: &check::Executor<Program>,
        source: &Source,
    ) -> Result<Self, Vec<Diagnostic>> {
        let nranks = executor.topology.nranks();
        let run = Configured::new(class.run.clone(), source);
        let exact = |finding| {
            let found = run.diagnostic(finding, nranks);
            // The finding is the same on every run of this executor, so the count tells nothing more.
            Diagnostic { nranks: None, ..found }
        };
        let mut algorithm =
            run.runs(nranks).map_err(|all| all.into_iter().map(exact).collect::<Vec<_>>())?;
        algorithm.place_on(executor.topology.clone());
        let proved = crate::prove(&algorithm, nranks)
            .map_err(|all| named_here(all, &algorithm, nranks, class.span))?;
        let needs = Needs::new(proved.schedule(), &executor.topology);
        Ok(Self { below: class.below, algorithm, proved, needs, span: class.span })
    }

    /// Returns the errors of its schedule with other `signals` than those of its proof.
    pub fn wrong_with(&self, signals: Signals) -> Vec<Diagnostic> {
        crate::lost_with(&self.proved, signals, |found| self.diagnostics(found))
    }

    /// Returns findings of its schedule, at the place where the executor names it.
    pub fn diagnostics(&self, findings: Vec<Finding>) -> Vec<Diagnostic> {
        named_here(findings, &self.algorithm, self.proved.schedule().nranks, self.span)
    }

    /// Returns the bytes of scratch for one loop, the most over all sizes of an element. No loop is larger than the
    /// sizes of the class.
    fn scratch_bytes(&self, ccl_buffer: u64, units: u64) -> u64 {
        let largest = self.below.map_or(ccl_buffer, |below| ccl_buffer.min(below - 1));
        let bytes = |unit: u64| {
            let count = largest / (units * unit);
            let all = self.proved.schedule().scratch.iter().map(|s| s.elements(count));
            all.fold(0, u64::saturating_add).saturating_mul(unit)
        };
        [1, 2, 4, 8].map(bytes).into_iter().max().unwrap_or(0)
    }
}

/// Returns findings of an algorithm of another file, at the class that names it: the first of each kind.
fn named_here(
    all: Vec<Finding>,
    algorithm: &Configured,
    nranks: u32,
    span: Span,
) -> Vec<Diagnostic> {
    let mut errors: Vec<Diagnostic> = Vec::new();
    let mut more: Vec<u32> = Vec::new();
    for finding in all {
        let finding = with_loop_values(algorithm, nranks, None, finding);
        if let Some(known) = errors.iter().position(|e| e.code == finding.code) {
            more[known] += 1;
            errors[known].help = errors[known].help.take().or(finding.help);
            continue;
        }
        let at = algorithm.locations().get(finding.at.index()).copied().unwrap_or_default();
        let mut error = Diagnostic::new(finding.code, span, finding.title);
        error.label = format!("by {}", algorithm.name());
        error.notes = finding.notes;
        error.notes.push(format!("at {}:{}:{}", algorithm.file(), at.line, at.column));
        error.help = finding.help;
        errors.push(error);
        more.push(0);
    }
    let program = algorithm.program();
    let ring = program.params.iter().find(|param| param.ty == ParamTy::Ring);
    let dead = errors.iter_mut().find(|error| error.code == Code::MissingLink);
    // The advice is given only where a ring exists.
    let topology = algorithm.topology();
    let found =
        topology.is_some_and(|topology| search::ring_around(topology, topology.nranks()).is_ok());
    if let (true, Some(ring), Some(Diagnostic { help: Some(help), .. })) = (found, ring, dead) {
        let param = &program.var(ring.var).name;
        *help = format!("{help}; write `{}({param} = around(topology))`", algorithm.name());
    }
    for (error, more) in errors.iter_mut().zip(more).filter(|(_, more)| *more > 0) {
        error.notes.push(format!("and {more} more of this kind"));
    }
    errors
}

/// Returns an error if less is declared than some class uses.
fn exceeded(
    declared: &Declared,
    classes: &[Class],
    ccl_buffer: u64,
    units: u64,
) -> Option<Diagnostic> {
    let takes = |class: &Class| match declared.what {
        Asset::Scratch => class.scratch_bytes(ccl_buffer, units),
        Asset::SlaveStreams => class.needs.slave_streams.into(),
        Asset::Notifies => class.needs.notifies.into(),
        Asset::Links => class.needs.links_of_a_rank().into(),
    };
    let most = classes.iter().map(|class| (takes(class), class.span)).max_by_key(|most| most.0);
    let (needed, span) = most.filter(|(needed, _)| *needed > declared.most)?;
    let amount = match declared.what {
        Asset::Scratch => size_text(needed),
        _ => needed.to_string(),
    };
    let title =
        format!("declared {}, the schedule uses {amount}", declared.what.words(declared.most));
    Some(
        Diagnostic::new(Code::OverBudget, declared.span, title)
            .label("too few")
            .other(span, format!("uses {amount}"))
            .help(format!(
                "write `{}: {amount};`, or leave it out: it is derived",
                declared.what.name()
            )),
    )
}
