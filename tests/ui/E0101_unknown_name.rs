use roundelay::collective;

collective! {
    algorithm Wrong(ring: Ring) -> AllReduce {
        let left = ring.left;
        lft.TxAck();
    }
}

fn main() {}
