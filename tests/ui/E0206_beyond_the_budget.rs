roundelay::collective! {
    #[verify(nranks = 2..=64)]
    pub algorithm RingAllReduce(ring: Ring) -> AllReduce {
        let left = ring.left;
        let right = ring.right;
        let me = ring.position;
        view block = output.split(nranks); // nearly equal, cut by element

        copy(local.input, local.output);

        for round in 0..nranks - 1 { // reduce-scatter
            let b = (me - round - 1) % nranks; // % is Euclidean: never negative
            right.TxAck(); // my block may be pulled
            left.RxAck(); // left's block may be pulled
            reduce(left.block[b], local.block[b]); // local = left op local
            left.TxDataSignal(); // I have pulled it
            right.RxDataSignal(); // right has pulled mine
        }
        for round in 0..nranks - 1 { // all-gather
            let b = (me - round) % nranks;
            right.TxAck();
            left.RxAck();
            copy(left.block[b], local.block[b]);
            left.TxDataSignal();
            right.RxDataSignal();
        }
    }
}

fn main() {
    // A warning alone would compile.
    stop
}
