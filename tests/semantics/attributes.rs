//! Errors that the generated test of an algorithm finds and its expansion does not.

// Algorithms in functions: their own tests are not run.
#![allow(unnameable_test_items)]

use std::panic::catch_unwind;

use roundelay::collective;
use roundelay::expand::is_proved;

/// Why a generated test fails.
fn why(test: impl FnOnce() + std::panic::UnwindSafe) -> String {
    let panic = catch_unwind(test).expect_err("the test fails");
    panic.downcast_ref::<String>().cloned().unwrap_or_default()
}

#[test]
fn a_mistake_from_five_ranks_on() {
    collective! {
        algorithm FromFive(ring: Ring) -> AllGather {
            copy(local.input, local.output.block(ring.position));
            for round in 0..nranks - 1 {
                let b = (ring.position - round - 1) % nranks;
                ring.right.TxAck();
                ring.left.RxAck();
                copy(ring.left.output.block(b), local.output.block(b));
                if nranks < 5 || round < nranks - 2 {
                    ring.left.TxDataSignal();
                    ring.right.RxDataSignal();
                }
            }
        }
    }
    is_proved(&FromFive::new(), 2..=4, false);
    let why = why(|| is_proved(&FromFive::new(), 2..=33, false));
    assert!(why.starts_with("FromFive is not proved for nranks = 5\nerror[E0306]: "), "{why}");
    assert!(!why.contains("nranks = 6"), "the smallest count says most: {why}");
}

#[test]
fn refusals() {
    collective! {
        algorithm Pairs() -> AllGather {
            require nranks == 2, "these are pairs";
            let other = peer((rank + 1) % nranks);
            copy(local.input, local.output.block(rank));
            other.TxAck();
            other.RxAck();
            copy(other.input, local.output.block(other.rank));
            other.TxDataSignal();
            other.RxDataSignal();
        }
    }
    is_proved(&Pairs::new(), 1..=5, false);
    let named = why(|| is_proved(&Pairs::new(), [2, 3], true));
    assert!(named.contains("E0205") && named.contains("these are pairs"), "{named}");
    let none = why(|| is_proved(&Pairs::new(), 3..=5, false));
    assert!(none.starts_with("Pairs admits no rank count that was tried"), "{none}");
}

#[test]
fn a_mistake_with_another_root_than_the_default() {
    collective! {
        #[verify(off, reason = "its test is to find the mistake")]
        algorithm FromZero(root: Rank = 0) -> Broadcast {
            let from = if root < 3 { root } else { 0 };
            if rank == from {
                copy(local.input, local.output);
                for d in 1..nranks { peer((from + d) % nranks).TxAck(); }
                for d in 1..nranks { peer((from + d) % nranks).RxDataSignal(); }
            } else {
                peer(from).RxAck();
                copy(peer(from).output, local.output);
                peer(from).TxDataSignal();
            }
        }
    }
    is_proved(&FromZero::new(), 2..=3, false);
    let found = "FromZero is not proved for nranks = 4\nerror[E0207]: ";
    for counts in [vec![2, 3, 4, 5], vec![4]] {
        let why = why(|| is_proved(&FromZero::new(), counts, true));
        assert!(why.starts_with(found) && why.ends_with("\n  with root 3"), "{why}");
    }
}

#[test]
fn plans_keep_to_attributes() {
    use roundelay::{DType, ReduceOp, ToPlan as _};
    collective! {
        #[budget(streams = nranks - 2)]
        #[verify(off, reason = "the plan is to refuse it")]
        algorithm Budget() -> AllGather {
            copy(local.input, local.output.block(rank));
            parallel i in 1..nranks {
                let to = peer((rank + i) % nranks);
                let from = peer((rank - i) % nranks);
                to.TxAck();
                from.RxAck();
                copy(from.input, local.output.block(from.rank));
                from.TxDataSignal();
                to.RxDataSignal();
            }
        }
    }
    let error = Budget::new().plan(4, 8, DType::F32, ReduceOp::Sum).unwrap_err();
    assert_eq!(error.code().as_str(), "E0315", "{error}");
}
