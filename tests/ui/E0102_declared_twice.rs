use roundelay::collective;

collective! {
    algorithm Wrong() -> AllReduce {
        let me = rank;
        for me in 0..nranks { }
    }
}

fn main() {}
