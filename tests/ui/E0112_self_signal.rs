roundelay::collective! {
    algorithm Wrong() -> AllReduce {
        local.TxAck();
    }
}

fn main() {}
