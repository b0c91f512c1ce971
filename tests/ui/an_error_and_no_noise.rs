//! The body is wrong; the names that the rest of the crate uses exist all the same, so there is one error.

use roundelay::{ToPlan, collective};

collective! {
    pub algorithm Wrong(root: Rank, slices: int = 3, ring: Ring) -> Broadcast {
        lft.TxAck();
    }

    pub algorithm Right() -> AllReduce {
        require nranks == 1, "there is nobody to talk to";
        copy(local.input, local.output);
    }
}

fn main() {
    let wrong = Wrong::new(0).slices(2).ring([1, 0]);
    let _ = wrong.plan(2, 8, roundelay::DType::F32, roundelay::ReduceOp::Sum);
    let _ = Right::new();
}
