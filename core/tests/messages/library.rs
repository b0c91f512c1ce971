//! Every algorithm of the library.

use fastrand::Rng;
use roundelay_core::layout::Algorithm as _;
use roundelay_core::messages::TwoSided;

use super::{admitted, library, same_bits};

/// Rank counts of each run of the tests; with `ROUNDELAY_WHOLE` or `ROUNDELAY_TESTS=all` all up to 17.
pub(super) fn counts() -> Vec<u32> {
    let all = std::env::var("ROUNDELAY_TESTS").is_ok_and(|which| which == "all");
    if all || std::env::var_os("ROUNDELAY_WHOLE").is_some() {
        return (1..=17).collect();
    }
    vec![1, 2, 3, 4, 5, 6, 8, 9, 16]
}

#[test]
fn every_algorithm_gives_the_same_bits() {
    let (mut made, mut messages) = (0, 0);
    let mut random = Rng::with_seed(26);
    for algorithm in library() {
        for nranks in counts() {
            let Some(author) = admitted(&algorithm, nranks) else { continue };
            let what = format!("{} at {nranks} ranks", algorithm.name());
            let form = TwoSided::new(&author).unwrap_or_else(|found| panic!("{what}: {found:#?}"));
            assert_eq!(form.messages().is_empty(), nranks == 1, "{what}");
            same_bits(&author, &form, &mut random, &what);
            made += 1;
            messages += form.messages().len();
        }
    }
    println!("{made} schedules, {messages} messages");
    assert!(made > 300 && messages > 10_000, "{made} {messages}");
}
