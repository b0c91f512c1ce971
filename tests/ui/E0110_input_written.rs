use roundelay::collective;

collective! {
    algorithm Wrong() -> AllReduce {
        copy(local.output, local.input);
    }
}

fn main() {}
