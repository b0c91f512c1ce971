//! Numbers at the ends of their types, where no oracle can follow: numbers that do not fit are refused, never wrapped
//! around and never a crash.

use roundelay_core::diagnostics::Code;
use roundelay_core::verify::verify;

use crate::proof::golden::read;
use crate::proof::lay_out;

/// A contribution counted 2^DOUBLINGS times too often: a sum modulo 2^DOUBLINGS does not see it.
const DOUBLED: &str = "
algorithm Doubled() -> AllReduce {
    scratch a: like output;
    scratch b: like output;
    copy(local.input, local.output);
    copy(local.input, local.a);
    for i in 0..DOUBLINGS {
        copy(local.a, local.b);
        reduce(local.b, local.a);
    }
    reduce(local.a, local.output);
}";

#[test]
fn a_double_count_never_vanishes() {
    for doublings in [1, 31, 32, 63, 64, 95, 96, 97, 127, 128, 129, 192, 256] {
        let source = DOUBLED.replace("DOUBLINGS", &doublings.to_string());
        let found = verify(&lay_out(&source, 1).unwrap()).expect_err("it counts rank 0 twice");
        assert_eq!(found[0].code, Code::WrongResult, "{doublings}");
        assert!(found[0].title.contains("counts rank 0 more than once"), "{found:#?}");
    }
}

/// 10^10 iterations are not walked to be counted, by neither way of laying a program out.
#[test]
fn loops_in_loops_are_refused_before_they_begin() {
    let text = |inner: &str| {
        format!(
            "algorithm Walk() -> AllReduce {{ let far = 100000; for i in 0..far {{ for j in 0..{inner} {{ }} }} \
         copy(local.input, local.output); }}"
        )
    };
    let found = lay_out(&text("far"), 1).expect_err("2^33 steps");
    assert_eq!(found[0].code, Code::StepLimit);
    assert!(
        found[0].title.starts_with("the loops in this one take 10000000000 steps"),
        "{found:#?}"
    );
    // A count that cannot be evaluated is still no error of its own, and an empty range is no error at all.
    assert!(
        lay_out(&text("1 / rank"), 1).is_err_and(|found| found[0].code == Code::DivisionByZero)
    );
    assert!(lay_out(&text("far - far"), 1).is_ok());
}

const STAR: &str = "
algorithm Star(root: Rank = 0) -> Broadcast {
    scratch unused: 1000000 like output;
    if rank == root {
        copy(local.input, local.output);
        for far in 1..nranks { peer((root + far) % nranks).TxAck(); }
        for far in 1..nranks { peer((root + far) % nranks).RxDataSignal(); }
    } else {
        peer(root).RxAck();
        copy(peer(root).output, local.output);
        peer(root).TxDataSignal();
    }
}";

#[test]
fn scratch_that_nothing_touches_takes_no_memory() {
    assert!(verify(&lay_out(STAR, 1000).unwrap()).is_ok());
}

/// Every rank hears of twice as many ranks in each round, none of them next to each other. The first reads make clocks
/// of neighbors unsure.
const EVERYBODY: &str = "
algorithm Everybody() -> AllReduce {
    scratch empty: like output;
    copy(local.empty, local.output);
    for k in 0..11 {
        peer((rank + (1 << (14 - k))) % nranks).TxAck();
        peer((rank - (1 << (14 - k))) % nranks).RxAck();
    }
}";

#[test]
fn streams_that_know_too_much_are_refused() {
    let found = verify(&lay_out(EVERYBODY, 33000).unwrap()).expect_err("more than 2^30 entries");
    assert_eq!(found[0].code, Code::StepLimit);
    assert!(found[0].title.contains("33000 streams"), "{found:#?}");
}

#[test]
fn streams_that_know_little_of_each_other_are_proved_however_many_there_are() {
    assert!(verify(&lay_out(STAR, 33000).unwrap()).is_ok());
}

#[test]
fn what_cannot_be_numbered_is_refused() {
    let ranks =
        (0..65536).fold(String::new(), |text, rank| text + &format!("rank {rank} stream 0\n"));
    let many = format!("schedule Many Scatter nranks 65536 root 0\n{ranks}");
    let wide = "
schedule Wide AllReduce nranks 1 root 0
scratch s slots 1 width 4294967296
rank 0 stream 0
  copy 0.s#0@0[0..4294967296] -> 0.s#0@0[0..4294967296] @0
  copy 0.input[0..1] -> 0.output[0..1] @0
";
    let widest = wide.replace("4294967296", &u64::MAX.to_string());
    for written in [many.as_str(), wide, &widest] {
        let found = verify(&read(written)).expect_err("beyond a proof");
        assert_eq!(found[0].code, Code::StepLimit);
    }
}
