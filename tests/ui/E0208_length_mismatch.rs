use roundelay::collective;

collective! {
    algorithm Wrong() -> AllReduce {
        copy(local.input.split(2)[0], local.output.split(3)[0]);
    }
}

fn main() {}
