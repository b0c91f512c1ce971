roundelay::collective! {
    algorithm Wrong() -> AllReduce {
        let a = nranks % 0;
        view none = output.split(0);
    }
}

fn main() {}
