use roundelay::collective;

collective! {
    algorithm Wrong() -> Broadcast {
        copy(local.input, local.output);
    }
}

fn main() {}
