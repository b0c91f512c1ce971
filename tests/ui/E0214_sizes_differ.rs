roundelay::collective! {
    algorithm Wrong() -> AllReduce {
        view half = output.split(2);
        RingReduceScatter() on (input, half[0]);
        RingAllGather() on (output);
    }
}

fn main() {}
