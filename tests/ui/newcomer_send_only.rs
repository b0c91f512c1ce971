roundelay::collective! {
    algorithm SendOnly() -> AllToAll {
        for d in 0..nranks {
            let to = peer((rank + d) % nranks);
            copy(local.input.block(to.rank), to.output.block(rank));
        }
    }
}

fn main() {}
