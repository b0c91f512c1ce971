//! Lengths of pieces over all counts.

use roundelay_core::rational::Rat;
use roundelay_core::schedule::lengths::{Lengths, compare};

fn at(num: u64, den: u64) -> Rat {
    Rat::new(num, den).unwrap()
}

#[test]
fn the_same_piece_of_two_buffers() {
    assert_eq!(compare((at(1, 3), at(2, 3)), (at(1, 3), at(2, 3)), 1), Lengths::Equal);
    assert_eq!(compare((at(0, 1), at(1, 1)), (at(5, 1), at(6, 1)), 1), Lengths::Equal);
    assert_eq!(compare((at(1, 3), at(4, 3)), (at(7, 3), at(10, 3)), 1), Lengths::Equal);
}

#[test]
fn pieces_of_one_split_differ_at_some_count() {
    let thirds = compare((at(0, 1), at(1, 3)), (at(1, 3), at(2, 3)), 1);
    assert_eq!(thirds, Lengths::Differ { count: 2, left: 0, right: 1 });
    let halves = compare((at(0, 1), at(1, 2)), (at(0, 1), at(1, 1)), 1);
    assert_eq!(halves, Lengths::Differ { count: 1, left: 0, right: 1 });
}

#[test]
fn whole_units_cut_elsewhere_are_misaligned() {
    assert_eq!(compare((at(0, 1), at(1, 1)), (at(1, 3), at(4, 3)), 1), Lengths::Misaligned);
}

#[test]
fn pieces_of_a_multiple_are_alike() {
    let (first, second) = ((at(0, 1), at(1, 3)), (at(1, 3), at(2, 3)));
    assert_eq!(compare(first, second, 3), Lengths::Equal);
    assert_eq!(compare(first, second, 6), Lengths::Equal);
    assert_eq!(compare(first, second, 2), Lengths::Differ { count: 2, left: 0, right: 1 });
    let halves = compare((at(0, 1), at(1, 2)), (at(1, 1), at(2, 1)), 2);
    assert_eq!(halves, Lengths::Differ { count: 2, left: 1, right: 2 });
}
