//! The steps of a rank for a count, as places in its buffers.

use roundelay_core::dtype::{DType, ReduceOp};
use roundelay_core::ids::RankId;
use roundelay_core::messages::{Groups, TwoSided};

use super::super::nccl_steps::{NcclPlace, NcclStep, Steps};
use super::world::Case;
use crate::library::named;

#[test]
fn a_ring_of_two_in_steps() {
    let case = Case::new(named("RingAllReduce", 2), 10, (DType::F64, ReduceOp::Avg));
    let steps = case.steps(RankId(0));
    let (input, output) = (NcclPlace::Input, NcclPlace::Output);
    let [
        NcclStep::Fold { from: whole, to, len: 10, divisor: 0 },
        NcclStep::Group { sends, receives },
        NcclStep::Fold { from, to: folded, len: 5, divisor: 2 },
        NcclStep::Group { .. },
    ] = &steps.list[..]
    else {
        panic!("a copy, an exchange, a fold, an exchange: {:?}", steps.list)
    };
    assert_eq!((&whole[..], &to[..]), (&[input(0)][..], &[output(0)][..]));
    let [send] = sends[..] else { panic!("one send") };
    let [receive] = receives[..] else { panic!("one receive") };
    assert_eq!((send.peer, send.len, receive.peer, receive.len), (1, 5, 1, 5));
    assert_eq!(receive.place, NcclPlace::Scratch(0));
    assert!(
        from.contains(&NcclPlace::Scratch(0)) && from.contains(&folded[0]),
        "{from:?} {folded:?}"
    );
    assert_eq!(steps.scratch % 256, 0);
    assert!(steps.scratch >= 40, "five elements of eight bytes");
}

#[test]
fn what_is_empty_is_left_out() {
    let groups = |count| {
        let case = Case::new(named("RingAllReduce", 4), count, (DType::F32, ReduceOp::Sum));
        let steps = case.steps(RankId(1));
        let transfers = steps.list.iter().map(|step| match step {
            NcclStep::Group { sends, receives } => sends.len() + receives.len(),
            NcclStep::Fold { len, .. } => {
                assert!(*len > 0);
                0
            }
        });
        transfers.sum::<usize>()
    };
    // Six rounds of a send and a receive; one element belongs to one block, which passes through every rank.
    assert_eq!([groups(4), groups(0)], [12, 0]);
    assert!(groups(1) < 5, "{}", groups(1));
}

#[test]
fn buffers_that_no_memory_holds_are_refused() {
    let form = TwoSided::new(&named("RingAllReduce", 2)).expect("a form");
    let groups = Groups::new(&form).expect("groups");
    let kind = (DType::F32, ReduceOp::Sum);
    for count in [u64::MAX, 1 << 61, 1 << 60] {
        let error = Steps::new(&form, &groups, RankId(0), count, kind).expect_err("too large");
        assert_eq!(error.code().as_str(), "E0407");
        assert!(error.to_string().contains("more bytes than addresses"), "{error}");
    }
    assert!(Steps::new(&form, &groups, RankId(0), 1 << 50, kind).is_ok());
}
