//! One algorithm, called in three ways: by one thread that holds the buffers of all ranks, by a thread for each rank,
//! and by name through a communicator.

// ANCHOR: uses
use std::thread;

use roundelay::{Comm, DType, Error, ReduceOp, ToPlan as _, collective};
// ANCHOR_END: uses

// ANCHOR: algorithm
collective! {
    /// AllReduce on a ring: every rank pulls one block a round from its left neighbor.
    algorithm FirstRing(ring: Ring) -> AllReduce {
        let left = ring.left;
        let right = ring.right;
        let me = ring.position;
        view block = output.split(nranks);

        copy(local.input, local.output);

        for round in 0..nranks - 1 {
            let b = (me - round - 1) % nranks;
            right.TxAck();
            left.RxAck();
            reduce(left.block[b], local.block[b]);
            left.TxDataSignal();
            right.RxDataSignal();
        }
        for round in 0..nranks - 1 {
            let b = (me - round) % nranks;
            right.TxAck();
            left.RxAck();
            copy(left.block[b], local.block[b]);
            left.TxDataSignal();
            right.RxDataSignal();
        }
    }
}
// ANCHOR_END: algorithm

// ANCHOR: plan
/// One thread holds the buffers of all four ranks.
fn one_caller() -> Result<(), Error> {
    // 4 ranks, 10 elements for each rank.
    let plan = FirstRing::new().plan(4, 10, DType::F32, ReduceOp::Sum)?;

    let inputs = [[1.0_f32; 10], [2.0; 10], [3.0; 10], [4.0; 10]];
    let mut outputs = [[0.0_f32; 10]; 4];
    plan.run(&inputs.each_ref().map(|i| &i[..]), &mut outputs.each_mut().map(|o| &mut o[..]))?;

    assert_eq!(outputs, [[10.0; 10]; 4]);
    Ok(())
}
// ANCHOR_END: plan

// ANCHOR: in_place
/// Runs the algorithm with other arguments: 64-bit integers, the maximum, one buffer for each rank.
fn in_place() -> Result<(), Error> {
    let ring = [0, 2, 1, 3]; // the order of the ranks around the ring
    let plan = FirstRing::new().ring(ring).plan(4, 3, DType::I64, ReduceOp::Max)?;

    let mut buffers = [[1_i64, 8, 3], [4, 2, 0], [7, 5, 5], [0, 1, 9]];
    plan.run_in_place(&mut buffers.each_mut().map(|b| &mut b[..]))?;

    assert_eq!(buffers, [[7, 8, 9]; 4]);
    Ok(())
}
// ANCHOR_END: in_place

// ANCHOR: spmd
/// Each rank is a thread, and each thread makes the call for its rank.
fn a_thread_for_each_rank() -> Result<(), Error> {
    let plan = FirstRing::new().spmd_plan(4, 10, DType::U32, ReduceOp::Sum)?;

    thread::scope(|threads| {
        for rank in 0..4 {
            let mine = plan.rank(rank).expect("ranks 0 to 3 exist");
            threads.spawn(move || {
                let input = [rank + 1; 10];
                let mut output = [0; 10];
                mine.run(&input, &mut output).expect("all four ranks call");
                assert_eq!(output, [10; 10]);
            });
        }
    });
    Ok(())
}
// ANCHOR_END: spmd

// ANCHOR: comm
/// Each rank calls collectives by name. The communicator makes the plans.
fn by_name() -> Result<(), Error> {
    let comm = Comm::new(4)?.using(FirstRing::new());

    thread::scope(|threads| {
        for rank in 0..4 {
            let mut mine = comm.rank(rank).expect("ranks 0 to 3 exist");
            threads.spawn(move || {
                // FirstRing is an AllReduce, so both of these calls use it.
                let mut sums = [rank + 1; 10];
                mine.all_reduce(&mut sums, ReduceOp::Sum).expect("all four ranks call");
                assert_eq!(sums, [10; 10]);

                let mut largest = [i64::from(rank); 1000];
                mine.all_reduce(&mut largest, ReduceOp::Max).expect("all four ranks call");
                assert_eq!(largest, [3; 1000]);

                // For an AllGather the communicator takes an algorithm of the library.
                let mut everybody = [0; 4];
                mine.all_gather(&[rank], &mut everybody).expect("all four ranks call");
                assert_eq!(everybody, [0, 1, 2, 3]);
            });
        }
    });
    Ok(())
}
// ANCHOR_END: comm

// ANCHOR: main
fn main() -> Result<(), Error> {
    one_caller()?;
    in_place()?;
    a_thread_for_each_rank()?;
    by_name()?;
    println!("one algorithm, three ways to call it, the same sums");
    Ok(())
}
// ANCHOR_END: main
