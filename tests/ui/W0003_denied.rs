//! What the author denies is an error like any other.
roundelay::collective! {
    #[deny(W0003)]
    #[allow(W0002)]
    algorithm Denied(slices: int = 3) -> AllReduce {
        require nranks == 1, "one rank";
        let mine = rank;
        copy(local.input, local.output);
    }
}
