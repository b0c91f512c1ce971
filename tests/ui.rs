//! Errors as rustc shows them through the macros: their places, and what the macros alone refuse. The messages themselves
//! are tested in process (`wrong.rs`), and so is the place of each in an expansion (`macros/src/tests.rs`). All cases are
//! modules of one program, which one run of rustc compiles. A package that depends on `roundelay` is built by cargo, with
//! all below it, in a run of all tests alone.
//!
//! `UPDATE_EXPECT=1 cargo test -p roundelay-tests ui::` writes the messages anew, `TRYBUILD=overwrite` those of packages.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use expect_test::expect_file;
use roundelay_tests::{files, name, takes_all};
use serde_json::Value;

use crate::command::call::library;

/// How rustc prints an error changes from version to version; the messages here are this one's.
const RUSTC: &str = "rustc 1.95.";

/// What rustc says of types of its own choice; its places are in other crates.
const SAID_OF_TYPES: &str = "\nhelp: the following other types";

fn rustc() -> Command {
    Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()))
}

/// Whether the messages here are those of the rustc that there is; else the reason is printed.
fn is_version() -> bool {
    let version = rustc().arg("--version").output().expect("rustc starts").stdout;
    let version = String::from_utf8_lossy(&version);
    let is = version.starts_with(RUSTC);
    if !is {
        eprintln!("skipped: the messages of ui/ are those of {RUSTC}x, and this is {version}");
    }
    is
}

#[test]
fn a_package_runs_and_its_mistake_is_shown() {
    if !takes_all() {
        eprintln!(
            "left out: package, for which cargo builds `roundelay` and all below it once more"
        );
        return;
    }
    let cases = trybuild::TestCases::new();
    cases.pass("package/whole_program.rs");
    if is_version() {
        cases.compile_fail("package/mistake.rs");
    }
}

#[test]
fn errors_as_rustc_shows_them() {
    if !is_version() {
        return;
    }

    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let cases = files(&here.join("ui"), "rs");
    let mut program = "fn main() {}\n".to_owned();
    for case in &cases {
        let module = case.file_stem().expect("a name").display();
        writeln!(program, "#[path = {case:?}] mod {module};").expect("room");
    }
    let folder = tempfile::tempdir().expect("a folder");
    let main = folder.path().join("main.rs");
    std::fs::write(&main, program).expect("a program");
    let (library, dependencies) = library();
    let mut command = rustc();
    command.args([
        "--edition",
        "2024",
        "--emit",
        "metadata",
        "-A",
        "dead_code",
        "-A",
        "non_snake_case",
    ]);
    command.args(["--error-format", "json", "--diagnostic-width", "140", "--out-dir"]);
    command.arg(folder.path()).arg(&main);
    command.arg("--extern").arg(format!("roundelay={}", library.display()));
    command.arg("-L").arg(format!("dependency={}", dependencies.display()));
    let ended = command.output().expect("rustc starts");
    let said = String::from_utf8(ended.stderr).expect("JSON is text");
    assert_eq!(ended.status.code(), Some(1), "{said}");

    let place = format!("{}/", here.display());
    let mut messages: BTreeMap<String, String> = BTreeMap::new();
    for line in said.lines() {
        let message: Value = serde_json::from_str(line).expect("a message");
        let spans = message["spans"].as_array().expect("a list of places");
        // The last messages count the others.
        let Some(span) = spans.iter().find(|span| span["is_primary"] == true) else { continue };
        let file = span["file_name"].as_str().expect("a path");
        let rendered = message["rendered"].as_str().expect("a text").replace(&place, "");
        let rendered = rendered.split(SAID_OF_TYPES).next().expect("a first part").trim_end();
        let of_file = messages.entry(name(Path::new(file))).or_default();
        *of_file += if of_file.is_empty() { "" } else { "\n" };
        *of_file += rendered;
        of_file.push('\n');
    }
    for case in &cases {
        let said = messages.remove(&name(case)).unwrap_or_default();
        expect_file![case.with_extension("stderr")].assert_eq(&said);
    }
    assert!(messages.is_empty(), "errors in no case: {messages:?}");
}
