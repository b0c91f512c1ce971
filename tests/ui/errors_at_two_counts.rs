roundelay::collective! {
    algorithm TellOne(root: Rank = 0) -> Broadcast {
        if rank == root {
            copy(local.input, local.output);
            peer((root + 1) % nranks).TxDataSignal();
        } else {
            peer(root).RxDataSignal();
            copy(peer(root).output, local.output);
            peer(root).TxAck();
        }
        if rank == root {
            for d in 1..nranks {
                peer((root + d) % nranks).RxAck();
            }
        }
    }
}
