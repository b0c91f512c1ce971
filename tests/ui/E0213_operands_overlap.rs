roundelay::collective! {
    algorithm Wrong() -> AllReduce {
        copy(local.output, local.output);
    }
}

fn main() {}
