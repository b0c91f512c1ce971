//! What is said of a foreign program, by its reader and by its proof.

use roundelay_core::diagnostics::Diagnostic;
use roundelay_core::render::render;
use roundelay_core::syntax::Source;

/// `code line:column title` of the first three, each of which has a place and can be shown; behind the word `taken` where
/// the program could be read.
pub(crate) fn told<'d>(
    source: &Source,
    is_taken: bool,
    all: impl IntoIterator<Item = &'d Diagnostic>,
) -> String {
    let mut lines = Vec::new();
    for said in all {
        let place = source.location(said.primary);
        assert!(!said.title.is_empty() && place.line >= 1 && place.column >= 1);
        assert!(!render(said, source, false).is_empty());
        lines.push(format!("{} {}:{} {}", said.code, place.line, place.column, said.title));
    }
    let more = lines.len().saturating_sub(3);
    lines.truncate(3);
    if more > 0 {
        lines.push(format!("and {more} more"));
    }
    if is_taken {
        lines.insert(0, "taken".to_owned());
    }
    assert!(!lines.is_empty(), "a program that is not taken has an error");
    lines.join("\n")
}
