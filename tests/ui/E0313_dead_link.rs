roundelay::collective! {
    #[topology(full_mesh(8) without (0, 1))]
    algorithm Wrong(ring: Ring) -> AllReduce {
        view block = output.split(nranks);
        copy(local.input, local.output);
        for round in 0..2 * (nranks - 1) {
            let b = (ring.position - round - 1) % nranks;
            ring.right.TxAck();
            ring.left.RxAck();
            if round < nranks - 1 {
                reduce(ring.left.block[b], local.block[b]);
            } else {
                copy(ring.left.block[b], local.block[b]);
            }
            ring.left.TxDataSignal();
            ring.right.RxDataSignal();
        }
    }
}

fn main() {}
