use roundelay::collective;

collective! {
    algorithm Wrong() -> AllReduse {
        copy(local.input, local.output);
    }
}

fn main() {}
