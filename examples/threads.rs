//! An algorithm of one's own, called by a thread for each rank as an MPI program has a process for each: a dot product
//! of two vectors whose parts lie with the ranks.

use std::thread;

use roundelay::{DType, EngineError, Error, RankPlan, ReduceOp, ToPlan as _, collective};

// ANCHOR: ranks
const RANKS: u32 = 4;
/// Elements of the vectors that a rank holds.
const MINE: usize = 1000;

collective! {
    /// Partial sums go down a line of ranks, and the sum comes back up.
    algorithm Line() -> AllReduce {
        let before = peer((rank - 1) % nranks);
        let after = peer((rank + 1) % nranks);
        copy(local.input, local.output);
        if rank > 0 {
            before.RxDataSignal();
            reduce(before.output, local.output);
            before.TxAck();
        }
        if rank < nranks - 1 {
            after.TxDataSignal();
            after.RxAck();
            after.RxDataSignal();
            copy(after.output, local.output);
            after.TxAck();
        }
        if rank > 0 {
            before.TxDataSignal();
            before.RxAck();
        }
    }
}

/// Does the work of the thread of one rank.
fn dot(rank: &RankPlan<'_>) -> Result<f64, EngineError> {
    let first = rank.id() as usize * MINE;
    let x = (first..first + MINE).map(|i| i as f64);
    let y = (first..first + MINE).map(|i| (i % 7) as f64);
    let mut sum = [x.zip(y).map(|(x, y)| x * y).sum::<f64>()];
    rank.run_in_place(&mut sum)?;
    Ok(sum[0])
}

fn main() -> Result<(), Error> {
    // Proved here, for four ranks: no deadlock, no race, every contribution exactly once.
    let plan = Line::new().spmd_plan(RANKS, 1, DType::F64, ReduceOp::Sum)?;
    let found = thread::scope(|threads| {
        let ranks: Vec<_> = (0..RANKS)
            .map(|rank| plan.rank(rank).map(|rank| threads.spawn(move || dot(&rank))))
            .collect::<Result<_, _>>()?;
        ranks
            .into_iter()
            .map(|rank| rank.join().expect("no rank panics"))
            .collect::<Result<Vec<_>, _>>()
    })?;
    let all = 0..RANKS as usize * MINE;
    let expected: f64 = all.map(|i| (i * (i % 7)) as f64).sum();
    assert_eq!(found, [expected; RANKS as usize]);
    println!("dot product {expected} on each of {RANKS} ranks");
    Ok(())
}
// ANCHOR_END: ranks
