//! The texts of algorithms' forms.

use expect_test::{Expect, expect, expect_file};
use fastrand::Rng;
use roundelay_core::ids::RankId;
use roundelay_core::messages::{Action, TwoSided, print};

use super::{of_library, of_text, same_bits};

/// The messages as `from>to`.
fn ways(form: &TwoSided) -> String {
    let all = form.messages().iter().map(|message| format!("{}>{}", message.from, message.to));
    all.collect::<Vec<_>>().join(" ")
}

#[test]
fn both_sides_of_a_ring_are_open_at_once() {
    let form = TwoSided::new(&of_library("RingAllReduce", 3)).expect("it has the form");
    let told = print(&form);
    let rank_0 = told.split("rank 1").next().expect("rank 0 comes first");
    expect_file!["../../../book/src/listings/messages/ring_of_3.text"].assert_eq(rank_0);
}

/// Every send of a rank that waits for nothing has begun before the rank waits for the first time.
#[test]
fn what_waits_for_nothing_begins_at_once() {
    for (name, sends) in [("MeshAllGather", 7), ("PairwiseAllToAll", 7), ("RingAllReduce", 1)] {
        let form = TwoSided::new(&of_library(name, 8)).expect("it has the form");
        for rank in (0..8).map(RankId) {
            let actions = form.actions(rank).iter();
            let begins = actions
                .take_while(|action| !matches!(action, Action::Sent(_) | Action::Received(_)));
            let begun: Vec<_> = begins.collect();
            let count = |is: fn(&&&Action) -> bool| begun.iter().filter(is).count();
            assert_eq!(count(|a| matches!(a, Action::Send(_))), sends, "{name}, {rank}");
            assert!(count(|a| matches!(a, Action::Receive(_))) >= sends, "{name}, {rank}");
        }
    }
}

/// Rank 1 of three does moves, when all have come and before any leaves.
fn by_rank_1(collective: &str, before: [&str; 3], moves: &[&str]) -> String {
    let op = |text: &str| if text.is_empty() { String::new() } else { format!("  {text} @0\n") };
    let moves: String = moves.iter().map(|text| op(text)).collect();
    let [first, second, third] = before.map(op);
    format!(
        "schedule Some {collective} nranks 3 root 0
scratch s slots 2 width 1
at 0 = 1:1..1:2
rank 0 stream 0
{first}  post ack 0->1 @0
  wait data 1->0 @0
rank 1 stream 0
{second}  wait ack 0->1 @0
  wait ack 2->1 @0
{moves}  post data 1->0 @0
  post data 1->2 @0
rank 2 stream 0
{third}  post ack 2->1 @0
  wait data 1->2 @0
"
    )
}

/// Checks the ways of its messages and the actions of all ranks; the form gives the author's bits.
fn check(schedule: &str, messages: &str, expected: &Expect) {
    let (author, form) = of_text(schedule);
    same_bits(&author, &form, &mut Rng::with_seed(1), schedule);
    assert_eq!(ways(&form), messages);
    expected.assert_eq(&print(&form));
}

/// A third rank's data is received by the rank that moves it, before it is sent on.
#[test]
fn a_copy_from_rank_to_rank_goes_by_the_one_that_does_it() {
    let copy =
        "copy 0.input[0..1] -> 0.output[0..1], 1.output[0..1], 2.output[0..1], 2.s#0@0[0..1]";
    check(
        &by_rank_1("Broadcast", ["", "", ""], &[copy]),
        "0>1 1>2",
        &expect![[r#"
        rank 0
          send 0.input[0..1] to 1 @0
          copy 0.input[0..1] -> 0.output[0..1]
          sent @0
        rank 1
          receive 1.output[0..1] from 0 @0
          received @0
          send 1.output[0..1] to 2 @1
          sent @1
        rank 2
          receive 2.output[0..1] from 1 @1
          received @1
          copy 2.output[0..1] -> 2.s#0@0[0..1]
    "#]],
    );
}

/// The rank that moves folds the data that it has received, and sends on the result.
#[test]
fn a_fold_for_all() {
    let fold = "fold 0.input[0..1], 1.input[0..1], 2.input[0..1] -> 0.output[0..1], 1.output[0..1], 2.output[0..1]";
    check(
        &by_rank_1("AllReduce", ["", "", ""], &[fold]),
        "0>1 2>1 1>2 1>0",
        &expect![[r#"
            rank 0
              send 0.input[0..1] to 1 @0
              sent @0
              receive 0.output[0..1] from 1 @3
              received @3
            rank 1
              receive 1.received0#0@0[0..1] from 0 @0
              receive 1.received0#1@0[0..1] from 2 @1
              received @0
              received @1
              fold 1.received0#0@0[0..1], 1.input[0..1], 1.received0#1@0[0..1] -> 1.output[0..1]
              send 1.output[0..1] to 2 @2
              send 1.output[0..1] to 0 @3
              sent @2
              sent @3
            rank 2
              send 2.input[0..1] to 1 @1
              sent @1
              receive 2.output[0..1] from 1 @2
              received @2
        "#]],
    );
}

/// The rank whose data is the target of a fold does the fold, in the author's order.
#[test]
fn a_push_is_folded_by_the_receiver() {
    let before = ["copy 0.input[0..1] -> 0.output[0..1]", "", ""];
    let moves = [
        "fold 0.output[0..1], 1.input[0..1], 2.input[0..1] -> 0.output[0..1]",
        "copy 0.output[0..1] -> 1.output[0..1], 2.output[0..1]",
    ];
    check(
        &by_rank_1("AllReduce", before, &moves),
        "1>0 2>1 1>0 0>1 1>2",
        &expect![[r#"
        rank 0
          receive 0.received0#0@0[0..1] from 1 @0
          receive 0.received0#1@0[0..1] from 1 @2
          copy 0.input[0..1] -> 0.output[0..1]
          received @0
          received @2
          fold 0.output[0..1], 0.received0#0@0[0..1], 0.received0#1@0[0..1] -> 0.output[0..1]
          send 0.output[0..1] to 1 @3
          sent @3
        rank 1
          receive 1.received0#0@0[0..1] from 2 @1
          send 1.input[0..1] to 0 @0
          received @1
          send 1.received0#0@0[0..1] to 0 @2
          sent @0
          receive 1.output[0..1] from 0 @3
          received @3
          send 1.output[0..1] to 2 @4
          sent @2
          sent @4
        rank 2
          send 2.input[0..1] to 1 @1
          sent @1
          receive 2.output[0..1] from 1 @4
          received @4
    "#]],
    );
}

/// A fold for ranks without an operand is done where it is moved, in scratch. Data that is read twice comes once.
#[test]
fn a_fold_for_others() {
    let moves = [
        "fold 0.input[0..1], 1.input[0..1], 0.input[0..1] -> 1.s#1@0[0..1]",
        "fold 0.input[0..1], 1.input[0..1] -> 2.s#0@0[0..1]",
        "fold 2.s#0@0[0..1], 2.input[0..1] -> 1.output[0..1], 2.output[0..1], 0.output[0..1]",
    ];
    let text = by_rank_1("AllReduce", ["", "", ""], &moves);
    let (author, form) = of_text(&text);
    same_bits(&author, &form, &mut Rng::with_seed(1), &text);
    assert_eq!(ways(&form), "0>1 0>1 1>2 2>1 2>1 1>2 1>0");
}

/// A region without elements at every count is no message; a region that is empty at some counts is one.
#[test]
fn nothing_is_left_out_at_both_ends() {
    let moves = [
        "copy 0.input[1/2..1/2] -> 1.output[1/2..1/2]",
        "copy 0.input[0..1/2] -> 0.output[0..1/2], 1.output[0..1/2], 2.output[0..1/2]",
        "copy 0.input[1/2..1] -> 0.output[1/2..1], 1.output[1/2..1], 2.output[1/2..1]",
    ];
    let text = by_rank_1("Broadcast", ["", "", ""], &moves);
    let (author, form) = of_text(&text);
    same_bits(&author, &form, &mut Rng::with_seed(7), &text);
    // The two halves lie side by side.
    assert_eq!(ways(&form), "0>1 1>2");
}
