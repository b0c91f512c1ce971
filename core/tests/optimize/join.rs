//! Joined moves: the author's results with fewer moves, and nothing joined that depends on each other. How many a
//! message of NHR has is told with its tables.

use roundelay_core::layout::Algorithm as _;
use roundelay_core::optimize::join::{join, messages};
use roundelay_core::rational::Rat;
use roundelay_core::schedule::demands::Demands;
use roundelay_core::schedule::{OpKind, Schedule, text};
use roundelay_core::verify::{Callers, Proved};

use crate::optimize::{admitted, library};

/// Returns the schedule without the author's demands.
fn bare(schedule: &Schedule) -> Schedule {
    Schedule { demands: Demands::default(), ..schedule.clone() }
}

#[test]
fn the_library_stays_what_it_was_with_no_more_moves() {
    let mut fewer = 0;
    for algorithm in library() {
        for nranks in (1..=9).chain([16, 17]) {
            let Some(schedule) = admitted(&algorithm, nranks) else { continue };
            let what = format!("{} at {nranks}", algorithm.name());
            let joined = join(&schedule);
            let signals = |s: &Schedule| -> Vec<_> {
                let of = |at: &&roundelay_core::schedule::Op| at.kind != OpKind::Move;
                s.ops.iter().filter(of).map(|op| (op.kind, op.arg, op.at)).collect()
            };
            assert_eq!(signals(&schedule), signals(&joined), "{what}");
            assert!(joined.ops.len() <= schedule.ops.len(), "{what}");
            assert_eq!(join(&joined), joined, "{what}: joined twice");
            assert_eq!(messages(&schedule), joined.messages(), "{what}");
            fewer += usize::from(joined.ops.len() < schedule.ops.len());
            let units = |u: Rat| u.num() as f64 / u.den() as f64;
            let carried =
                |s: &Schedule| s.traffic().filter_map(|u| u.units).map(units).sum::<f64>();
            let (before, after) = (carried(&schedule), carried(&joined));
            assert!((before - after).abs() <= 1e-9 * before, "{what}: {before} {after}");
            for callers in [Callers::Each, Callers::One] {
                let Ok(author) = Proved::for_callers(bare(&schedule), callers) else { continue };
                let ours = Proved::for_callers(bare(&joined), callers)
                    .unwrap_or_else(|found| panic!("{what}, {callers:?}: {found:#?}"));
                let (author, ours) = (author.proof(), ours.proof());
                assert_eq!(author.orders.differs(&ours.orders), None, "{what}, {callers:?}");
                assert_eq!(author.in_place, ours.in_place, "{what}, {callers:?}");
            }
        }
    }
    assert!(fewer > 20, "{fewer}");
}

/// The moves of a stream of rank 0 that joining leaves, as text.
fn left(collective: &str, out_of_place: &str, moves: &[&str]) -> Vec<String> {
    let moves: Vec<_> = moves.iter().map(|at| format!("  copy {at} @0")).collect();
    let moves = moves.join("\n");
    let text = format!(
        "schedule Some {collective} nranks 2 root 0{out_of_place}\nscratch s slots 2 width 2\nat 0 = 1:1..1:2\nrank 0 stream 0\n{moves}\n"
    );
    let schedule = text::parse(&text).unwrap_or_else(|error| panic!("{error:?}\n{text}"));
    let joined = join(&schedule);
    let text = |op: &roundelay_core::schedule::Op| {
        let text = text::op(&joined, op);
        text.trim().trim_start_matches("copy ").to_owned()
    };
    joined.ops.iter().map(text).collect()
}

#[test]
fn what_lies_side_by_side_is_one_in_any_order_of_the_loop() {
    let (a, b, c) = (
        "1.input[0..1/3] -> 0.s#0@0[0..1/3]",
        "1.input[1/3..2/3] -> 0.s#0@0[1/3..2/3]",
        "1.input[2/3..1] -> 0.s#0@0[2/3..1]",
    );
    let whole = ["1.input[0..1] -> 0.s#0@0[0..1]"];
    for moves in [[a, b, c], [c, a, b], [b, c, a], [c, b, a]] {
        assert_eq!(left("AllReduce", "", &moves), whole, "{moves:?}");
    }
    // One without an element lies beside everything, and nothing is joined to it.
    let empty = "1.input[1/3..1/3] -> 0.s#0@0[1/3..1/3]";
    assert_eq!(left("AllReduce", "", &[empty, a, b, c]), [empty, whole[0]]);
    // Another pair of ranks between them does not part them.
    let local = "0.input[0..1] -> 0.output[0..1]";
    assert_eq!(left("AllReduce", "", &[a, local, b, c]), [whole[0], local]);
    // Two destinations of one source are two moves, each joined.
    let moves =
        [a, "1.input[0..1/3] -> 0.s#1@0[0..1/3]", b, "1.input[1/3..2/3] -> 0.s#1@0[1/3..2/3]"];
    let expected = ["1.input[0..2/3] -> 0.s#0@0[0..2/3]", "1.input[0..2/3] -> 0.s#1@0[0..2/3]"];
    assert_eq!(left("AllReduce", "", &moves), expected);
}

#[test]
fn what_depends_on_each_other_or_lies_apart_is_not_joined() {
    let stay = |collective, moves: &[&str]| assert_eq!(left(collective, "", moves), moves);
    // The second move reads a region that the first wrote, or writes one that it read.
    stay("AllReduce", &["0.s#0@0[0..1] -> 0.s#0@0[1..2]", "0.s#0@0[1..2] -> 0.s#1@0[0..1]"]);
    stay(
        "AllReduce",
        &["0.output[0..1/4] -> 0.output[1/4..1/2]", "0.output[1/4..1/2] -> 0.output[1/2..3/4]"],
    );
    stay(
        "AllReduce",
        &["0.output[1/4..1/2] -> 0.output[0..1/4]", "0.output[1/2..3/4] -> 0.output[1/4..1/2]"],
    );
    // Side by side in the source alone, in the destination alone, or in another slot.
    stay(
        "AllReduce",
        &["1.input[0..1/2] -> 0.s#0@0[0..1/2]", "1.input[1/2..1] -> 0.s#0@0[1..3/2]"],
    );
    stay(
        "AllReduce",
        &["1.input[0..1/2] -> 0.s#0@0[0..1/2]", "1.input[0..1/2] -> 0.s#0@0[1/2..1]"],
    );
    stay(
        "AllReduce",
        &["1.input[0..1/2] -> 0.s#0@0[0..1/2]", "1.input[1/2..1] -> 0.s#1@0[1/2..1]"],
    );
    // Slots whose elements are counted from different places of the data.
    stay(
        "AllReduce",
        &["1.input[0..1/2] -> 0.s#0@0[0..1/2]", "1.input[1/2..1] -> 0.s#0@1/2[1/2..1]"],
    );
    let shifted = ["0.s#0@0[0..1/2] -> 0.output[0..1/2]", "0.s#0@1/2[1/2..1] -> 0.output[1/2..1]"];
    stay("AllReduce", &shifted);
    // The last move overwrites the region that the second wrote, though their coordinates differ.
    stay(
        "AllReduce",
        &[
            "1.input[1/4..1/2] -> 0.s#0@0[1/4..1/2]",
            "1.input[1/2..3/4] -> 0.s#0@1/2[1/2..3/4]",
            "1.input[0..1/4] -> 0.s#0@0[0..1/4]",
        ],
    );
    // In place they are one buffer: the written region was to be read.
    let shifted =
        ["0.input[1/4..1/2] -> 0.output[0..1/4]", "0.input[1/2..3/4] -> 0.output[1/4..1/2]"];
    stay("AllReduce", &shifted);
    let joined = ["0.input[1/4..3/4] -> 0.output[0..1/2]"];
    assert_eq!(left("AllReduce", " out_of_place", &shifted), joined);
    assert_eq!(
        left(
            "Broadcast",
            "",
            &["1.input[0..1/2] -> 0.output[0..1/2]", "1.input[1/2..1] -> 0.output[1/2..1]"]
        )
        .len(),
        1
    );
    // Rank 0's input of an AllGather in place is its block of the output.
    stay(
        "AllGather",
        &["0.input[0..1/2] -> 0.output[1..3/2]", "0.input[1/2..1] -> 0.output[1/2..1]"],
    );
}
