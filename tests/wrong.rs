//! One file a mistake: `wrong/E0101_unknown_name.coll` and beside it the message, as the command prints it.
//!
//! `UPDATE_EXPECT=1 cargo test -p roundelay-tests --test wrong` writes the messages anew.

use std::collections::BTreeSet;

use expect_test::expect_file;
use roundelay_core::check::Door;
use roundelay_core::diagnostics::{Code, Diagnostic};
use roundelay_core::schedule::interpret::Interpreted;
use roundelay_core::source::Source;
use roundelay_core::{compile, prove_source};
use roundelay_tests::{name, sources};

/// `// nranks: 4` on the first line: the rank count that shows the mistake.
fn nranks(text: &str) -> Option<u32> {
    text.strip_prefix("// nranks: ")?.lines().next()?.trim().parse().ok()
}

fn diagnostics(source: &Source, nranks: Option<u32>) -> Vec<Diagnostic> {
    let program = match compile(source, Door::File) {
        Ok(program) => program,
        Err(errors) => return errors,
    };
    let Some(nranks) = nranks else { return Vec::new() };
    program
        .algorithms
        .into_iter()
        .filter_map(|a| prove_source(&Interpreted::new(a, source), nranks).err())
        .flatten()
        .collect()
}

#[test]
fn every_mistake_has_its_message() {
    for (path, text) in sources("tests/wrong") {
        let source = Source::from_text(name(&path), &text);
        let found = diagnostics(&source, nranks(&text));
        let code = &name(&path)[..5];
        let first = found.first().map(|d| d.code.as_str());
        assert_eq!(first, Some(code), "{}: the first error is another", path.display());
        let rendered: Vec<_> = found
            .iter()
            .map(|d| roundelay_core::render::render(d, &source, false) + "\n")
            .collect();
        expect_file![path.with_extension("stderr")].assert_eq(&rendered.join("\n"));
    }
}

#[test]
fn every_code_of_the_compiler_has_a_file() {
    let covered: BTreeSet<String> =
        sources("tests/wrong").iter().map(|(path, _)| name(path)[..5].to_owned()).collect();
    // Bytes that are no text cannot be a text file here. The language cannot go out of bounds or share a
    // signal between streams; only a schedule that came from elsewhere can (core's own tests).
    let elsewhere = [Code::UnreadableSource, Code::OutOfBounds, Code::SharedSignal];
    let missing: Vec<_> = Code::ALL
        .iter()
        .filter(|c| c.as_str() < "E0400" && !elsewhere.contains(c) && !covered.contains(c.as_str()))
        .collect();
    assert!(missing.is_empty(), "codes without a wrong program: {missing:?}");
}

#[test]
fn bytes_that_are_no_text() {
    let source = Source::from_bytes("bytes.coll", b"algorithm A\xff() {}");
    let found = diagnostics(&source, None);
    assert_eq!(found.first().map(|d| d.code), Some(Code::UnreadableSource));
}
