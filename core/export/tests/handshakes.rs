//! Signals at the begin and the end of a run, which keep accesses to scratch inside of it.

use std::collections::BTreeSet;

use roundelay_core::ids::{OpId, RankId};
use roundelay_core::schedule::OpKind;
use roundelay_core::schedule::text;
use roundelay_core::verify::{Signals, verify_with};
use roundelay_export::contest::{close_scratch, open};

/// Rank 1 reads rank 0's scratch; rank 0 learns of it only in the next run.
const LATE: &str = "
schedule Late Broadcast nranks 2 root 0
scratch slot slots 1 width 1
rank 0 stream 0
  copy 0.input[0..1] -> 0.output[0..1] @0
  wait ack 1->0 @0
  copy 0.input[0..1] -> 0.slot[0..1] @0
  post data 0->1 @0
rank 1 stream 0
  post ack 1->0 @0
  wait data 0->1 @0
  copy 0.slot[0..1] -> 1.output[0..1] @0
";

#[test]
fn a_late_reader_tells_the_owner() {
    let schedule = text::parse(LATE).expect("a schedule");
    let pair = (RankId(1), RankId(0));
    let late = [BTreeSet::new(), BTreeSet::from([pair])];
    assert_eq!(open(&schedule), Ok(late));
    let closed = close_scratch(&schedule).expect("it is in order");
    assert_eq!(open(&closed), Ok([BTreeSet::new(), BTreeSet::new()]));
    let [zero, one] = [0, 1].map(|at| closed.streams[at]);
    assert_eq!(closed.op(OpId(zero.first.0 + zero.len - 1)).kind, OpKind::Wait);
    assert_eq!(closed.op(OpId(one.first.0 + one.len - 1)).kind, OpKind::Post);
    let signals = Signals { one_shot: true, link_shared: true };
    verify_with(&closed, signals).expect("it is right");
}

/// Rank 0 writes without asking, and learns that rank 1 has used the data.
const PUSHED: &str = "
schedule Early Broadcast nranks 2 root 0
scratch slot slots 2 width 1
rank 0 stream 0
  copy 0.input[0..1] -> 0.output[0..1] @0
  copy 0.input[0..1] -> 1.slot[0..1] @0
  post data 0->1 @0
  wait ack 1->0 @0
rank 1 stream 0
  wait data 0->1 @0
  copy 1.slot[0..1] -> 1.output[0..1] @0
  post ack 1->0 @0
";

#[test]
fn a_writer_that_ends_last_needs_no_answer() {
    let schedule = text::parse(PUSHED).expect("a schedule");
    assert_eq!(open(&schedule), Ok([BTreeSet::new(), BTreeSet::new()]));
    assert_eq!(close_scratch(&schedule), Ok(schedule));
}

#[test]
fn an_early_writer_waits_for_the_owner() {
    // The owner accesses another slot later: with another count the next run could write there.
    let later = format!("{PUSHED}  copy 1.output[0..1] -> 1.slot[1..2] @0\n");
    let schedule = text::parse(&later).expect("a schedule");
    let early = [BTreeSet::from([(RankId(0), RankId(1))]), BTreeSet::new()];
    assert_eq!(open(&schedule), Ok(early));
    let closed = close_scratch(&schedule).expect("it is in order");
    assert_eq!(open(&closed), Ok([BTreeSet::new(), BTreeSet::new()]));
}
