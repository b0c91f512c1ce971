roundelay::collective! {
    algorithm Wrong() -> AllReduce {
        require nranks == 2, "two ranks swap their inputs";
        let other = peer(1 - rank);
        scratch inbox: like output;
        copy(local.input, local.output);
        copy(local.input, other.inbox);
        other.TxDataSignal();
        other.RxDataSignal();
        reduce(local.inbox, local.output);
    }
}

fn main() {}
