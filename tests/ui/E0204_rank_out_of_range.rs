roundelay::collective! {
    algorithm Wrong() -> AllReduce {
        peer(rank + 1).TxAck();
    }
}

fn main() {}
