roundelay::collective! {
    algorithm Wrong() -> AllReduce {
        step again(k: int) {
            again(k - 1);
        }
        again(3);
    }
}

fn main() {}
