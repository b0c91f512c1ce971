//! `emit hccl-cpp` and `emit hcomm`: an executor in the contest's form, and an executor or an algorithm as an operator.

use roundelay::library::SOURCES;
use roundelay_core::diagnostics::Diagnostic;
use roundelay_core::executor::Executor;
use roundelay_core::layout::{Algorithm as _, Configured};
use roundelay_core::syntax::Source;
use roundelay_core::verify::Proved;
use roundelay_export::contest::operator::{Operator, OperatorNeeds, Profile, operator};
use roundelay_export::contest::{Export, SizeClass, contest};

use super::executor_flags::{Interface, InterfaceFlags};
use super::{Which, misfits};
use crate::report::{Failure, Format, refuse};
use crate::texts::Texts;

impl InterfaceFlags {
    /// Returns what an operator takes, where the interface is that of operators.
    pub(super) fn needs(
        &self,
        executor: &Executor,
    ) -> Option<Result<OperatorNeeds, Vec<Diagnostic>>> {
        let Self { interface, profile } = self;
        let needs = || Ok(as_operator(executor, None, profile.profile)?.needs);
        (*interface == Interface::Hcomm).then(needs)
    }
}

/// Returns the sources with the lines that a text's comments quote.
fn sources(source: Option<&Source>) -> Vec<Source> {
    let library = SOURCES.iter().map(|(name, text)| Source::from_text(*name, text));
    source.cloned().into_iter().chain(library).collect()
}

fn as_operator(
    executor: &Executor,
    source: Option<&Source>,
    profile: Profile,
) -> Result<Operator, Vec<Diagnostic>> {
    let files = sources(source);
    let export = Export::new(executor, |name| files.iter().find(|file| file.name() == name));
    operator(&export, profile).map_err(|all| misfits(executor, all))
}

pub(crate) fn export(which: &Which, to: &Texts) -> Result<(), Failure> {
    let (source, executor) = which.load(Format::Human)?;
    let files = sources(Some(&source));
    let export = Export::new(&executor, |name| files.iter().find(|file| file.name() == name));
    match contest(&export) {
        Ok(text) => to.put(&executor.name, &text),
        Err(all) => Err(refuse(Format::Human, &misfits(&executor, all), &source, |_| ())),
    }
}

/// Writes an executor as an operator.
pub(crate) fn export_operator(which: &Which, profile: Profile, to: &Texts) -> Result<(), Failure> {
    let (source, executor) = which.load(Format::Human)?;
    let operator = as_operator(&executor, Some(&source), profile)
        .map_err(|errors| refuse(Format::Human, &errors, &source, |_| ()))?;
    put(&operator, to)
}

/// Returns an algorithm at a rank count as an operator.
pub(crate) fn algorithm_operator(
    algorithm: &Configured,
    proved: &Proved,
    source: Option<&Source>,
    profile: Profile,
) -> Result<Operator, Vec<Diagnostic>> {
    let schedule = proved.schedule();
    let class = SizeClass { below: None, algorithm, schedule, source };
    let export =
        Export { name: algorithm.name(), docs: &[], dma_reduce: true, classes: vec![class] };
    operator(&export, profile).map_err(|all| {
        all.into_iter().map(|(_, found)| algorithm.diagnostic(found, schedule.nranks)).collect()
    })
}

/// Writes the text of an operator, and in a folder the files beside it.
pub(crate) fn put(operator: &Operator, to: &Texts) -> Result<(), Failure> {
    let name = &operator.name;
    to.put(name, &operator.source)?;
    to.put_beside(&format!("{name}.h"), &operator.header)?;
    to.put_beside("README.md", &operator.readme)?;
    operator
        .description
        .as_ref()
        .map_or(Ok(()), |json| to.put_beside(&format!("{name}.json"), json))
}
