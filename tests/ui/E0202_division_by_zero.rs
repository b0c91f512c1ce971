roundelay::collective! {
    algorithm Wrong() -> AllReduce {
        let a = nranks / rank;
        copy(local.input, local.output);
    }
}

fn main() {}
