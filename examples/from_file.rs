//! An algorithm of a `.coll` file in Rust, behind a communicator: every rank gathers a line of every rank.

use std::thread;

use roundelay::{Comm, Error, include_collective};

// ANCHOR: include
// The path starts at the folder of this Rust file. The file holds the algorithm `RingGather`.
include_collective!("../book/src/listings/threads_to_gpus/solutions/gather.coll");
// ANCHOR_END: include

const RANKS: u32 = 3;

// ANCHOR: solution
fn main() -> Result<(), Error> {
    let comm = Comm::new(RANKS)?.using(RingGather::new());

    thread::scope(|threads| {
        for rank in 0..RANKS {
            let mut mine = comm.rank(rank).expect("the rank exists");
            threads.spawn(move || {
                let input = [rank, 10 * rank];
                let mut output = [0; 2 * RANKS as usize];
                mine.all_gather(&input, &mut output).expect("all ranks call");
                assert_eq!(output, [0, 0, 1, 10, 2, 20]);
            });
        }
    });
    println!("every rank has the numbers of all {RANKS} ranks");
    Ok(())
}
// ANCHOR_END: solution
