//! Reading sources, from outside: both frontends, the errors that they report, the printer, hostile input.

mod errors;
mod expr_text;
mod frontends;
mod hostile;
mod printer;
mod used;

use roundelay_core::diagnostics::Diagnostic;
use roundelay_core::syntax::Source;
use roundelay_core::syntax::{self, ast::File};

/// The sources under `tests/data`, by file name.
const SAMPLES: &[(&str, &str)] = &[
    ("doubling.coll", include_str!("../data/doubling.coll")),
    ("everything.coll", include_str!("../data/everything.coll")),
    ("ring.coll", include_str!("../data/ring.coll")),
    ("twisted.coll", include_str!("../data/twisted.coll")),
];

fn parse(text: &str) -> (Source, File, Vec<Diagnostic>) {
    let source = Source::from_text("test.coll", text);
    let (file, diagnostics) = syntax::parse(&source);
    (source, file, diagnostics)
}

/// Parses a text that must be right.
fn parse_ok(text: &str) -> (Source, File) {
    let (source, file, diagnostics) = parse(text);
    let found: Vec<String> = diagnostics.iter().map(|d| d.report(&source)).collect();
    assert!(found.is_empty(), "{}\nin\n{text}", found.join("\n"));
    (source, file)
}

/// A tree as text, without spans.
fn shape(file: &File) -> String {
    let text = format!("{file:?}");
    let mut out = String::new();
    let mut rest = text.as_str();
    while let Some((before, after)) = rest.split_once("Span { lo: ") {
        out.push_str(before);
        rest = after.split_once('}').map_or("", |(_, rest)| rest);
    }
    out + rest
}
