roundelay::collective! {
    use "nowhere.coll";

    algorithm Wrong() -> AllReduce {
        copy(local.input, local.output);
        Halves() on (output);
    }
}
