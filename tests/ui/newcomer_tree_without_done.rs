roundelay::collective! {
    algorithm TreeReduce(root: Rank = 0) -> Reduce {
        scratch sum: like input;
        copy(local.input, local.sum);
        let me = (rank - root) % nranks;
        for step in 0..ceil_log2(nranks) {
            let reach = 1 << step;
            if me % (2 * reach) == 0 && me + reach < nranks {
                let child = peer((rank + reach) % nranks);
                child.RxDataSignal();
                reduce(child.sum, local.sum);
            }
            if me % (2 * reach) == reach {
                peer((rank - reach) % nranks).TxDataSignal();
            }
        }
        if rank == root {
            copy(local.sum, local.output);
        }
    }
}

fn main() {}
