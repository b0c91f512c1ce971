roundelay::collective! {
    algorithm Wrong() -> AllReduce {
        let a = 9223372036854775807 - rank;
        let b = a + 1;
        copy(local.input, local.output);
    }
}

fn main() {}
