roundelay::collective! {
    algorithm Wrong(ring: Ring) -> AllReduce {
        let left = ring.left;
        let right = ring.right;
        copy(left.output, right.output);
    }
}

fn main() {}
