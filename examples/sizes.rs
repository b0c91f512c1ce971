//! A communicator with algorithms of one's own for small calls and for a rooted collective, and one of the library for
//! large calls.

use roundelay::library::RingAllReduce;
use roundelay::{Comm, Error, ReduceOp, collective};

collective! {
    /// AllReduce in one round: every rank copies the inputs of all others and reduces them.
    algorithm Everybody() -> AllReduce {
        scratch theirs: nranks like output;
        for d in 1..nranks {
            peer((rank + d) % nranks).TxAck();
        }
        for d in 1..nranks {
            let from = peer((rank - d) % nranks);
            from.RxAck();
            copy(from.input, local.theirs[d]);
            from.TxDataSignal();
        }
        for d in 1..nranks {
            peer((rank + d) % nranks).RxDataSignal();
        }
        copy(local.input, local.output);
        for d in 1..nranks {
            reduce(local.theirs[d], local.output);
        }
    }

    // ANCHOR: verify
    /// Every rank copies the input of the root.
    #[verify(nranks = 2..=16)]
    algorithm Star(root: Rank = 0) -> Broadcast {
        // ANCHOR_END: verify
        let hub = peer(root);
        if rank == root {
            copy(local.input, local.output);
            for d in 1..nranks {
                let other = peer((root + d) % nranks);
                other.TxAck();
                other.RxDataSignal();
            }
        } else {
            hub.RxAck();
            copy(hub.output, local.output);
            hub.TxDataSignal();
        }
    }
}

fn main() -> Result<(), Error> {
    // ANCHOR: using
    let comm = Comm::new(8)?
        .using_up_to(64 << 10, Everybody::new()) // AllReduce of at most 64 KiB
        .using(RingAllReduce::new()) // AllReduce of more than 64 KiB
        .using_rooted(|root| Star::new().root(root)); // Broadcast, for the root of each call
    // ANCHOR_END: using

    // One thread holds the buffers of all ranks: a small call, then a large one.
    for count in [1000, 100_000] {
        let mut buffers: Vec<Vec<i32>> = (1..=8).map(|value| vec![value; count]).collect();
        let mut slices: Vec<&mut [i32]> = buffers.iter_mut().map(Vec::as_mut_slice).collect();
        comm.all_reduce(&mut slices, ReduceOp::Sum)?;
        assert!(buffers.iter().flatten().all(|sum| *sum == 36));
    }
    for root in [0, 5] {
        let mut buffers: Vec<Vec<u32>> = (0..8).map(|rank| vec![rank; 10]).collect();
        let mut slices: Vec<&mut [u32]> = buffers.iter_mut().map(Vec::as_mut_slice).collect();
        comm.broadcast(&mut slices, root)?;
        assert!(buffers.iter().flatten().all(|value| *value == root));
    }
    println!("small and large calls and two roots are right");
    Ok(())
}
