roundelay::collective! {
    algorithm Neighbor() -> AllGather {
        let right = peer(rank + 1);
        let left = peer(rank - 1);
        copy(local.input, local.output.block(rank));
        right.TxAck();
        left.RxAck();
        copy(left.output.block(rank - 1), local.output.block(rank - 1));
        left.TxDataSignal();
        right.RxDataSignal();
    }
}

fn main() {}
