roundelay::collective! {
    algorithm Wrong(root: Rank = 0) -> Broadcast {
        copy(local.input, local.output);
    }
}

fn main() {}
