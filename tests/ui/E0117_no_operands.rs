roundelay::collective! {
    algorithm Wrong() -> AllReduce {
        reduce([], local.output);
    }
}

fn main() {}
