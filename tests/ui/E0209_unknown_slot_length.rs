roundelay::collective! {
    algorithm Wrong() -> AllReduce {
        view block = output.split(nranks);
        scratch slot: 2 like block;
        copy(local.slot[0], local.slot[1]);
    }
}

fn main() {}
