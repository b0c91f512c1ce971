//! Passes from schedule to schedule: their results are legal, proved, and as described.

mod elision;
mod join;

use roundelay_core::check::Frontend;
use roundelay_core::check::dependencies::Dependencies;
use roundelay_core::compile_with;
use roundelay_core::diagnostics::unless_refused;
use roundelay_core::layout::{Algorithm as _, Configured};
use roundelay_core::schedule::Schedule;
use roundelay_core::syntax::Source;

use roundelay_library::SOURCES as LIBRARY;

/// All algorithms of a source.
fn algorithms(name: &str, text: &str) -> Vec<Configured> {
    let source = Source::from_text(name, text);
    let program = compile_with(&source, Frontend::File, &Dependencies::library(LIBRARY))
        .unwrap_or_else(|errors| panic!("{errors:#?}"));
    program.algorithms.into_iter().map(|a| Configured::new(a, &source)).collect()
}

/// All algorithms of the library.
fn library() -> Vec<Configured> {
    LIBRARY.iter().flat_map(|(name, text)| algorithms(name, text)).collect()
}

/// Returns one algorithm of the library for `nranks` ranks.
fn of_library(name: &str, nranks: u32) -> Schedule {
    let algorithm = library().into_iter().find(|a| a.name() == name).expect("the library has it");
    algorithm.schedule(nranks).unwrap_or_else(|found| panic!("{name}, {nranks}: {found:#?}"))
}

/// The schedule, unless the count is refused.
fn admitted(algorithm: &Configured, nranks: u32) -> Option<Schedule> {
    unless_refused(algorithm.schedule(nranks)).expect("the library is right")
}
