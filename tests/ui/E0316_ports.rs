roundelay::collective! {
    #[budget(ports = 1)]
    #[verify(nranks = 5)]
    algorithm Wrong(root: Rank = 0) -> Broadcast {
        if rank == root {
            copy(local.input, local.output);
            for d in 1..nranks {
                peer((root + d) % nranks).TxAck();
            }
            for d in 1..nranks {
                peer((root + d) % nranks).RxDataSignal();
            }
        } else {
            let from = peer(root);
            from.RxAck();
            copy(from.output, local.output); // everybody at once
            from.TxDataSignal();
        }
    }
}

fn main() {}
