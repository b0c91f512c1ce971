//! Every algorithm of the library.

use roundelay_core::messages::TwoSided;
use roundelay_core::schedule::Algorithm as _;

use super::{admitted, library};

#[test]
fn every_algorithm_has_the_form() {
    let mut made = 0;
    for algorithm in library() {
        for nranks in (1..=9).chain([16, 17]) {
            let Some(author) = admitted(&algorithm, nranks) else { continue };
            let name = algorithm.name();
            if let Err(found) = TwoSided::new(&author) {
                panic!("{name} at {nranks} ranks: {found:#?}");
            }
            made += 1;
        }
    }
    assert!(made > 300, "{made}");
}
