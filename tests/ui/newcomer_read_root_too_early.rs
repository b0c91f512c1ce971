roundelay::collective! {
    algorithm Early(root: Rank = 0) -> Broadcast {
        if rank == root {
            for d in 1..nranks {
                peer((root + d) % nranks).TxAck();
            }
            copy(local.input, local.output);
            for d in 1..nranks {
                peer((root + d) % nranks).RxDataSignal();
            }
        } else {
            peer(root).RxAck();
            copy(peer(root).output, local.output);
            peer(root).TxDataSignal();
        }
    }
}

fn main() {}
