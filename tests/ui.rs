//! Errors as rustc shows them through the macro: one case a code, for the places; the messages themselves are
//! tested in process (`wrong.rs`). `ui/pass/` must compile, and runs.
//!
//! `TRYBUILD=overwrite cargo test -p roundelay-tests ui::` writes the messages anew.

use std::process::Command;

/// How rustc prints an error changes from version to version; the messages here are this one's.
const RUSTC: &str = "rustc 1.95.";

#[test]
fn errors_and_whole_programs() {
    let cases = trybuild::TestCases::new();
    cases.pass("ui/pass/*.rs");

    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let version = Command::new(rustc).arg("--version").output().expect("rustc starts").stdout;
    let version = String::from_utf8_lossy(&version);
    if version.starts_with(RUSTC) {
        cases.compile_fail("ui/*.rs");
    } else {
        eprintln!("skipped: the messages of ui/*.rs are those of {RUSTC}x, and this is {version}");
    }
}
