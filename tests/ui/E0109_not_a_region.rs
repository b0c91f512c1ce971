roundelay::collective! {
    algorithm Wrong(ring: Ring) -> AllReduce {
        view block = output.split(nranks);
        copy(local.input, local.block);
        copy(input, local.output);
        reduce(ring.left, local.output);
    }
}

fn main() {}
