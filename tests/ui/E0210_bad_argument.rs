roundelay::collective! {
    algorithm Wrong() -> AllReduce {
        let k = log2(rank);
        copy(local.input, local.output);
    }
}

fn main() {}
