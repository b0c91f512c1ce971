//! Ops that stand for several statements.

use roundelay_core::ids::SpanId;
use roundelay_core::optimize::join;
use roundelay_core::schedule::{OpKind, text};

const TEXT: &str = "schedule Ring AllReduce nranks 1 root 0\n\
    file \"ring.coll\"\n\
    at 0 = 12:1..12:9\n\
    at 1 = 20:1..20:9\n\
    at 2 = 14:1..14:9\n\
    at 3 = 2, 0, 1\n\
    rank 0 stream 0\n  \
    copy 0.input[0..1] -> 0.output[0..1] @3\n";

#[test]
fn an_op_of_several_statements_keeps_them_in_its_text() {
    let schedule = text::parse(TEXT).expect("the printed text is readable");
    assert_eq!(text::print(&schedule), TEXT);
    let at = schedule.ops[0].at;
    assert_eq!(schedule.lines(at), [12, 14, 20]);
    assert_eq!(schedule.location(at).line, 14);
    assert_eq!(schedule.place(at), "ring.coll:12, 14 and 20");
    assert_eq!(schedule.place(SpanId(2)), "ring.coll:14");
    assert_eq!(schedule.place(SpanId(4)), "");
    assert_eq!(schedule.lines(SpanId(1)), [20]);
    assert_eq!(schedule.lines(SpanId(4)), [0; 0]);
    for (from, to) in [("2, 0, 1", "2, 0, 9"), ("2, 0, 1", "2"), ("2, 0, 1", "2, 3")] {
        let error = text::parse(&TEXT.replace(from, to)).expect_err(to);
        assert_eq!(error.line, 6, "{error}");
    }
    let late = TEXT.replace("rank 0", "at 4 = 1:1..1:2\nrank 0");
    assert_eq!(text::parse(&late).expect_err("a location after them").line, 7);
}

/// Moves of `first` and of `second` that lie side by side, as one move each.
fn joined(first: [&str; 2], second: [&str; 2]) -> Vec<SpanId> {
    let moved = |at: [&str; 2], lo: u32| {
        let piece = |n: u32| format!("[{n}/4..{}/4]", n + 1);
        let [a, b] = [piece(lo), piece(lo + 1)];
        let [one, two] = at;
        format!(
            "  copy 0.input{a} -> 0.output{a} @{one}\n  copy 0.input{b} -> 0.output{b} @{two}\n"
        )
    };
    let head = TEXT.split_once("  copy").expect("an op").0;
    let text = format!(
        "{head}{}  post fork 0->0 lane 1 @0\n{}rank 0 stream 1\n  wait fork 0->0 lane 1 @0\n",
        moved(first, 0),
        moved(second, 2),
    );
    let joined = join(&text::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}")));
    let moves = joined.ops.iter().filter(|op| op.kind == OpKind::Move);
    moves.map(|op| op.at).collect()
}

#[test]
fn equal_sets_have_one_id() {
    assert_eq!(joined(["2", "1"], ["2", "1"]), [SpanId(4); 2], "a new set");
    assert_eq!(joined(["2", "0"], ["3", "3"]), [SpanId(4), SpanId(3)], "others than a known set");
    assert_eq!(joined(["1", "1"], ["3", "0"]), [SpanId(1), SpanId(3)], "one, and a known set");
    assert_eq!(joined(["2", "3"], ["1", "0"]), [SpanId(3), SpanId(4)], "all of them, and two");
}
