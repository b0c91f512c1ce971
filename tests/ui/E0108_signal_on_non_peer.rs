use roundelay::collective;

collective! {
    algorithm Wrong() -> AllReduce {
        let next = (rank + 1) % nranks;
        next.TxAck();
    }
}

fn main() {}
