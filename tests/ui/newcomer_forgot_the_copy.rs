roundelay::collective! {
    algorithm NoStart(ring: Ring) -> AllReduce {
        view block = output.split(nranks);
        for round in 0..nranks - 1 {
            let b = (ring.position - round - 1) % nranks;
            ring.right.TxAck();
            ring.left.RxAck();
            reduce(ring.left.block[b], local.block[b]);
            ring.left.TxDataSignal();
            ring.right.RxDataSignal();
        }
    }
}

fn main() {}
