roundelay::collective! {
    #[verify(off, reason = "takes long", nranks = 2..=8)]
    algorithm OffAndOn() -> AllGather {
    }

    #[verify(nranks = 2..=8)]
    #[verify(nranks = 16)]
    algorithm Twice() -> AllGather {
    }

    #[budget(streams = 2, streams = 3)]
    algorithm TwoBudgets() -> AllGather {
    }

    #[verify(nranks = 2..=8)]
    algorithm Open(slices: int) -> AllGather {
    }
}

fn main() {}
