//! What is said of a foreign program, by its reader and by its proof.

use roundelay_core::render::render;
use roundelay_core::syntax::Source;
use roundelay_exchange::{Text, Verdict};

/// Whether a text is taken; and `code line:column title` of the first three that are said of it, each of which has a place
/// and can be shown, behind the word `taken` where the program could be read.
pub(crate) fn told<P>(text: &Text<P>, verdict: impl Fn(&P, &Source) -> Verdict) -> (bool, String) {
    let verdict = text.program.as_ref().map(|program| verdict(program, &text.source));
    let proof = verdict.iter().flat_map(|found| found.errors().chain(&found.warnings));
    let mut lines = Vec::new();
    for said in text.errors.iter().chain(proof).chain(&text.warnings) {
        let place = text.source.location(said.primary);
        assert!(!said.title.is_empty() && place.line >= 1 && place.column >= 1);
        assert!(!render(said, &text.source, false).is_empty());
        lines.push(format!("{} {}:{} {}", said.code, place.line, place.column, said.title));
    }
    let more = lines.len().saturating_sub(3);
    lines.truncate(3);
    if more > 0 {
        lines.push(format!("and {more} more"));
    }
    if verdict.is_some() {
        lines.insert(0, "taken".to_owned());
    }
    assert!(!lines.is_empty(), "a program that is not taken has an error");
    (verdict.is_some(), lines.join("\n"))
}
