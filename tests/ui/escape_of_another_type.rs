use roundelay::collective;

collective! {
    algorithm Wrong() -> AllReduce {
        let k = rust { "three" };
        require k == 3, "three";
        copy(local.input, local.output);
    }
}
