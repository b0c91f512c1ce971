//! A schedule as a worked table.

use roundelay_core::check::Frontend;
use roundelay_core::compile;
use roundelay_core::diagnostics::{Code, Finding};
use roundelay_core::layout::{Algorithm as _, Configured};
use roundelay_core::schedule::text;
use roundelay_core::syntax::Source;
use roundelay_export::steps::{Steps, steps};

fn of(head: &str, body: &str, nranks: u32) -> Result<Steps, Vec<Finding>> {
    let text = format!("algorithm A(root: Rank = 0) -> {head} {{ {body} }}");
    let source = Source::from_text("test.coll", &text);
    let program = compile(&source, Frontend::File).expect("it makes sense");
    let algorithm = Configured::new(program.algorithms[0].clone(), &source);
    steps(&algorithm.schedule(nranks).expect("it fits"))
}

fn lines(head: &str, body: &str, nranks: u32) -> Vec<String> {
    let steps = of(head, body, nranks).expect("it is right");
    [vec![steps.heading(&[])], steps.lines(usize::MAX)].concat()
}

/// Rank 1 has the root's input after `pulls`.
fn broadcast(pulls: &str) -> Vec<String> {
    let body = format!(
            "scratch aside: like output;
             if rank == root {{ copy(local.input, local.output); peer(1).TxAck(); peer(1).RxDataSignal(); }}
             else {{ let from = peer(root); from.RxAck(); {pulls} from.TxDataSignal(); }}"
        );
    lines("Broadcast", &body, 2)
}

#[test]
fn moves_of_one_message_are_one_step() {
    let whole = broadcast("copy(from.output, local.output);");
    assert_eq!(whole, ["2 ranks:", "step 0  0->1"]);
    let halves = "copy(from.output.block(1), local.output.block(1)); {} copy(from.output.block(0), local.output.block(0));";
    let whole = broadcast(&halves.replace("{}", ""));
    assert_eq!(whole, ["2 ranks:", "step 0  0->1"], "nothing in between");
    let one = ["2 ranks:", "step 0  0->1"];
    let local = "copy(local.output.block(1), local.aside.block(1));";
    assert_eq!(broadcast(&halves.replace("{}", local)), one, "a move at home in between");
    let twice = broadcast(&"copy(from.output, local.output);".repeat(2));
    assert_eq!(twice, one, "neither sends what the other writes");
    let nothing = "copy(from.output.split(2)[0..0], local.output.split(2)[0..0]);";
    let none = broadcast(&format!("copy(from.output, local.output); {local} {nothing}"));
    assert_eq!(none, one, "an empty region does not travel");
}

/// Rank 1 pulls one part, signals, and pulls the other part.
fn in_two_steps(first: &str, then: &str) -> Vec<String> {
    let body = format!(
        "if rank == root {{
                copy(local.input, local.output);
                for i in 0..2 {{ peer(1).TxAck(); peer(1).RxDataSignal(); }}
             }} else {{
                let from = peer(root);
                from.RxAck(); copy(from.output.{first}, local.output.{first}); from.TxDataSignal();
                from.RxAck(); copy(from.output.{then}, local.output.{then}); from.TxDataSignal();
             }}"
    );
    lines("Broadcast", &body, 2)
}

#[test]
fn a_signal_in_between_is_a_step() {
    let two = ["2 ranks:", "step 0  0->1[1]", "step 1  0->1[0]"];
    assert_eq!(in_two_steps("block(1)", "block(0)"), two);
}

/// Each rank pulls the block of every other.
const DIRECT: &str = "copy(local.input, local.output.block(rank));
            for d in 1..nranks { peer((rank - d) % nranks).TxAck(); }
            for d in 1..nranks { peer((rank + d) % nranks).RxAck(); }
            for d in 1..nranks { let b = (rank + d) % nranks; copy(peer(b).output.block(b), local.output.block(b)); }
            for d in 1..nranks { peer((rank + d) % nranks).TxDataSignal(); }
            for d in 1..nranks { peer((rank - d) % nranks).RxDataSignal(); }";

#[test]
fn another_peer_is_another_message() {
    assert_eq!(
        lines("AllGather", DIRECT, 3),
        ["3 ranks:", "step 0  0->1[0] 0->2[0] 1->0[1] 1->2[1] 2->0[2] 2->1[2]"]
    );
    assert_eq!(lines("AllGather", DIRECT, 1), ["1 rank: nothing travels"]);
}

#[test]
fn pieces_are_numbered_while_they_are_few() {
    let pull = |n: u32, piece: &str, rest: &str| {
        in_two_steps(&format!("split({n})[{piece}]"), &format!("split({n})[{rest}]"))
    };
    let of_4 = ["2 ranks, pieces of 1/4:", "step 0  0->1[0,1,2]", "step 1  0->1[3]"];
    assert_eq!(pull(4, "0..3", "3"), of_4);
    let of_8 = ["2 ranks, pieces of 1/8:", "step 0  0->1[0..7]", "step 1  0->1[7]"];
    assert_eq!(pull(8, "0..7", "7"), of_8);
    let of_65 = ["2 ranks:", "step 0  0->1[0..1/65]", "step 1  0->1[1/65..1]"];
    assert_eq!(pull(65, "0", "1..65"), of_65);
}

#[test]
fn pushes_and_what_lies_in_scratch() {
    let body = "scratch sum: like input;
            if rank == 2 { copy(local.input, local.sum); peer(1).RxAck(); reduce(local.sum, peer(1).sum); peer(1).TxDataSignal(); }
            if rank == 1 { copy(local.input, local.sum); peer(2).TxAck(); peer(2).RxDataSignal();
                peer(0).RxAck(); reduce(local.sum, peer(0).output); peer(0).TxDataSignal(); }
            if rank == 0 { copy(local.input, local.output); peer(1).TxAck(); peer(1).RxDataSignal(); }";
    assert_eq!(lines("Reduce", body, 3), ["3 ranks:", "step 0  2->1+", "step 1  1->0+"]);
    let body = "scratch relay: like input;
            let next = peer((rank + 1) % nranks); let before = peer((rank - 1) % nranks);
            view sent = input.split(nranks); view got = output.split(nranks); view held = relay.split(nranks);
            copy(local.sent[rank], local.got[rank]);
            next.TxAck(); before.RxAck();
            copy(before.sent[rank], local.got[before.rank]);
            copy(before.sent[next.rank], local.held[0]);
            before.TxDataSignal(); next.RxDataSignal(); next.TxAck(); before.RxAck();
            copy(before.held[0], local.got[next.rank]);
            before.TxDataSignal(); next.RxDataSignal();";
    assert_eq!(
        lines("AllToAll", body, 3),
        [
            "3 ranks:",
            "step 0  0->1[1,2] 1->2[0,2] 2->0[0,1]",
            "step 1  0->1[2:1] 1->2[0:2] 2->0[1:0]"
        ]
    );
}

/// The language cannot express this, but NCCL's primitives become such folds.
#[test]
fn a_sum_that_is_written_elsewhere_is_not_added_there() {
    let schedule = "
schedule A Reduce nranks 2 root 1
scratch slot slots 1 width 1
rank 0 stream 0
  wait ack 1->0 @0
  copy 1.input[0..1] -> 0.slot[0..1] @0
  fold 0.input[0..1], 0.slot[0..1] -> 1.output[0..1] @0
  post data 0->1 @0
rank 1 stream 0
  post ack 1->0 @0
  wait data 0->1 @0
";
    let schedule = text::parse(schedule).expect("a schedule");
    let steps = steps(&schedule).expect("it is right");
    assert_eq!(steps.lines(usize::MAX), ["step 0  1->0", "step 1  0->1"]);
}

#[test]
fn what_is_wrong_has_no_table() {
    let body = "copy(local.input, local.output); if rank == 0 { peer(1).RxAck(); }";
    let findings = of("AllReduce", body, 2).expect_err("rank 0 waits for ever");
    assert_eq!(findings[0].code, Code::UnmatchedWait);
}

#[test]
fn long_lines_go_on_under_their_first_word() {
    let words = |n: usize| (0..n).map(|i| format!("{i}->9")).collect();
    let mut steps = of("AllGather", DIRECT, 10).expect("it is right");
    steps.steps = vec![words(3), words(1)];
    let wrapped = ["step 0  0->9 1->9", "        2->9", "step 1  0->9"];
    assert_eq!(steps.lines(17), wrapped);
    let narrow = ["step 0  0->9", "        1->9", "        2->9", "step 1  0->9"];
    assert_eq!(steps.lines(16), narrow);
    assert_eq!(steps.lines(0), narrow, "a word is never cut");
    let set = [("slices".to_owned(), "2".to_owned())];
    assert_eq!(steps.heading(&set), "10 ranks, slices = 2:");
}
