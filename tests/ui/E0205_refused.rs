roundelay::collective! {
    #[verify(nranks = [4, 6])]
    algorithm Wrong() -> AllReduce {
        require is_power_of_two(nranks), "this pairs ranks by xor";
        scratch inbox: like output;
        copy(local.input, local.output);
        for step in 0..log2(nranks) {
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
