//! The book shows only code that runs and output that was compared.
//!
//! `UPDATE_EXPECT=1 cargo test -p roundelay-tests book::` writes the transcripts of
//! `book/src/listings/`, and the made parts of the pages; a second run takes new transcripts into the pages.

#[path = "book/code_words.rs"]
mod code_words;
#[path = "book/console.rs"]
mod console;
#[path = "book/curves.rs"]
mod curves;
#[path = "book/device.rs"]
mod device;
#[path = "book/editors.rs"]
mod editors;
#[path = "book/engine.rs"]
mod engine;
#[path = "book/facts.rs"]
mod facts;
#[path = "book/families.rs"]
mod families;
#[path = "book/glossary.rs"]
mod glossary;
#[path = "book/grammar.rs"]
mod grammar;
#[path = "book/listings.rs"]
mod listings;
#[path = "book/pages.rs"]
mod pages;

use std::path::Path;

use expect_test::expect_file;
use roundelay_core::check::Frontend;
use roundelay_core::diagnostics::{Code, Diagnostic};
use roundelay_core::executor::Executor;
use roundelay_core::layout::Configured;
use roundelay_core::program::Program;
use roundelay_core::syntax::Source;
use roundelay_core::verdict::{Asked, Verdict, Within};
use roundelay_tests::compile;
use roundelay_tests::{files, name, root, sources};

/// Compares `fresh` with the file at `path`; measured numbers may differ.
fn compare(path: &Path, fresh: &str) {
    let written = std::fs::read_to_string(path).unwrap_or_default();
    if console::without_measurements(&written) != console::without_measurements(fresh) {
        expect_file![path].assert_eq(fresh);
    }
}

/// Checks that a program is right; see [`is_right`].
fn holds(what: &str, text: &str) {
    is_right(what, text).unwrap_or_else(|why| panic!("{what}: {why}"));
}

/// Checks that nothing of `text` is warned of, and that every executor fits and every algorithm is proved for some of
/// 1..=9 ranks, and refuses the others by `require` or for their topology; the error says why not.
fn is_right(what: &str, text: &str) -> Result<(), String> {
    let source = Source::from_text(what, text);
    let reports = |all: Vec<Diagnostic>| {
        all.iter().map(|one| one.report(&source)).collect::<Vec<_>>().join("\n")
    };
    let compiled = compile(&source, Frontend::File).map_err(reports)?;
    if !compiled.warnings.is_empty() {
        return Err(reports(compiled.warnings));
    }
    for executor in &compiled.executors {
        Executor::compile(executor, &source).map_err(reports)?;
    }
    compiled.algorithms.into_iter().try_for_each(|algorithm| proved(what, algorithm, &source))
}

/// Checks that the algorithm is proved for some of 1..=9 ranks and refuses the others; the error says why not.
fn proved(what: &str, algorithm: Program, source: &Source) -> Result<(), String> {
    let algorithm = Configured::new(algorithm, source);
    let counts: Vec<u32> = (1..=9).collect();
    let verdict = Verdict::with_facts(
        &algorithm,
        &Asked::with_limits(&counts, Within::Plans),
        |_| (),
        |_| (),
    );
    let wrong = verdict.errors.first().map(|wrong| wrong.report(source));
    let refused = || verdict.is_refused().then(|| "every rank count is refused".to_owned());
    wrong.or_else(refused).map_or(Ok(()), |why| Err(format!("{what}: {why}")))
}

/// A file of the book as text.
fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// There is one table for each family, and the tour shows all of them.
#[test]
fn the_tables_of_the_families_are_what_the_schedules_say() {
    let tour = std::fs::read_to_string(root().join("book/src/guide/library.md")).unwrap();
    for (family, table) in families::tables() {
        let file = format!("listings/families/{family}.table");
        expect_file![root().join("book/src").join(&file)].assert_eq(&table);
        let shown = pages::includes(&tour).contains(&&*format!("../{file}"));
        assert!(shown, "the tour leaves out {family}");
    }
}

/// There is one table for each subcommand's flags, and the page shows all of them.
#[test]
fn the_tables_of_the_command_are_its_flags() {
    let printed = console::transcript("$ roundelay man --markdown", &root());
    let (_, tables) = printed.split_once('\n').expect("a command and its tables");
    expect_file![root().join("book/src/listings/command/flags.table")].assert_eq(tables);
    let page = std::fs::read_to_string(root().join("book/src/guide/command.md")).unwrap();
    let anchors = tables.lines().filter_map(|line| line.strip_prefix("<!-- ANCHOR: "));
    for anchor in anchors.map(|rest| rest.trim_end_matches(" -->")) {
        let shown = format!("../listings/command/flags.table:{anchor}");
        assert!(pages::includes(&page).contains(&&*shown), "the page leaves out {anchor}");
    }
    // Rows about shared flags name the headings over them.
    for link in tables.split("](#").skip(1).filter_map(|rest| rest.split(')').next()) {
        let slug = |heading: &str| heading.to_lowercase().replace('\'', "").replace(' ', "-");
        let mut headings = page.lines().filter(|line| line.starts_with('#'));
        assert!(
            headings.any(|line| slug(line.trim_start_matches(['#', ' '])) == link),
            "no heading of the page is #{link}"
        );
    }
}

#[test]
fn the_error_pages_are_fresh() {
    for code in Code::ALL {
        compare(&pages::path(*code), &pages::page(*code));
    }
    compare(&root().join("book/src/errors/index.md"), &pages::index());
}

#[test]
fn no_page_is_left_of_a_code_that_is_gone() {
    for path in files(&root().join("book/src/errors"), "md") {
        let stem = path.file_stem().expect("a page has a name").to_string_lossy();
        let known = stem == "index" || Code::parse(&stem).is_some();
        assert!(known, "{} explains nothing", path.display());
    }
}

#[test]
fn every_page_is_in_the_summary() {
    let summary = read(&root().join("book/src/SUMMARY.md"));
    for path in files(&root().join("book/src"), "md") {
        let link = path.strip_prefix(root().join("book/src")).unwrap().display().to_string();
        assert!(
            link == "SUMMARY.md" || summary.contains(&format!("({link})")),
            "{link} is not in SUMMARY.md"
        );
    }
    for code in Code::ALL {
        let line = format!("- [{code}: {}](errors/{code}.md)", code.summary());
        assert!(summary.contains(&line), "SUMMARY.md does not have the line `{line}`");
    }
}

#[test]
fn the_examples_are_right() {
    for (path, text) in sources("examples") {
        holds(&name(&path), &text);
    }
}

/// The command refuses each bug of the museum, as its listing shows, and the mended page beside it is proved.
#[test]
fn the_museum_has_bugs_and_their_mends() {
    let chapter = read(&root().join("book/src/guide/museum.md"));
    let (mended, bugs): (Vec<_>, Vec<_>) = sources("examples/museum")
        .into_iter()
        .partition(|(path, _)| name(path).ends_with("_mended.coll"));
    assert!(bugs.len() >= 12, "{} bugs alone", bugs.len());
    assert_eq!(bugs.len(), mended.len());
    for ((bug, text), (mend, right)) in bugs.iter().zip(&mended) {
        let stem = bug.file_stem().expect("a name").to_string_lossy();
        assert_eq!(name(mend), format!("{stem}_mended.coll"));
        let shown = format!("../listings/museum/{stem}.console");
        let refusal = read(&root().join("book/src/guide").join(&shown));
        let line = refusal.lines().nth(1).unwrap_or_default();
        assert!(line.starts_with("error[E03"), "{stem} is refused by {line}");
        for file in [&shown, &format!("../../../examples/museum/{stem}.coll")] {
            assert!(pages::includes(&chapter).contains(&&**file), "the chapter leaves out {file}");
        }
        holds(&name(mend), right);
        for (file, text) in [(bug, text), (mend, right)] {
            let lines = text.lines().count();
            assert!((15..=40).contains(&lines), "{} has {lines} lines", file.display());
        }
    }
}
