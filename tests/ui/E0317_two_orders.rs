roundelay::collective! {
    #[deterministic]
    #[out_of_place]
    algorithm Wrong() -> AllReduce {
        copy(local.input, local.output);
        for i in 1..nranks {
            let to = peer((rank - i) % nranks);
            let from = peer((rank + i) % nranks);
            to.TxAck();
            from.RxAck();
            reduce(from.input, local.output);
            from.TxDataSignal();
            to.RxDataSignal();
        }
    }
}

fn main() {}
