roundelay::collective! {
    #[verify(off)]
    algorithm NoReason() -> AllGather {
    }

    #[verify(nranks = 0..=4)]
    algorithm NoRanks() -> AllGather {
    }

    #[verify(nranks = [2, many])]
    algorithm NoNumber() -> AllGather {
    }

    #[verify(reason = "slow")]
    algorithm NotOff() -> AllGather {
    }

    #[verify]
    algorithm Nothing() -> AllGather {
    }

    #[deterministic(true)]
    algorithm Arguments() -> AllGather {
    }

    #[topology(8)]
    algorithm NoTopology() -> AllGather {
    }

    #[topology("mesh")]
    algorithm Text() -> AllGather {
    }

    #[budget(stream = 2)]
    algorithm Resource() -> AllGather {
    }
}
