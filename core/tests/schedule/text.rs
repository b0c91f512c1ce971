//! The text form reads back exactly, and an invalid text gives an error that names the fault.

use expect_test::expect;
use proptest::prelude::*;
use roundelay_core::ids::OpId;
use roundelay_core::schedule::Schedule;
use roundelay_core::schedule::text::{parse, print};

use super::{NCCL_RING, RING, SLOTS, TWISTED, lay_out};
use crate::cases;

#[test]
fn it_reads_back_exactly() {
    for (text, most) in [(RING, 9), (TWISTED, 9), (SLOTS, 3), (NCCL_RING, 5)] {
        for nranks in 1..=most {
            let mut schedule = lay_out(text, nranks);
            assert_eq!(parse(&print(&schedule)).as_ref(), Ok(&schedule));
            if let Some(op) = schedule.ops.iter_mut().find(|op| op.srcs > 1) {
                op.finish = true;
            }
            assert_eq!(parse(&print(&schedule)), Ok(schedule));
        }
    }
}

#[test]
fn one_op_a_line() {
    let text = print(&lay_out(SLOTS, 1));
    let ops: Vec<&str> = text.lines().filter(|line| !line.starts_with("at ")).collect();
    expect![[r#"
        schedule Slots AllReduce nranks 1 root 0 out_of_place
        scratch inbox slots 1 width 1
        scratch slot slots 2 width 1/3
        file "test.coll"
        rank 0 stream 0
          copy 0.input[0..1] -> 0.output[0..1], 0.inbox#0@0[0..1] @4
          post fork 0->0 stream 1 @5
          post fork 0->0 stream 2 @6
          copy 0.output[1/3..2/3] -> 0.slot#1@1/3[1/3..2/3] @8
          fold 0.output[1/3..2/3], 0.slot#1@1/3[1/3..2/3], 0.inbox#0@0[1/3..2/3] -> 0.output[1/3..2/3] @9
          wait join 0->0 stream 2 @6
          wait join 0->0 stream 1 @5
        rank 0 stream 1
          wait fork 0->0 stream 1 @5
          post fork 0->0 stream 3 @6
          wait join 0->0 stream 3 @6
          post join 0->0 stream 1 @5
        rank 0 stream 2
          wait fork 0->0 stream 2 @6
          post join 0->0 stream 2 @6
        rank 0 stream 3
          wait fork 0->0 stream 3 @6
          post join 0->0 stream 3 @6
    "#]]
    .assert_eq(&(ops.join("\n") + "\n"));
}

#[test]
fn what_is_wrong_is_said() {
    let wrong = |text: &str| parse(text).unwrap_err().to_string();
    cases::check("schedule/text.txt", &[("empty", String::new())], wrong);
}

#[test]
fn files_of_any_name_are_read_back() {
    for name in ["", "ring.coll", " a \"b\" ", "C:\\new\\r.coll", "two\nlines\r", "\\"] {
        let schedule = Schedule { file: name.into(), ..lay_out(TWISTED, 2) };
        assert_eq!(parse(&print(&schedule)).as_ref(), Ok(&schedule));
    }
}

#[test]
fn streams_are_found_by_op() {
    let schedule = lay_out(TWISTED, 3);
    for (id, stream) in schedule.streams.iter().enumerate() {
        for op in stream.first.0..stream.first.0 + stream.len {
            assert_eq!(schedule.stream_of(OpId(op)).index(), id);
        }
    }
}

proptest! {
    #[test]
    fn damaged_text_never_panics(at in 0..3000_usize, with in "[ -~]{0,3}") {
        let mut text = print(&lay_out(TWISTED, 2));
        let at = at.min(text.len() - 1);
        if text.is_char_boundary(at) && text.is_char_boundary(at + 1) {
            text.replace_range(at..=at, &with);
        }
        if let Ok(schedule) = parse(&text) {
            let _ = roundelay_core::schedule::legality::check(&schedule);
        }
    }
}
