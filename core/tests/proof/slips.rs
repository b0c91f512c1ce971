//! One slip gives one error, at the smallest rank count that shows it: right programs with one thing wrong, as the
//! command and the macro go through their rank counts.

use roundelay_core::check::Frontend;
use roundelay_core::compile;
use roundelay_core::layout::Configured;
use roundelay_core::syntax::Source;
use roundelay_core::verdict::{Asked, Verdict, Within};

const RING: &str = "algorithm Ring() -> AllReduce {
    let left = peer((rank - 1) % nranks);
    let right = peer((rank + 1) % nranks);
    view block = output.split(nranks);
    copy(local.input, local.output);
    for k in 0..nranks - 1 {
        let b = (rank - 1 - k) % nranks;
        right.TxAck();
        left.RxAck();
        reduce(left.block[b], local.block[b]);
        left.TxDataSignal();
        right.RxDataSignal();
    }
    for j in 0..nranks - 1 {
        let c = (rank - j) % nranks;
        right.TxAck();
        left.RxAck();
        copy(left.block[c], local.block[c]);
        left.TxDataSignal();
        right.RxDataSignal();
    }
}";

/// Every rank pulls block after block from its left neighbour, at two ranks and more.
pub(crate) const AROUND: &str = "algorithm Around() -> AllGather {
    require nranks > 1, \"somebody to talk to\";
    let left = peer((rank - 1) % nranks);
    let right = peer((rank + 1) % nranks);
    view block = output.split(nranks);
    copy(local.input, local.block[rank]);
    for k in 0..nranks - 1 {
        let b = (rank - 1 - k) % nranks;
        right.TxAck();
        left.RxAck();
        copy(left.block[b], local.block[b]);
    }
    left.TxDataSignal();
    right.RxDataSignal();
}";

/// The errors of `text` at growing rank counts: code, line and rank count.
fn told(text: &str) -> Vec<String> {
    let source = Source::from_text("test.coll", text);
    let program = compile(&source, Frontend::File).expect("what the checker refuses is no slip");
    let algorithm = Configured::new(program.algorithms[0].clone(), &source);
    let asked = Asked::with_limits(&[1, 2, 3, 4, 5, 6, 7, 8, 9], Within::Plans);
    let verdict = Verdict::with_facts(&algorithm, &asked, |_| (), |_| ());
    let line = |error: &roundelay_core::diagnostics::Diagnostic| {
        let line = source.location(error.primary).line;
        format!("{} line {line} nranks {}", error.code, error.nranks.unwrap_or_default())
    };
    verdict.errors.iter().map(line).collect()
}

#[track_caller]
fn one_error(program: &str, from: &str, to: &str, expected: &str) {
    assert!(program.contains(from), "the program has no {from}");
    assert_eq!(told(&program.replacen(from, to, 1)), [expected], "{from} -> {to}");
}

#[test]
fn nothing_is_wrong_before() {
    assert_eq!((told(RING), told(AROUND)), (Vec::new(), Vec::new()));
}

#[test]
fn a_missing_signal() {
    one_error(RING, "right.TxAck();\n", "\n", "E0302 line 17 nranks 2");
    one_error(RING, "left.RxAck();\n", "\n", "E0303 line 16 nranks 2");
    one_error(RING, "left.TxDataSignal();\n", "\n", "E0302 line 20 nranks 2");
    one_error(RING, "right.RxDataSignal();\n", "\n", "E0303 line 19 nranks 2");
    one_error(AROUND, "right.TxAck();\n", "\n", "E0302 line 10 nranks 2");
    one_error(AROUND, "right.RxDataSignal();\n", "\n", "E0303 line 13 nranks 2");
}

#[test]
fn a_missing_pair_of_signals() {
    let ack = "right.TxAck();\n        left.RxAck();\n";
    let data = "left.TxDataSignal();\n        right.RxDataSignal();\n";
    one_error(RING, ack, "\n", "E0305 line 9 nranks 2");
    one_error(AROUND, ack, "\n", "E0305 line 10 nranks 2");
    let second = RING.replacen(data, "DATA", 1).replacen(data, "\n", 1).replacen("DATA", data, 1);
    assert_eq!(told(&second), ["E0306 line 18 nranks 2"]);
    let end = "left.TxDataSignal();\n    right.RxDataSignal();\n";
    one_error(AROUND, end, "\n", "E0306 line 11 nranks 2");
}

#[test]
fn a_signal_the_wrong_way() {
    one_error(RING, "left.TxDataSignal", "right.TxDataSignal", "E0302 line 20 nranks 3");
    one_error(RING, "left.RxAck", "right.RxAck", "E0302 line 9 nranks 3");
}

#[test]
fn the_wrong_block() {
    one_error(RING, "rank - 1 - k", "rank - k", "E0304 line 7 nranks 2");
    one_error(RING, "rank - 1 - k", "rank + 1 - k", "E0304 line 10 nranks 3");
    one_error(RING, "(rank - j)", "(rank + 1 - j)", "E0304 line 7 nranks 2");
    one_error(AROUND, "rank - 1 - k", "rank - k", "E0307 line 8 nranks 2");
    one_error(AROUND, "local.block[b]", "local.block[rank]", "E0305 line 11 nranks 2");
}

#[test]
fn off_by_one() {
    one_error(RING, "0..nranks - 1 {", "0..nranks {", "E0112 line 8 nranks 1");
    one_error(RING, "0..nranks - 1 {", "0..nranks - 2 {", "E0304 line 6 nranks 2");
    one_error(AROUND, "0..nranks - 1 {", "0..nranks - 2 {", "E0304 line 7 nranks 2");
    one_error(RING, "(rank + 1) % nranks", "(rank + 1)", "E0204 line 3 nranks 1");
    one_error(AROUND, "(rank - 1 - k) % nranks", "(rank - 1 - k)", "E0203 line 11 nranks 2");
}

#[test]
fn the_wrong_op() {
    one_error(RING, "reduce(", "copy(", "E0304 line 10 nranks 2");
    one_error(RING, "copy(left", "reduce(left", "E0304 line 18 nranks 2");
    one_error(RING, "copy(local.input, local.output);", "", "E0304 line 1 nranks 1");
    one_error(AROUND, "copy(local.input, local.block[rank]);", "", "E0307 line 11 nranks 2");
}

/// If one rank cannot even be laid out, that is one slip, and a mistake at two ranks is another.
#[test]
fn two_slips_at_two_rank_counts() {
    let text = AROUND.replace("require nranks > 1, \"somebody to talk to\";", "");
    assert_eq!(told(&text), ["E0112 line 13 nranks 1"]);
    let text = text.replacen("left.RxAck();\n", "\n", 1);
    assert_eq!(told(&text), ["E0112 line 13 nranks 1", "E0303 line 9 nranks 2"]);
}
