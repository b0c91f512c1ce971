use roundelay::collective;

collective! {
    algorithm Wrong() -> AllReduce {
        let k = rust { "three" };
        copy(local.input, local.output);
    }
}

fn main() {}
