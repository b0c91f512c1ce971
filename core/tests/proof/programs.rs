//! Algorithms that are right, of every collective and with every construct that a proof treats apart.

/// A source, and the rank counts that it refuses.
type Case = (&'static str, fn(u32) -> bool);

pub(crate) const RIGHT: &[Case] = &[
    (include_str!("../../../stdlib/library/ring.coll"), never),
    (include_str!("../../../stdlib/library/twisted_ring.coll"), never),
    (include_str!("../../../stdlib/library/halving_doubling.coll"), no_power_of_two),
    (RECURSIVE_DOUBLING, no_power_of_two),
    (ALL_GATHER, never),
    (REDUCE_SCATTER, never),
    (BROADCAST, never),
    (REDUCE, never),
    (SCATTER, never),
    (GATHER, never),
    (ALL_TO_ALL, never),
    (PUSH_RING, never),
    (MESH, never),
    (SLOTS, never),
    (UNEVEN, not_three),
    (ONE_MODE, not_two),
    (TURNED, not_three),
    (TAKEN_FOR_HOME, not_three),
    (SWITCH, never),
    (ONE_SHOT_SWITCH, never),
    (SWITCH_ALL_GATHER, never),
    (SWITCH_ROOTED, never),
];

fn never(_: u32) -> bool {
    false
}

fn not_three(nranks: u32) -> bool {
    nranks != 3
}

fn not_two(nranks: u32) -> bool {
    nranks != 2
}

fn no_power_of_two(nranks: u32) -> bool {
    !nranks.is_power_of_two()
}

/// Right where both ranks run in place and where neither does.
pub(crate) const ONE_MODE: &str = include_str!("../../../tests/data/take_and_add.coll");

/// In place the inputs have moved to the next rank when ranks 1 and 2 add them up, so their order is another than that
/// of rank 0. Out of place all ranks have one order.
pub(crate) const TURNED: &str = include_str!("../../../tests/data/turned.coll");

/// In place the copy of the input to the output does nothing, and leaves there the left neighbor's former input: all
/// ranks together do as well with that, some of them do not. No other op reads an input that was overwritten.
pub(crate) const TAKEN_FOR_HOME: &str = "
algorithm TakenForHome() -> AllReduce {
    require nranks == 3, \"three ranks make one case\";
    scratch kept: like output;
    scratch sum: like output;
    step meet() {
        for far in 1..3 { peer((rank + far) % 3).TxAck(); }
        for far in 1..3 { peer((rank - far) % 3).RxAck(); }
    }
    meet();
    copy(peer((rank + 1) % 3).input, local.kept);
    meet();
    copy(local.kept, local.output);
    copy(local.input, local.output);
    meet();
    copy(peer(0).output, local.sum);
    reduce(peer(1).output, local.sum);
    reduce(peer(2).output, local.sum);
    meet();
    copy(local.sum, local.output);
}";

/// Rank 0 takes its own block back from rank 1, which changes nothing, and then sends its input to rank 1. In place
/// that block is its input, so the data that it sends is a step older than out of place, and meets the data that it
/// sends to rank 2.
pub(crate) const TAKEN_BACK: &str = "
algorithm TakenBack() -> AllGather {
    require nranks == 3, \"three ranks make one case\";
    let left = peer((rank - 1) % 3);
    let right = peer((rank + 1) % 3);
    view block = output.split(3);
    scratch kept: 2 like input;
    step meet() { right.TxAck(); left.TxAck(); left.RxAck(); right.RxAck(); }
    copy(local.input, local.block[rank]);
    for k in 1..3 {
        let b = (rank - k) % 3;
        meet();
        copy(left.block[b], local.block[b]);
    }
    meet();
    if rank == 0 {
        copy(right.block[0], local.block[0]);
        copy(local.input, right.kept[0]);
        copy(local.block[0], left.kept[1]);
    }
    meet();
}";

/// Scratch that a peer reads: guarded within a run and from run to run.
pub(crate) const RECURSIVE_DOUBLING: &str = r#"
algorithm RecursiveDoubling() -> AllReduce {
    require is_power_of_two(nranks), "recursive doubling pairs ranks by xor";
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
}"#;

const ALL_GATHER: &str = "
algorithm RingAllGather(ring: Ring) -> AllGather {
    view unit = output.split(nranks);
    copy(local.input, local.unit[rank]);
    for round in 0..nranks - 1 {
        let b = (rank - round - 1) % nranks;
        ring.right.TxAck();
        ring.left.RxAck();
        copy(ring.left.unit[b], local.unit[b]);
        ring.left.TxDataSignal();
        ring.right.RxDataSignal();
    }
}";

/// Partial sums travel through two slots of scratch; nothing but the input and its own sum is touched.
const REDUCE_SCATTER: &str = "
algorithm RingReduceScatter(ring: Ring) -> ReduceScatter {
    view unit = input.split(nranks);
    scratch sum: 2 like output;
    for round in 0..nranks - 1 {
        let b = (rank - round - 1) % nranks;
        copy(local.unit[b], local.sum[round % 2]);
        if round > 0 {
            reduce(ring.left.sum[(round - 1) % 2], local.sum[round % 2]);
            ring.left.TxDataSignal();
        }
        ring.right.TxAck();
        ring.left.RxAck();
        if round > 0 { ring.right.RxDataSignal(); }
    }
    copy(local.unit[rank], local.output);
    if nranks > 1 {
        reduce(ring.left.sum[(nranks - 2) % 2], local.output);
        ring.left.TxDataSignal();
        ring.right.RxDataSignal();
    }
}";

const BROADCAST: &str = "
algorithm Star(root: Rank = nranks - 1) -> Broadcast {
    if rank == root {
        copy(local.input, local.output);
        for far in 1..nranks { peer((root + far) % nranks).TxAck(); }
        for far in 1..nranks { peer((root + far) % nranks).RxDataSignal(); }
    } else {
        let from = peer(root);
        from.RxAck();
        copy(from.output, local.output);
        from.TxDataSignal();
    }
}";

/// A chain towards the root: each rank but the root lacks an output and sums in scratch.
const REDUCE: &str = "
algorithm Chain(root: Rank = nranks / 2) -> Reduce {
    scratch sum: like input;
    let place = (rank - root) % nranks;
    copy(local.input, local.sum);
    if place < nranks - 1 {
        let from = peer((rank + 1) % nranks);
        from.RxAck();
        reduce(from.sum, local.sum);
        from.TxDataSignal();
    }
    if place > 0 {
        let to = peer((rank - 1) % nranks);
        to.TxAck();
        to.RxDataSignal();
    } else {
        copy(local.sum, local.output);
    }
}";

const SCATTER: &str = "
algorithm Hand(root: Rank = 0) -> Scatter {
    if rank == root {
        for far in 1..nranks {
            let to = peer((root + far) % nranks);
            to.RxAck();
            copy(local.input.split(nranks)[to.rank], to.output);
            to.TxDataSignal();
        }
        copy(local.input.split(nranks)[rank], local.output);
    } else {
        peer(root).TxAck();
        peer(root).RxDataSignal();
    }
}";

const GATHER: &str = "
algorithm Fetch(root: Rank = nranks - 1) -> Gather {
    if rank == root {
        copy(local.input, local.output.split(nranks)[rank]);
        parallel far in 1..nranks {
            let from = peer((root + far) % nranks);
            from.RxAck();
            copy(from.input, local.output.split(nranks)[from.rank]);
            from.TxDataSignal();
        }
    } else {
        parallel far in (rank - root) % nranks..(rank - root) % nranks + 1 {
            peer(root).TxAck();
            peer(root).RxDataSignal();
        }
    }
}";

const ALL_TO_ALL: &str = "
algorithm Distances() -> AllToAll {
    view give = input.split(nranks);
    view take = output.split(nranks);
    copy(local.give[rank], local.take[rank]);
    parallel far in 1..nranks {
        let to = peer((rank + far) % nranks);
        let from = peer((rank - far) % nranks);
        to.TxAck();
        from.RxAck();
        copy(from.give[rank], local.take[from.rank]);
        from.TxDataSignal();
        to.RxDataSignal();
    }
}";

/// The ring in the push direction: each rank writes to its right neighbor.
const PUSH_RING: &str = "
algorithm PushRing(ring: Ring) -> AllReduce {
    view block = output.split(nranks);
    copy(local.input, local.output);
    for round in 0..2 * (nranks - 1) {
        let b = (ring.position - round) % nranks;
        ring.left.TxAck();
        ring.right.RxAck();
        if round < nranks - 1 {
            reduce(local.block[b], ring.right.block[b]);
        } else {
            copy(local.block[b], ring.right.block[b]);
        }
        ring.right.TxDataSignal();
        ring.left.RxDataSignal();
    }
}";

/// Everyone folds its block of all inputs in one op, then hands it to all.
const MESH: &str = "
algorithm Mesh() -> AllReduce {
    view mine = input.split(nranks);
    view block = output.split(nranks);
    for far in 1..nranks { peer((rank + far) % nranks).TxAck(); }
    for far in 1..nranks { peer((rank - far) % nranks).RxAck(); }
    copy(local.mine[rank], local.block[rank]);
    if nranks == 2 { reduce(peer(1 - rank).mine[rank], local.block[rank]); }
    if nranks >= 3 {
        let a = peer((rank + 1) % nranks);
        let b = peer((rank + 2) % nranks);
        reduce([a.mine[rank], b.mine[rank]], local.block[rank]);
        for far in 3..nranks { reduce(peer((rank + far) % nranks).mine[rank], local.block[rank]); }
    }
    for far in 1..nranks { copy(local.block[rank], peer((rank + far) % nranks).block[rank]); }
    for far in 1..nranks { peer((rank + far) % nranks).TxDataSignal(); }
    for far in 1..nranks { peer((rank - far) % nranks).RxDataSignal(); }
}";

/// Slots that change shape: each holds the block that was last put there.
const SLOTS: &str = "
algorithm Slots(ring: Ring) -> AllReduce {
    view block = output.split(nranks);
    scratch slot: 2 like block;
    copy(local.input, local.output);
    for round in 0..nranks - 1 {
        let b = (ring.position - round - 1) % nranks;
        ring.right.TxAck();
        ring.left.RxAck();
        copy(ring.left.block[b], local.slot[round % 2]);
        ring.left.TxDataSignal();
        ring.right.RxDataSignal();
        reduce(local.slot[round % 2], local.block[b]);
    }
    for round in 0..nranks - 1 {
        let b = (ring.position - round) % nranks;
        ring.right.TxAck();
        ring.left.RxAck();
        copy(ring.left.block[b], local.block[b]);
        ring.left.TxDataSignal();
        ring.right.RxDataSignal();
    }
}";

/// The op in the middle completes the first half and not the second; each rank reads inputs that, in place,
/// others have begun to overwrite.
pub(crate) const UNEVEN: &str = "
#[out_of_place]
algorithm Uneven() -> AllReduce {
    require nranks == 3, \"three ranks make one case\";
    let a = peer((rank + 1) % nranks);
    let b = peer((rank + 2) % nranks);
    a.TxAck(); b.TxAck(); a.RxAck(); b.RxAck();
    copy(local.input, local.output);
    reduce(a.input.split(2)[0], local.output.split(2)[0]);
    reduce(b.input, local.output);
    reduce(a.input.split(2)[1], local.output.split(2)[1]);
    a.TxDataSignal(); b.TxDataSignal(); a.RxDataSignal(); b.RxDataSignal();
}";

/// A switch folds a block of all ranks for each rank, and stores the sum at all.
pub(crate) const SWITCH: &str = include_str!("../../../stdlib/library/switch.coll");

/// A switch folds all inputs for each rank.
pub(crate) const ONE_SHOT_SWITCH: &str = "#[out_of_place]
algorithm OneShot() -> AllReduce {
    all.TxDataSignal();
    all.RxDataSignal();
    fold(all.input, local.output);
    all.TxAck();
    all.RxAck();
}";

/// A switch stores the block of each rank at all, on a lane for each half.
pub(crate) const SWITCH_ALL_GATHER: &str = "algorithm AllGatherOnSwitch() -> AllGather {
    view block = output.split(nranks);
    all.TxAck();
    all.RxAck();
    parallel half in 0..2 {
        copy(local.input.split(2)[half], all.block[rank].split(2)[half]);
        all.TxDataSignal();
        all.RxDataSignal();
    }
}";

/// A switch folds for one rank, into its scratch.
pub(crate) const SWITCH_ROOTED: &str = "algorithm ReduceOnSwitch(root: Rank = 0) -> Reduce {
    scratch sum: like input;
    if rank == root {
        all.RxDataSignal();
        fold(all.input, local.sum);
        all.TxAck();
        copy(local.sum, local.output);
    } else {
        peer(root).TxDataSignal();
        peer(root).RxAck();
    }
}";
