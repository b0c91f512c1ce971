roundelay::collective! {
    #[verify(nranks = 2..=64)]
    pub algorithm Long(ring: Ring) -> AllReduce {
        RingAllReduce(ring) on (input, output);
    }
}
