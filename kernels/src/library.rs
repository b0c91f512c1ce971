//! The library's algorithms, for tests of the engines.

use std::sync::LazyLock;

use roundelay_core::check::Frontend;
use roundelay_core::check::dependencies::Dependencies;
use roundelay_core::diagnostics::unless_refused;
use roundelay_core::layout::{Algorithm as _, Configured};
use roundelay_core::syntax::Source;
use roundelay_core::verify::Proved;
use roundelay_core::{compile_with, prove};
use roundelay_library::SOURCES as LIBRARY;

/// All algorithms of the library, compiled once.
pub(crate) fn library() -> &'static [Configured] {
    static ALL: LazyLock<Vec<Configured>> = LazyLock::new(all);
    &ALL
}

fn all() -> Vec<Configured> {
    let algorithms = |(name, text): &(&str, &str)| {
        let source = Source::from_text(*name, text);
        let program = compile_with(&source, Frontend::File, &Dependencies::library(LIBRARY));
        let program = program.unwrap_or_else(|errors| panic!("{errors:#?}"));
        let all = program.algorithms.into_iter();
        all.map(|algorithm| Configured::new(algorithm, &source)).collect::<Vec<_>>()
    };
    LIBRARY.iter().flat_map(algorithms).collect()
}

/// Returns the proved schedule for `nranks` ranks, or `None` where the algorithm refuses the number.
pub(crate) fn admitted(algorithm: &Configured, nranks: u32) -> Option<Proved> {
    unless_refused(prove(algorithm, nranks)).expect("the library is right")
}

/// Returns the proved schedule of one algorithm of the library for `nranks` ranks.
pub(crate) fn named(name: &str, nranks: u32) -> Proved {
    let algorithm = library().iter().find(|a| a.name() == name).expect("the library has it");
    admitted(algorithm, nranks).expect("it takes that number of ranks")
}
