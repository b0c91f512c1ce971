//! Sources as the tests compile them, with the library in reach.

use roundelay_core::check::Frontend;
use roundelay_core::check::dependencies::Dependencies;
use roundelay_core::compile_with;
use roundelay_core::layout::{Algorithm as _, Configured};
use roundelay_core::syntax::Source;
use roundelay_library::SOURCES;

/// All algorithms of a source that is right.
pub(crate) fn algorithms(name: &str, text: &str) -> Vec<Configured> {
    let source = Source::from_text(name, text);
    let program = compile_with(&source, Frontend::File, &Dependencies::library(SOURCES));
    let program = program.unwrap_or_else(|errors| {
        let errors: Vec<_> = errors.iter().map(|error| error.report(&source)).collect();
        panic!("{}\n{text}", errors.join("\n"))
    });
    program.algorithms.into_iter().map(|found| Configured::new(found, &source)).collect()
}

/// All algorithms of the library.
pub(crate) fn library() -> Vec<Configured> {
    SOURCES.iter().flat_map(|(name, text)| algorithms(name, text)).collect()
}

/// The library's algorithm of that name.
pub(crate) fn named(name: &str) -> Configured {
    let head = format!("algorithm {name}(");
    let (file, text) = SOURCES.iter().find(|(_, text)| text.contains(&head)).expect(name);
    algorithms(file, text).into_iter().find(|found| found.name() == name).expect(name)
}
