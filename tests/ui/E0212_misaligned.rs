roundelay::collective! {
    algorithm Wrong() -> AllGather {
        copy(local.input, local.output.split(4)[1..3]);
    }
}

fn main() {}
