roundelay::collective! {
    algorithm Wrong() -> AllReduce {
        copy(local.input);
        let k = log2(nranks, 2);
        step go(to: peer) { to.TxAck(); }
        go();
    }
}

fn main() {}
