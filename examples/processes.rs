//! Ranks as processes: `roundelay launch -n 4 -- target/debug/examples/processes` starts it as four ranks, and so do
//! `torchrun --no-python --nproc-per-node 4`, `mpirun -n 4` and a shell that sets `ROUNDELAY_RANK`,
//! `ROUNDELAY_NRANKS` and `ROUNDELAY_JOB` for each of four processes.

use roundelay::{ReduceOp, World};

fn main() -> Result<(), roundelay::Error> {
    let world = World::from_env()?;
    let mut rank = world.rank();
    let (me, nranks) = (rank.id(), rank.nranks());

    // Each rank brings its number; the sum of all is everywhere.
    let mut buffer = vec![me; 1_000_000];
    rank.all_reduce(&mut buffer, ReduceOp::Sum)?;
    let sum = nranks * (nranks - 1) / 2;
    assert!(buffer.iter().all(|x| *x == sum));

    // Memory that all ranks can access needs no copies.
    let mut lent = world.alloc::<u32>(1_000_000)?;
    lent.fill(1);
    rank.all_reduce(&mut lent, ReduceOp::Sum)?;
    assert!(lent.iter().all(|x| *x == nranks));

    rank.barrier()?;
    if me == 0 {
        println!("{nranks} ranks, and the sum of their numbers is {sum}");
    }
    Ok(())
}
