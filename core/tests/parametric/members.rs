//! Programs of the class, beside those of the library and the examples.

/// Every rank reads all the others' inputs; wrong in place.
pub(crate) const MESH_ALL_REDUCE: &str = "
#[out_of_place]
pub algorithm OneShotAllReduce() -> AllReduce {
    copy(local.input, local.output);
    for d in 1..nranks {
        let from = peer((rank - d) % nranks);
        let to = peer((rank + d) % nranks);
        to.TxAck();
        from.RxAck();
        reduce(from.input, local.output);
        from.TxDataSignal();
        to.RxDataSignal();
    }
}
";

/// Every rank fetches all blocks from their owners, after one round of acks.
pub(crate) const MESH_ALL_GATHER: &str = "
pub algorithm OneShotAllGather() -> AllGather {
    view block = output.split(nranks);
    copy(local.input, local.block[rank]);
    for d in 1..nranks {
        let to = peer((rank + d) % nranks);
        to.TxAck();
    }
    for d in 1..nranks {
        let from = peer((rank - d) % nranks);
        from.RxAck();
    }
    for d in 1..nranks {
        let from = peer((rank - d) % nranks);
        let to = peer((rank + d) % nranks);
        from.TxAck();
        to.RxAck();
        copy(from.block[from.rank], local.block[from.rank]);
        from.TxDataSignal();
        to.RxDataSignal();
    }
}
";

/// Pushing to one peer a round.
pub(crate) const PAIRWISE: &str = "
pub algorithm PairwiseAllToAll() -> AllToAll {
    view sent = input.split(nranks);
    view got = output.split(nranks);
    copy(local.sent[rank], local.got[rank]);
    for d in 1..nranks {
        let to = peer((rank + d) % nranks);
        let from = peer((rank - d) % nranks);
        from.TxAck();
        to.RxAck();
        copy(local.sent[to.rank], to.got[rank]);
        to.TxDataSignal();
        from.RxDataSignal();
    }
}
";

/// A reduce-scatter and an all-gather, each block straight between its owner and the others.
pub(crate) const DIRECT_ALL_REDUCE: &str = "
pub algorithm DirectAllReduce() -> AllReduce {
    view block = output.split(nranks);
    copy(local.input, local.output);
    for d in 1..nranks {
        let to = peer((rank + d) % nranks);
        let from = peer((rank - d) % nranks);
        to.TxAck();
        from.RxAck();
        reduce(from.block[rank], local.block[rank]);
        from.TxDataSignal();
        to.RxDataSignal();
    }
    for d in 1..nranks {
        let to = peer((rank + d) % nranks);
        let from = peer((rank - d) % nranks);
        to.TxAck();
        from.RxAck();
        copy(from.block[from.rank], local.block[from.rank]);
        from.TxDataSignal();
        to.RxDataSignal();
    }
}
";

/// Both neighbors in one stream, each half of the data one way round.
pub(crate) const TWO_WAYS: &str = "
pub algorithm TwoWayAllGather() -> AllGather {
    view block = output.split(nranks);
    let left = peer((rank - 1) % nranks);
    let right = peer((rank + 1) % nranks);
    copy(local.input, local.block[rank]);
    for round in 0..nranks - 1 {
        let a = (rank - round - 1) % nranks;
        let b = (rank + round + 1) % nranks;
        left.TxAck();
        right.TxAck();
        left.RxAck();
        right.RxAck();
        copy(left.block[a].split(2)[0], local.block[a].split(2)[0]);
        copy(right.block[b].split(2)[1], local.block[b].split(2)[1]);
        left.TxDataSignal();
        right.TxDataSignal();
        left.RxDataSignal();
        right.RxDataSignal();
    }
}
";

/// Whole inputs passed round the ring through a slot of scratch, summed on the way.
pub(crate) const SCRATCH_RING: &str = "
pub algorithm PassingAllReduce(ring: Ring) -> AllReduce {
    let left = ring.left;
    let right = ring.right;
    scratch own: like input;
    scratch inbox: like input;
    copy(local.input, local.own);
    copy(local.input, local.output);
    for round in 0..nranks - 1 {
        right.TxAck();
        left.RxAck();
        copy(left.own, local.inbox);
        left.TxDataSignal();
        right.RxDataSignal();
        copy(local.inbox, local.own);
        reduce(local.inbox, local.output);
    }
}
";

/// The owner's own block last, so that a copy reads and writes two peers' worth of rounds apart.
pub(crate) const LATE_START: &str = "
pub algorithm LateRing(ring: Ring) -> AllReduce {
    let left = ring.left;
    let right = ring.right;
    let me = ring.position;
    view block = output.split(nranks);
    copy(local.input, local.output);
    right.TxAck();
    left.RxAck();
    for round in 1..nranks {
        let b = (me - round) % nranks;
        reduce(left.block[b], local.block[b]);
        right.TxDataSignal();
        left.RxDataSignal();
    }
    for round in 1..nranks {
        let b = (me - round + 1) % nranks;
        copy(left.block[b], local.block[b]);
        right.TxDataSignal();
        left.RxDataSignal();
    }
    left.TxAck();
    right.RxAck();
}
";

/// All members.
pub(crate) const MEMBERS: [&str; 7] = [
    MESH_ALL_REDUCE,
    MESH_ALL_GATHER,
    PAIRWISE,
    DIRECT_ALL_REDUCE,
    TWO_WAYS,
    SCRATCH_RING,
    LATE_START,
];
