roundelay::collective! {
    algorithm WholeVector(ring: Ring) -> AllReduce {
        copy(local.input, local.output);
        for round in 0..nranks - 1 {
            ring.right.TxAck();
            ring.left.RxAck();
            reduce(ring.left.output, local.output);
            ring.left.TxDataSignal();
            ring.right.RxDataSignal();
        }
    }
}

fn main() {}
