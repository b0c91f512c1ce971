//! Which proofs out of place serve in place too.

use roundelay_core::check::Frontend;
use roundelay_core::compile;
use roundelay_core::layout::{Algorithm as _, Configured};
use roundelay_core::schedule::text;
use roundelay_core::syntax::Source;
use roundelay_core::verify::in_place_follows;

fn of(head: &str, body: &str) -> bool {
    let text = format!("algorithm A(root: Rank = 0) -> {head} {{ {body} }}");
    let source = Source::from_text("test.coll", &text);
    let program = compile(&source, Frontend::File).expect("the source is valid");
    let schedule = Configured::new(program.algorithms[0].clone(), &source);
    in_place_follows(&schedule.schedule(3).expect("the algorithm fits")).expect("few cells")
}

const SIGNALS: &str = "peer((rank + 1) % nranks).TxAck(); peer((rank - 1) % nranks).RxAck();";

#[test]
fn only_what_is_copied_home_first() {
    let home = "copy(local.input, local.output);";
    assert!(of("AllReduce", home));
    assert!(of(
        "AllReduce",
        &format!("{home} {SIGNALS} copy(peer((rank + 1) % nranks).output, local.output);")
    ));
    assert!(!of("AllReduce", &format!("{SIGNALS} {home}")), "the copy is not first");
    assert!(!of(
        "AllReduce",
        &format!("{home} {SIGNALS} copy(peer((rank + 1) % nranks).input, local.output);")
    ));
    let home = "copy(local.input, local.output.block(rank));";
    let next = "copy(local.output.block(rank), local.output.block((rank + 1) % nranks));";
    assert!(of("AllGather", &format!("{home} {next}")));
    assert!(!of("AllGather", &format!("{home} {next} {home}")), "the copy is not first");
    assert!(of("AllGather", "copy(local.input, local.output.block(rank));"));
    assert!(!of("AllGather", "copy(local.input, local.output.block(0));"));
}

#[test]
fn streams_that_begin_before_anything_is_waited_for() {
    let half = "copy(local.input.split(2)[way], local.output.split(2)[way]);";
    assert!(of("AllReduce", &format!("parallel way in 0..2 {{ {half} {SIGNALS} }}")));
    assert!(!of("AllReduce", &format!("{SIGNALS} parallel way in 0..2 {{ {half} }}")));
    let twice = format!("parallel way in 0..2 {{ {SIGNALS} }} parallel way in 0..2 {{ {half} }}");
    assert!(!of("AllReduce", &twice), "the second time the streams have been joined");
}

#[test]
fn a_stream_that_nobody_forks_is_looked_at_from_its_first_op() {
    let read =
        |text: &str| in_place_follows(&text::parse(text).expect("a schedule")).expect("few cells");
    let head = "
schedule A AllReduce nranks 2 root 0
rank 0 stream 0
  copy 0.input[0..1] -> 0.output[0..1] @0
rank 1 stream 0
  copy 1.input[0..1] -> 1.output[0..1] @0
";
    assert!(read(head));
    assert!(!read(&format!("{head}rank 1 stream 1\n  copy 0.input[0..1] -> 1.output[0..1] @0\n")));
}

#[test]
fn inputs_that_lie_apart_do_not_matter() {
    let pull = "if rank == root { copy(local.input, local.output.block(rank)); copy(peer((rank + 1) % nranks).input, local.output.block(1)); }";
    assert!(of("Gather", pull), "only the root's input shares memory");
    let pull = "if rank == 1 { copy(peer(root).input.block(1), local.output); }";
    assert!(!of("Scatter", pull));
}
