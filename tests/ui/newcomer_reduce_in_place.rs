roundelay::collective! {
    algorithm PairsWithoutInbox() -> AllReduce {
        require is_power_of_two(nranks), "partners by xor";
        copy(local.input, local.output);
        for step in 0..log2(nranks) {
            let partner = peer(rank ^ (1 << step));
            partner.TxAck();
            partner.RxAck();
            reduce(partner.output, local.output);
            partner.TxDataSignal();
            partner.RxDataSignal();
        }
    }
}

fn main() {}
