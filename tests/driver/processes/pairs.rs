//! Many calls of several plans after one another, in all orders of two.

use std::time::Duration;

use roundelay::{DType, ReduceOp};
use roundelay_export::cuda::Form;
use roundelay_kernels::cuda::ProcessPlan;

use super::super::below::one_device::sums;
use super::super::rank_processes::{Room, case, plan_of, proved};
use super::{AVERAGE, Case, Data, Devices, all_succeeded, options, ranks};

/// The calls, unless the tests take all.
const FEW: usize = 300;
/// The calls after which results are compared.
const A_ROUND: usize = 25;

/// Calls that no rank waits for, of which ranks are late at some.
#[test]
fn calls_of_several_plans_follow_each_other() {
    let rank = on_each!(3, Devices::Each, &[]);
    let of = |count, dtype, op| Data { count, dtype, op };
    let proofs = [
        "RingAllReduce",
        "MeshAllReduce",
        "TreeBroadcast",
        "RingReduceScatter",
        "NhrAllGather",
        "PairwiseAllToAll",
    ]
    .map(|name| proved(name, 3));
    let shapes = [
        (0, sums(1003), Form::Loops),
        (0, AVERAGE, Form::Loops),
        (1, of(77, DType::I64, ReduceOp::Max), Form::Table),
        (2, sums(40), Form::Loops),
        (3, sums(5), Form::Loops),
        (4, of(9, DType::U8, ReduceOp::Sum), Form::Table),
        (5, sums(33), Form::Loops),
    ];
    let cases = shapes.map(|(at, data, form)| case(&proofs[at], data, form));
    let mut calls: Vec<(&Case, ProcessPlan, Room)> = cases
        .iter()
        .map(|case| {
            (case, plan_of(&rank, case, options()).expect("a plan"), Room::new(&rank, case))
        })
        .collect();
    let mut last = [false; 7];
    let streams = [rank.stream().clone(), rank.context().new_stream().expect("a stream")];
    // All ranks make the same calls; each has delays of its own.
    let mut order = fastrand::Rng::with_seed(7);
    let mut own = fastrand::Rng::with_seed(u64::from(rank.rank().0));
    let number = if roundelay_tests::takes_all() { 10_000 } else { FEW };
    for nth in 0..number {
        // Each plan is called once first.
        let at = if nth < calls.len() { nth } else { order.usize(..calls.len()) };
        let ((_, plan, room), second) = (&mut calls[at], order.bool());
        if own.u32(..20) == 0 {
            std::thread::sleep(Duration::from_micros(own.u64(..2000)));
        }
        let stream = &streams[usize::from(second)];
        // A result of an earlier call is none of this one.
        if last[at] != second {
            plan.wait().expect("the last launch of the plan ends");
        }
        last[at] = second;
        stream.memset_zeros(&mut room.shared).expect("cleared");
        room.launch_on(stream, plan).unwrap_or_else(|why| panic!("call {nth}: {why}"));
        if nth % A_ROUND != 0 && nth + 1 != number {
            continue;
        }
        let called = calls.len().min(nth + 1);
        for (case, plan, room) in &calls[..called] {
            plan.wait().unwrap_or_else(|why| panic!("by call {nth}: {why}"));
            let expected = &case.expected(false).expect("a form")[rank.rank().index()];
            assert!(room.result(&rank, false) == *expected, "{}, call {nth}", case.name(false));
        }
    }
}
