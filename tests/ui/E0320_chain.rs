roundelay::collective! {
    #[roundings(at_most = 1)]
    algorithm Wrong(root: Rank = 0) -> Reduce {
        scratch inbox: like input;
        if rank == root {
            copy(local.input, local.output);
            for i in 1..nranks {
                let from = peer((root + i) % nranks);
                from.RxAck();
                copy(from.input, local.inbox);
                from.TxDataSignal();
                reduce(local.inbox, local.output);
            }
        } else {
            peer(root).TxAck();
            peer(root).RxDataSignal();
        }
    }
}

fn main() {}
