fn half(n: i64) -> i64 {
    n / 2
}

roundelay::collective! {
    #[verify(nranks = 2..=8)]
    algorithm Wrong() -> AllGather {
        let k = rust { half(nranks.get()) };
        copy(local.input, local.output.block((rank + k - k) % nranks));
    }
}
