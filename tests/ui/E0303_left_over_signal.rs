roundelay::collective! {
    algorithm Wrong(ring: Ring) -> AllReduce {
        let left = ring.left;
        let right = ring.right;
        let me = ring.position;
        view block = output.split(nranks);
        copy(local.input, local.output);
        for round in 0..nranks - 1 {
            let b = (me - round - 1) % nranks;
            right.TxAck();
            left.RxAck();
            reduce(left.block[b], local.block[b]);
            left.TxDataSignal();
        }
        for round in 0..nranks - 1 {
            let b = (me - round) % nranks;
            right.TxAck();
            left.RxAck();
            copy(left.block[b], local.block[b]);
            left.TxDataSignal();
            right.RxDataSignal();
        }
    }
}
