roundelay::collective! {
    algorithm Wrong(ring: Ring = Ring::order([0, 1, 1])) -> AllReduce {
        let left = ring.left;
        copy(local.input, local.output);
    }
}

fn main() {}
