roundelay::collective! {
    algorithm Wrong() -> AllReduce {
        for round in 0..2 {
            scratch inbox: like output;
        }
    }
}

fn main() {}
