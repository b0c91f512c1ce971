//! Execution plans for MSCCL++: the algorithms of the library that have one, and the reasons why others have none. Each
//! plan is read and proved before it counts.
//!
//! `UPDATE_EXPECT=1 cargo test -p roundelay-tests mscclpp::` writes the list anew.

use std::fmt::Write as _;

use expect_test::expect_file;
use roundelay::{Algorithm as _, select};
use roundelay_core::diagnostics::Code;
use roundelay_core::layout::Configured;
use roundelay_core::prove_source;
use roundelay_exchange::mscclpp::{export, read};
use roundelay_tests::root;

/// Describes the plan of an algorithm, in a few words.
fn told(algorithm: &Configured, nranks: u32, in_place: bool) -> String {
    let proved = match prove_source(algorithm, nranks) {
        Ok(proved) => proved,
        Err(errors) => {
            assert_eq!(errors[0].code, Code::RankCountRefused);
            return "not of so many ranks".to_owned();
        }
    };
    let text = match export(&proved, in_place) {
        Ok(text) => text,
        Err(findings) => {
            let first = &findings[0];
            assert!(matches!(first.code, Code::NotExportable | Code::NoInPlace), "{first:?}");
            return first.title.clone();
        }
    };
    let read = read("plan.json", text.as_bytes());
    let program = read.program.unwrap_or_else(|| panic!("{:#?}", read.errors));
    assert_eq!(read.warnings, [], "{}", algorithm.name());
    // The plan that is read back is a schedule of as many ranks with an equal promise, and is proved.
    let verdict = program.verdict(&read.source);
    assert!(verdict.is_right() && verdict.warnings.is_empty());
    let again = verdict.modes[0].proved.clone().expect("it is proved");
    let (was, is) = (proved.schedule(), again.schedule());
    assert_eq!((was.nranks, was.collective), (is.nranks, is.collective));
    let (ops, blocks) = program.size();
    format!("{ops} ops, {blocks} blocks a rank")
}

#[test]
fn plans_of_the_library() {
    let mut list = String::new();
    for algorithm in select::library() {
        for nranks in [2, 3, 4, 8] {
            let mut line = told(algorithm, nranks, false);
            if nranks == 3 {
                let _ = write!(line, "; in place: {}", told(algorithm, nranks, true));
            }
            let _ = writeln!(list, "{} {nranks}: {line}", algorithm.name());
        }
    }
    expect_file![root().join("tests/golden/mscclpp.txt")].assert_eq(&list);
}
