use roundelay::collective;

collective! {
    #[fast]
    algorithm Wrong() -> AllReduce {
        copy(local.input, local.output);
    }
}

fn main() {}
