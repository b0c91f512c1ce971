use roundelay::collective;

collective! {
    algorithm Wrong() -> AllReduce {
        view block = output.split(nranks);
        copy(local.input.split(nranks)[rank + 1], local.block[rank + 1]);
    }
}

fn main() {}
