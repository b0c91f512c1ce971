//! A mistake in a package that depends on `roundelay`.

roundelay::collective! {
    algorithm Swap() -> AllReduce {
        let other = peer(1 - rank);
        copy(local.input, local.output);
        other.TxAck();
        reduce(other.input, local.output);
    }
}

fn main() {}
