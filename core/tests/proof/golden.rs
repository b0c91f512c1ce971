//! Mistakes that only a schedule written by hand can have, and the proof's findings.

use expect_test::{Expect, expect};
use roundelay_core::diagnostics::Code;
use roundelay_core::schedule::{Schedule, text};
use roundelay_core::verify::verify;
use roundelay_oracles::{Kind, wrong};

pub(crate) fn read(written: &str) -> Schedule {
    text::parse(written).unwrap_or_else(|error| panic!("{error}\n{written}"))
}

fn refused(written: &str, code: Code, expected: &Expect) {
    let found = verify(&read(written)).expect_err("this is wrong");
    assert_eq!(found[0].code, code, "{found:#?}");
    let first = &found[0];
    let lines =
        std::iter::once(&first.title).chain([&first.label]).chain(&first.notes).chain(&first.help);
    let said: Vec<&str> = lines.map(String::as_str).collect();
    expected.assert_eq(&said.join("\n"));
}

/// Rank 0 hands over both halves at once; the two streams of rank 1 wait for one signal.
const SHARED: &str = "
schedule Shared Broadcast nranks 2 root 0
at 0 = 1:1..1:9
at 1 = 2:1..2:9
rank 0 stream 0
  copy 0.input[0..1] -> 0.output[0..1] @0
  post ack 0->1 @0
  post ack 0->1 @0
  wait data 1->0 @0
rank 1 stream 0
  post fork 1->1 stream 1 @0
  wait ack 0->1 @0
  copy 0.output[0..1/2] -> 1.output[0..1/2] @0
  wait join 1->1 stream 1 @0
  post data 1->0 @0
rank 1 stream 1
  wait fork 1->1 stream 1 @0
  wait ack 0->1 @1
  copy 0.output[1/2..1] -> 1.output[1/2..1] @1
  post join 1->1 stream 1 @1
";

/// The second signal is posted only after the first was taken: but either stream may have taken it.
const STOLEN: &str = "
schedule Stolen Broadcast nranks 2 root 0
at 0 = 1:1..1:9
at 1 = 2:1..2:9
rank 0 stream 0
  copy 0.input[0..1] -> 0.output[0..1] @0
  post ack 0->1 @0
  wait data 1->0 @0
  post ack 0->1 @0
  wait data 1->0 @0
rank 1 stream 0
  post fork 1->1 stream 1 @0
  wait ack 0->1 @0
  copy 0.output[0..1/2] -> 1.output[0..1/2] @0
  post data 1->0 @0
  wait join 1->1 stream 1 @0
  post data 1->0 @0
rank 1 stream 1
  wait fork 1->1 stream 1 @0
  wait ack 0->1 @1
  copy 0.output[1/2..1] -> 1.output[1/2..1] @1
  post join 1->1 stream 1 @1
";

#[test]
fn shared_signals() {
    refused(
        SHARED,
        Code::SharedSignal,
        &expect![[r#"
        two streams of rank 1 share RxAck from rank 0
        this stream and another are not ordered
        one at rank 1, step 0, line 1, one at rank 1 (stream 1), step 0, line 2
        which of them meets which signal would depend on time
        let the streams differ in the values of their `parallel` variables: those name the lane"#]],
    );
    refused(
        STOLEN,
        Code::SharedSignal,
        &expect![[r#"
        two streams of rank 1 share RxAck from rank 0
        this stream and another are not ordered
        one at rank 1, step 0, line 1, one at rank 1 (stream 1), step 0, line 2
        which of them meets which signal would depend on time
        let the streams differ in the values of their `parallel` variables: those name the lane"#]],
    );
    assert_eq!(wrong(&read(STOLEN), 2, false), Some(Kind::SharedSignal));
}

#[test]
fn out_of_bounds() {
    let written = "
schedule Beyond AllReduce nranks 1 root 0
at 0 = 1:1..1:9
rank 0 stream 0
  copy 0.input[0..1] -> 0.output[1..2] @0
";
    refused(
        written,
        Code::OutOfBounds,
        &expect![[r#"
        this breaks the rule `bounds`: an operand lies within its rank's buffer
        broken here
        rank 0, step 0, line 1
        its operands are rank 0 input[0..1], rank 0 output[1..2]"#]],
    );
}

#[test]
fn misshapen_ops_keep_their_codes() {
    let cases = [
        ("copy 0.input[0..1/2] -> 0.output[1/2..1] @0", Code::LengthMismatch),
        ("copy 0.output[0..1] -> 0.input[0..1] @0", Code::InputWritten),
        ("copy 1.output[0..1] -> 1.output[0..1] @0", Code::NoLocalOperand),
        ("copy 0.input[0..1] -> 0.output[0..1], 0.output[0..1] @0", Code::RepeatedDestination),
        ("post ack 0->0 @0", Code::SelfSignal),
    ];
    for (op, code) in cases {
        let head = "schedule A AllReduce nranks 2 root 0\nrank 0 stream 0";
        let found = verify(&read(&format!("{head}\n{op}\nrank 1 stream 0"))).expect_err(op);
        assert_eq!(found[0].code, code, "{op}");
    }
}

/// The slot is written again from 1/2 of the input on, and read as if it still began at 0: right where the
/// count is even, wrong where the halves differ.
#[test]
fn a_slot_is_read_where_it_was_written() {
    let schedule = read(
        "
schedule Rebased AllReduce nranks 1 root 0
scratch slot slots 1 width 1
rank 0 stream 0
  copy 0.input[0..1] -> 0.slot#0@0[0..1] @0
  copy 0.input[1/2..1] -> 0.slot#0@1/2[1/2..1] @1
  copy 0.slot#0@0[1/2..1] -> 0.output[1/2..1] @2
  copy 0.input[0..1/2] -> 0.output[0..1/2] @3
",
    );
    assert_eq!(wrong(&schedule, 2, false), None);
    assert!(wrong(&schedule, 3, false).is_some());
    let found = verify(&schedule).expect_err("wrong at count 3");
    assert_eq!(found[0].code, Code::SlotLength);
}
