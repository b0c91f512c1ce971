//! `emit hccl-cpp` and `emit hcomm`: an executor in the contest's form, and an executor or an algorithm as an operator.

use roundelay::library::SOURCES;
use roundelay_core::diagnostics::{Diagnostic, Finding};
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
    /// Returns the resources of the executor as an operator, where the interface is that of operators.
    pub(super) fn needs(
        &self,
        executor: &Executor,
    ) -> Result<Option<OperatorNeeds>, Vec<Diagnostic>> {
        match self.interface {
            Interface::Contest => Ok(None),
            Interface::Hcomm => as_operator(executor, None, self.profile.profile)
                .map(|operator| Some(operator.needs)),
        }
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
) -> Result<Operator, Vec<Finding>> {
    let class = SizeClass { below: None, algorithm, schedule: proved.schedule(), source };
    let (name, classes) = (algorithm.name(), vec![class]);
    let made = operator(&Export { name, docs: &[], dma_reduce: true, classes }, profile);
    made.map_err(|all| all.into_iter().map(|(_, found)| found).collect())
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
