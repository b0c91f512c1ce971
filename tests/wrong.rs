//! One file for each mistake: `wrong/E0101_unknown_name.coll` and beside it the message, as the command prints it.
//! Programs with only a warning (`wrong/W0001_unused_scratch.coll`) are proved all the same; warnings beside errors are
//! left out.
//!
//! `UPDATE_EXPECT=1 cargo test -p roundelay-tests wrong::` writes the messages anew.

use std::collections::BTreeSet;
use std::sync::Arc;

use expect_test::expect_file;
use roundelay_core::check::{self, Frontend};
use roundelay_core::diagnostics::{Code, Diagnostic};
use roundelay_core::executor::Executor;
use roundelay_core::layout::Configured;
use roundelay_core::prove_source_with;
use roundelay_core::syntax::Source;
use roundelay_core::verify::Signals;
use roundelay_tests::compile;
use roundelay_tests::{name, root, sources};

/// Reads `// nranks: 4` in the first lines: the rank count that shows the mistake. `// topology: ring(4)`: the topology
/// that shows it. `// signals: binary`: the signals of the check.
fn header<'t>(text: &'t str, key: &str) -> Option<&'t str> {
    let mut comments = text.lines().map_while(|line| line.strip_prefix("// "));
    comments.find_map(|line| line.strip_prefix(key)?.strip_prefix(": ")).map(str::trim)
}

fn diagnostics(source: &Source, text: &str) -> Vec<Diagnostic> {
    let program = match compile(source, Frontend::File) {
        Ok(program) => program,
        Err(errors) => return errors,
    };
    let executors = program.executors.iter().map(|checked| Executor::compile(checked, source));
    let wrong: Vec<_> = executors.filter_map(Result::err).flatten().collect();
    if !wrong.is_empty() {
        return wrong;
    }
    let nranks = header(text, "nranks").and_then(|n| n.parse().ok());
    let Some(nranks) = nranks else { return program.warnings };
    let topology = header(text, "topology").map(|topology| {
        let topology = check::topology::read(&Source::from_text("topology", topology));
        Arc::new(topology.expect("the header names a topology"))
    });
    let prepared = |algorithm| {
        let mut algorithm = Configured::new(algorithm, source);
        if let Some(topology) = &topology {
            algorithm.place_on(topology.clone());
        }
        algorithm
    };
    let signals = header(text, "signals").map_or(Signals::default(), |s| s.parse().unwrap());
    let problems = |a| prove_source_with(&prepared(a), nranks, signals).err().unwrap_or_default();
    let errors: Vec<_> = program.algorithms.into_iter().flat_map(problems).collect();
    if errors.is_empty() { program.warnings } else { errors }
}

#[test]
fn every_mistake_has_its_message() {
    for (path, text) in sources("tests/wrong") {
        let source = Source::from_text(name(&path), &text);
        let found = diagnostics(&source, &text);
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
fn every_edit_mends_its_mistake() {
    let mut made = BTreeSet::new();
    for (path, text) in sources("tests/wrong") {
        let source = Source::from_text(name(&path), &text);
        let found = diagnostics(&source, &text);
        for error in found.iter().filter(|error| !error.edits.is_empty()) {
            let mended = edited(&source, &text, error);
            let again = Source::from_text(name(&path), &mended);
            let place = |source: &Source, error: &Diagnostic| {
                let at = source.location(error.primary);
                (error.code, error.title.clone(), at.line, at.column)
            };
            let left: Vec<_> =
                diagnostics(&again, &mended).iter().map(|left| place(&again, left)).collect();
            let mistake = place(&source, error);
            assert!(!left.contains(&mistake), "{}: {mistake:?} in\n{mended}", path.display());
            made.insert(error.code.as_str());
        }
    }
    assert!(made.len() > 16, "{made:?}");
}

/// Returns the text after the edits of an error.
fn edited(source: &Source, text: &str, error: &Diagnostic) -> String {
    let mut edits: Vec<_> =
        error.edits.iter().map(|edit| (source.range(edit.at), &edit.text)).collect();
    edits.sort_by_key(|(range, _)| std::cmp::Reverse(range.start));
    let mut mended = text.to_owned();
    for (range, text) in edits {
        mended.replace_range(range, text);
    }
    mended
}

#[test]
fn a_signal_that_is_left_out_is_found() {
    let text = std::fs::read_to_string(root().join("stdlib/library/ring.coll")).expect("a file");
    let source = |text: &str| Source::from_text("ring.coll", text);
    let prove = |text: &str| {
        let source = source(text);
        let program = compile(&source, Frontend::File).expect("a program");
        let prove = |algorithm: &_| {
            let proved = prove_source_with(
                &Configured::new(Clone::clone(algorithm), &source),
                3,
                Signals::default(),
            );
            proved.err().unwrap_or_default()
        };
        program.algorithms.iter().flat_map(prove).collect::<Vec<_>>()
    };
    assert_eq!(prove(&text), []);
    let lines: Vec<&str> = text.lines().collect();
    let mut found = 0;
    for (at, line) in lines.iter().enumerate() {
        // A block that holds nothing else is gone with its signal.
        let alone = lines[at.saturating_sub(1)].ends_with('{')
            && lines.get(at + 1).is_some_and(|next| next.trim() == "}");
        if alone
            || !line.trim_start().starts_with(|c: char| c.is_lowercase())
            || !line.contains('x')
            || !line.ends_with("();")
        {
            continue;
        }
        let others = lines.iter().enumerate().filter(|(other, _)| *other != at);
        let without: String = others.flat_map(|(_, line)| [line, "\n"]).collect();
        let errors = prove(&without);
        let error = errors.first().unwrap_or_else(|| panic!("line {at} is not needed"));
        let mended = edited(&source(&without), &without, error);
        assert_ne!(mended, without, "{}: {:?}", error.title, error.help);
        assert_eq!(prove(&mended), [], "{mended}");
        found += 1;
    }
    assert!(found > 10, "{found}");
}

/// The tests of the book have the examples and its programs.
#[test]
fn the_library_is_not_warned_of() {
    for (path, text) in sources("stdlib/library") {
        let source = Source::from_text(name(&path), &text);
        let warnings = compile(&source, Frontend::File).expect("the library is right").warnings;
        let warnings: Vec<_> = warnings.iter().map(|w| w.report(&source)).collect();
        assert!(warnings.is_empty(), "{}: {}", path.display(), warnings.join("\n"));
    }
}

#[test]
fn every_code_of_the_compiler_has_a_file() {
    let covered: BTreeSet<String> =
        sources("tests/wrong").iter().map(|(path, _)| name(path)[..5].to_owned()).collect();
    // Bytes that are no text cannot be a text file here. The language cannot go out of bounds; only a schedule from
    // elsewhere can (core's own tests). A program that cannot be exported is right, and the export's tests have it. A
    // program for another runtime is no source: core's own tests and the command's have them. A kernel of others is
    // none either: the tests of `kernels/check` have it.
    let elsewhere = [
        Code::UnreadableSource,
        Code::OutOfBounds,
        Code::NotExportable,
        Code::RefusedByRuntime,
        Code::PassedOver,
        Code::KernelRelies,
    ];
    let missing: Vec<_> = Code::ALL
        .iter()
        .filter(|c| {
            (c.as_str() < "E0400" || c.as_str() > "E0700")
                && !elsewhere.contains(c)
                && !covered.contains(c.as_str())
        })
        .collect();
    assert!(missing.is_empty(), "codes without a wrong program: {missing:?}");
}

#[test]
fn bytes_that_are_no_text() {
    let source = Source::from_bytes("bytes.coll", b"algorithm A\xff() {}");
    let found = diagnostics(&source, "");
    assert_eq!(found.first().map(|d| d.code), Some(Code::UnreadableSource));
}
