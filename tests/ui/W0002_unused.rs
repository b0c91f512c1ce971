//! Warnings stand at the very token, and follow rustc's levels for what is deprecated.
#![deny(deprecated)]

roundelay::collective! {
    /// Nothing of this is used.
    pub algorithm Warned(slices: int = 3) -> AllReduce {
        require nranks == 1, "one rank";
        scratch inbox: 2 like output;
        view half = output.split(2);
        let mine = rank;
        step again(to: peer) {
            to.TxAck();
        }
        copy(local.input, local.output);
    }
}

mod quiet {
    #![allow(deprecated)]

    roundelay::collective! {
        pub algorithm Quiet(slices: int = 3) -> AllReduce {
            require nranks == 1, "one rank";
            copy(local.input, local.output);
        }
    }
}
