roundelay::collective! {
    algorithm BothWays(ring: Ring) -> AllGather {
        copy(local.input, local.output.block(rank));
        parallel way in 0..2 {
            let to = if way == 0 { ring.right } else { ring.left };
            let from = if way == 0 { ring.left } else { ring.right };
            for round in 0..nranks - 1 {
                let b = (rank - round - 1) % nranks;
                to.TxAck();
                from.RxAck();
                copy(from.output.block(b), local.output.block(b));
                from.TxDataSignal();
                to.RxDataSignal();
            }
        }
    }
}

fn main() {}
