use roundelay::collective;

collective! {
    algorithm Wrong(ring: Ring) -> AllReduce {
        ring.lefft.TxAck();
    }
}

fn main() {}
