//! A form that differs from its schedule is found.

use roundelay_core::schedule::text::parse;
use roundelay_export::loops::{Loops, text};

const SCHEDULE: &str = "
schedule Two Broadcast nranks 2 root 0
rank 0 stream 0
  copy 0.input[0..1] -> 0.output[0..1] @0
  post data 0->1 @0
rank 1 stream 0
  wait data 0->1 @0
  copy 0.output[0..1] -> 1.output[0..1] @0
";

/// Every number and word of a form is compared with the schedule.
#[test]
fn a_form_that_differs_is_found() {
    let schedule = parse(SCHEDULE).expect("a schedule");
    let text = text::print(&Loops::of_schedule(&schedule).expect("it has a form"));
    let runs = |text: &str| text::parse(text).expect("a form").passes(&schedule).is_some();
    assert!(runs(&text), "{text}");
    for (from, to) in [
        ("post data", "post ack"),
        ("post data 1", "post data 0"),
        ("wait data", "post data"),
        ("input[0, 1]", "output[0, 1]"),
        ("output[0, 1] of 0", "output[0, 1]"),
        ("output[0, 1]\n", "output[0, 0]\n"),
        ("(me == 0)", "(me == 1)"),
        ("(me == 0)", "(1 / me)"),
    ] {
        let other = text.replacen(from, to, 1);
        assert!(other != text && !runs(&other), "{from}: {other}");
    }
}

/// A signal of a stream is in the lane of its stream.
#[test]
fn a_form_with_other_lanes_is_found() {
    let lanes = SCHEDULE.replace("data 0->1", "data 0->1 lane 5");
    let schedule = parse(&lanes).expect("a schedule");
    let flat = text::print(&Loops::of_schedule(&schedule).expect("it has a form"));
    let runs = |first: i64| {
        let streams = format!("body {{\n  streams %d in {first} .. {} {{ @1\n", first + 1);
        let form = flat.replace("of schedule", "of program").replace("body {\n", &streams) + "}\n";
        text::parse(&form).expect("a form").passes(&schedule).is_some()
    };
    assert!(runs(5) && !runs(4), "{flat}");
}

/// A pass is the one with its number on its link, in forms of programs and of schedules, and a signal that names its
/// lane is in this lane.
#[test]
fn a_form_with_other_passes_is_found() {
    let passes = "
schedule Passes Broadcast nranks 2 root 0
scratch fifo slots 2 width 1/2
rank 0 stream 0
  copy 0.input[0..1/2] -> 1.fifo#0@0[0..1/2] @1
  post tail 0->1 lane 5 @1
  copy 0.input[1/2..1] -> 1.fifo#1@1/2[1/2..1] @1
  post tail 0->1 lane 5 @1
  copy 0.input[0..1] -> 0.output[0..1] @2
rank 1 stream 0
  wait tail 0->1 lane 5 @1
  copy 1.fifo#0@0[0..1/2] -> 1.output[0..1/2] @1
  wait tail 0->1 lane 5 @1
  copy 1.fifo#1@1/2[1/2..1] -> 1.output[1/2..1] @1
";
    let schedule = parse(passes).expect("a schedule");
    let form = Loops::flat(&schedule, 2, true).finish();
    assert_eq!(form.passes(&schedule), Some(2));
    let text = text::print(&form);
    let runs = |text: &str| text::parse(text).expect("a form").passes(&schedule).is_some();
    assert!(runs(&text), "{text}");
    for (from, to) in [
        (" step %i#0", " step 0"),
        (" step %i#1", " step 1"),
        (" lane 1", " lane 0"),
        (" lane 1", " lane 2"),
    ] {
        let other = text.replacen(from, to, 1);
        assert!(other != text && !runs(&other), "{from}: {other}");
    }
    // A form may leave the numbers out.
    assert!(runs(&text.replace(" step %i#1", "")), "{text}");
}
