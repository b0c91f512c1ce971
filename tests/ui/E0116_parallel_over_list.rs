use roundelay::collective;

collective! {
    algorithm Wrong() -> AllReduce {
        parallel r in [1, 2, 3] {
            peer(r).TxAck();
        }
    }
}

fn main() {}
