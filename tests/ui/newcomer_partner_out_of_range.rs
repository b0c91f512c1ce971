roundelay::collective! {
    algorithm Pairs() -> AllReduce {
        scratch inbox: like output;
        copy(local.input, local.output);
        for step in 0..ceil_log2(nranks) {
            let partner = peer(rank ^ (1 << step));
            partner.TxAck();
            partner.RxAck();
            copy(partner.output, local.inbox);
            partner.TxDataSignal();
            partner.RxDataSignal();
            reduce(local.inbox, local.output);
        }
    }
}

fn main() {}
