//! A mistake: two processes call on two groups in crossed order, and each waits for the other's first call. Start it by
//! `roundelay launch -n 2 --grace 5s -- target/debug/examples/crossed_groups`: after a second both ranks have an error
//! that names both groups and both calls.

use roundelay::{ReduceOp, World};

fn main() -> Result<(), roundelay::Error> {
    let all = World::from_env()?;
    let pair = all.split(Some(0), 0)?.expect("every rank gives a color");
    let mut buffer = [1.0_f32; 10];
    if all.rank().id() == 0 {
        all.rank().all_reduce(&mut buffer, ReduceOp::Sum)?;
        pair.rank().barrier()
    } else {
        // The right order is that of rank 0.
        pair.rank().barrier()?;
        all.rank().all_reduce(&mut buffer, ReduceOp::Sum)
    }
}
