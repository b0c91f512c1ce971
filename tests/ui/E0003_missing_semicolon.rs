use roundelay::collective;

collective! {
    algorithm Wrong() -> AllReduce {
        let a = 1
        let b = 2;
        copy(local.input local.output);
    }
}

fn main() {}
