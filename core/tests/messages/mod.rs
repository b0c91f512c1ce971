//! The two-sided form: every algorithm comes to sends and receives that give its results, and nothing can go wrong.

mod library;

use roundelay_core::check::Frontend;
use roundelay_core::check::dependencies::Dependencies;
use roundelay_core::compile_with;
use roundelay_core::program::Configured;
use roundelay_core::schedule::Algorithm as _;
use roundelay_core::syntax::Source;
use roundelay_core::verify::Proved;
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

/// The proved schedule for so many ranks, unless the count is refused.
fn admitted(algorithm: &Configured, nranks: u32) -> Option<Proved> {
    match algorithm.schedule(nranks) {
        Ok(schedule) => Some(Proved::new(schedule).expect("the library is right")),
        Err(found) if found.iter().all(|f| f.code.refuses()) => None,
        Err(found) => panic!("{} at {nranks} ranks: {found:#?}", algorithm.name()),
    }
}
