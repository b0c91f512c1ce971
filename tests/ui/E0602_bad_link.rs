roundelay::collective! {
    /// The mesh has no rank 8, and one bandwidth is no value.
    pub algorithm Wrong(
        topology: Topology = full_mesh(8, 12.5GB/s, 1.5us) without (0, 8),
        ring: Ring = Ring::around(topology),
    ) -> AllReduce {
        let torus = torus([2, 4], 25GB);
        copy(local.input, local.output);
    }
}

fn main() {}
