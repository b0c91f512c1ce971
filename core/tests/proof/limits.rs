//! Numbers at the ends of their types, where no oracle can follow: what does not fit is refused, never
//! wrapped around and never a crash.

use roundelay_core::diagnostics::Code;
use roundelay_core::verify::verify;

use crate::golden::read;
use crate::lay_out;

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

#[test]
fn streams_that_know_too_much_are_refused() {
    let found = verify(&lay_out(STAR, 65536).unwrap()).expect_err("2^32 entries");
    assert_eq!(found[0].code, Code::StepLimit);
    assert!(found[0].title.contains("65536 streams"), "{found:#?}");
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
