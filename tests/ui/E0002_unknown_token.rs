use roundelay::collective;

collective! {
    algorithm Wrong() -> AllReduce {
        copy(local.input, local.output) ~ 3;
    }
}

fn main() {}
