use roundelay::collective;

collective! {
    algorithm Wrong(ring: Ring) -> AllReduce {
        require nranks == 2, "two ranks swap their inputs";
        ring.right.TxAck();
        ring.left.RxAck();
        copy(ring.left.input, local.output);
        ring.left.TxDataSignal();
        ring.right.RxDataSignal();
        reduce(local.input, local.output);
    }
}

fn main() {}
