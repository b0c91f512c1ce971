//! Every algorithm of the library line by line for each rank: read again and proved, or refused for a reason.

use std::collections::BTreeSet;

use expect_test::expect;
use roundelay::{Algorithm as _, select};
use roundelay_core::diagnostics::Code;
use roundelay_core::emit::straight::{Export, straight};
use roundelay_core::messages::TwoSided;
use roundelay_core::prove_source;

#[test]
fn the_library_line_by_line() {
    let (mut written, mut refused) = (BTreeSet::new(), BTreeSet::new());
    for algorithm in select::library() {
        for nranks in 1..=5 {
            let Ok(proved) = prove_source(algorithm, nranks) else { continue };
            let form = TwoSided::of(&proved).expect("it has the form");
            match straight(&Export { form: &form, file: algorithm.file() }) {
                Ok(text) => {
                    assert!(text.contains(&format!("{}(", algorithm.name())), "{text}");
                    written.insert(algorithm.name());
                }
                Err(why) => {
                    assert_eq!(why[0].code, Code::NotExportable, "{why:?}");
                    let notes = why[0].notes.join("; ");
                    refused.insert(format!(
                        "{} at {nranks}: {}: {notes}",
                        algorithm.name(),
                        why[0].title
                    ));
                }
            }
        }
    }
    expect![[""]].assert_eq(&refused.into_iter().collect::<Vec<_>>().join("\n"));
    assert!(written.len() >= 36, "{written:?}");
}
