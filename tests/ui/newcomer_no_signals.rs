roundelay::collective! {
    algorithm FirstTry(ring: Ring) -> AllReduce {
        view block = output.split(nranks);
        copy(local.input, local.output);
        for round in 0..nranks - 1 {
            reduce(ring.left.block[(ring.position - round - 1) % nranks], local.block[(ring.position - round - 1) % nranks]);
        }
        for round in 0..nranks - 1 {
            copy(ring.left.block[(ring.position - round) % nranks], local.block[(ring.position - round) % nranks]);
        }
    }
}

fn main() {}
