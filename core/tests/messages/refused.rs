//! A schedule without a two-sided form is refused at the move that has none.

use roundelay_core::diagnostics::{Code, Finding};
use roundelay_core::ids::SpanId;
use roundelay_core::layout::{Algorithm as _, Limits};
use roundelay_core::messages::TwoSided;
use roundelay_core::schedule::text;
use roundelay_core::verify::Proved;

use super::of_library;
use crate::sources::named;

fn parsed(schedule: &str) -> Result<Proved, Vec<Finding>> {
    Proved::new(text::parse(schedule).unwrap_or_else(|error| panic!("{error}\n{schedule}")))
}

/// Cuts whose distance is no fraction of 64-bit numbers: no region of that width can be received into scratch.
#[test]
fn a_width_that_is_no_number() {
    let pieces =
        ["0..1/8589934583", "1/8589934583..8589934582/8589934609", "8589934582/8589934609..1"];
    // The middle is folded in the reverse order, so that the three are not joined.
    let [first, middle, last] = pieces;
    let folds = [
        format!("  fold 0.input[{first}], 1.input[{first}] -> 0.output[{first}] @0\n"),
        format!("  fold 1.input[{middle}], 0.input[{middle}] -> 0.output[{middle}] @1\n"),
        format!("  fold 0.input[{last}], 1.input[{last}] -> 0.output[{last}] @0\n"),
    ];
    let schedule = format!(
        "schedule Some Reduce nranks 2 root 0
at 0 = 1:1..1:2
at 1 = 2:1..2:2
rank 0 stream 0
  wait ack 1->0 @0
{}  post data 0->1 @0
rank 1 stream 0
  post ack 1->0 @0
  wait data 0->1 @0
",
        folds.concat()
    );
    let author = parsed(&schedule).unwrap_or_else(|found| panic!("{found:#?}"));
    let found = TwoSided::new(&author).expect_err("the middle has no width");
    assert_eq!((found.len(), found[0].code), (1, Code::NoTwoSidedForm));
    assert_eq!(author.schedule().location(found[0].at).line, 2, "{found:#?}");
    let title = "what lies from 1/8589934583 to 8589934582/8589934609 of a buffer of rank 1";
    assert!(found[0].title.starts_with(title), "{found:#?}");
    assert_eq!(found[0].notes, ["the move is of rank 0"]);
}

#[test]
fn more_than_there_may_be() {
    let author = of_library("RingAllReduce", 4);
    let acts = TwoSided::new(&author).expect("it has the form").messages().len() + 4 * 3 + 4;
    let within = |limit| TwoSided::new_with(&author, limit, |_, _| ());
    assert!(within(acts).is_ok());
    let found = within(acts - 1).expect_err("one too many");
    assert_eq!((found.len(), found[0].code), (1, Code::NoTwoSidedForm));
    let title =
        format!("in two-sided form there would be more than {} messages and moves", acts - 1);
    assert_eq!(found[0].title, title);
    assert_ne!(author.schedule().location(found[0].at).line, 0, "{found:#?}");
}

/// A form that is too large to be written is refused before it is proved, with the actions of the first rank.
#[test]
fn more_than_is_written() {
    let ring = named("RingAllReduce");
    let ops = ring.schedule(4).expect("it can be laid out").ops.len() as u64;
    let within = |ops| TwoSided::author_within(&ring, 4, Limits { ops, ..Limits::FULL });
    assert!(within(ops).is_ok());
    let found = within(ops - 1).expect_err("one too many");
    assert_eq!((found.len(), found[0].code), (1, Code::NoTwoSidedForm));
    assert_eq!(found[0].notes, ["rank 0 alone has 6 moves between ranks, of 4 ranks"]);
    assert_ne!(found[0].at, SpanId::default());
    // Other limits are told as they are.
    let steps = Limits { steps: 1, ..Limits::FULL };
    let found = TwoSided::author_within(&ring, 4, steps).expect_err("it has loops");
    assert_eq!(found[0].code, Code::StepLimit);
}

/// A move of a rank that has no part in it has no proof either.
#[test]
fn a_move_between_two_others() {
    let found = parsed(
        "schedule Some Broadcast nranks 3 root 0
at 0 = 1:1..1:2
rank 0 stream 0
  copy 0.input[0..1] -> 0.output[0..1] @0
  post ack 0->1 @0
  wait data 1->0 @0
rank 1 stream 0
  wait ack 0->1 @0
  wait ack 2->1 @0
  copy 0.input[0..1] -> 2.output[0..1] @0
  copy 0.input[0..1] -> 1.output[0..1] @0
  post data 1->0 @0
  post data 1->2 @0
rank 2 stream 0
  post ack 2->1 @0
  wait data 1->2 @0
",
    )
    .expect_err("rank 1 copies from 0 to 2");
    assert_eq!(found[0].code, Code::NoLocalOperand, "{found:#?}");
}
