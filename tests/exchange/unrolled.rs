//! Algorithms of the library line by line for each rank: read again and proved, or refused for a reason.

use roundelay::{Algorithm as _, select};
use roundelay_core::diagnostics::Code;
use roundelay_core::messages::TwoSided;
use roundelay_core::prove_source;
use roundelay_export::unroll::{Export, unroll};

#[test]
fn the_library_line_by_line() {
    let mut written = Vec::new();
    for algorithm in select::library() {
        for nranks in 1..=5 {
            let Ok(proved) = prove_source(algorithm, nranks) else { continue };
            let form = TwoSided::for_author(&proved).expect("it has the form");
            match unroll(&Export { form: &form, file: algorithm.file() }) {
                Ok(text) => {
                    assert!(text.contains(&format!("{}(", algorithm.name())), "{text}");
                    written.push((algorithm.name(), nranks));
                }
                Err(why) => {
                    assert_eq!(why[0].code, Code::NotExportable, "{why:?}");
                    // Slots hold pieces that are longer here and shorter there, but where counts are multiples.
                    assert!(why[0].notes.iter().any(|note| note.ends_with("[E0208]")), "{why:?}");
                }
            }
        }
    }
    for known in [("RingAllGather", 4), ("RingBroadcast", 5)] {
        assert!(written.contains(&known), "{written:?}");
    }
}
