roundelay::collective! {
    #[budget(streams = 1, notifies = 1, scratch = 1)]
    algorithm Wrong(ring: Ring) -> AllGather {
        scratch inbox: nranks like input;
        copy(local.input, local.output.block(ring.position));
        parallel i in 1..nranks {
            let from = peer((rank - i) % nranks);
            let to = peer((rank + i) % nranks);
            to.TxAck();
            from.RxAck();
            copy(from.input, local.inbox[i]);
            from.TxDataSignal();
            to.RxDataSignal();
            copy(local.inbox[i], local.output.block(from.rank));
        }
    }
}

fn main() {}
