use roundelay::collective;

collective! {
    algorithm Wrong() -> AllReduce {
        let a = (2 + nranks) + (true || false);
        view d = local.output;
    }
}

fn main() {}
