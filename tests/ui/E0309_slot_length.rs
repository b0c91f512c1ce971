roundelay::collective! {
    algorithm Wrong() -> AllReduce {
        view block = output.split(3);
        scratch slot: 1 like block;
        copy(local.input.split(3)[0], local.slot[0]);
        copy(local.slot[0], local.block[1]);
        copy(local.input, local.output);
    }
}

fn main() {}
