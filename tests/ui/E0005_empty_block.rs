use roundelay::collective;

collective! {
    // nothing but a comment
}

fn main() {}
