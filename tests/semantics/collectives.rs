//! The other collectives, by small algorithms of the tests' own that between them push and pull, use
//! scratch, `parallel`, steps and the escape to Rust.

use roundelay::{Algorithm, Collective, DType, ReduceOp, collective};

use super::runs::{Kind, Proofs, assert_right};

/// The function of this crate that the escape calls.
fn after(rank: i64, distance: i64, nranks: i64) -> i64 {
    (rank + distance).rem_euclid(nranks)
}

collective! {
    /// Pulls: in round d, every rank from the rank d to the right.
    algorithm PullReduceScatter() -> ReduceScatter {
        copy(local.input.block(rank), local.output);
        for d in 1..nranks {
            let from = peer((rank + d) % nranks);
            let to = peer((rank - d) % nranks);
            to.TxAck();
            from.RxAck();
            reduce(from.input.block(rank), local.output);
            from.TxDataSignal();
            to.RxDataSignal();
        }
    }

    /// Pushes: in round d, every rank to the rank d to the right.
    algorithm PushAllGather() -> AllGather {
        copy(local.input, local.output.block(rank));
        for d in 1..nranks {
            let to = peer((rank + d) % nranks);
            let from = peer((rank - d) % nranks);
            from.TxAck();
            to.RxAck();
            copy(local.input, to.output.block(rank));
            to.TxDataSignal();
            from.RxDataSignal();
        }
    }

    /// A chain from the root, in `slices` pieces.
    algorithm ChainBroadcast(root: Rank = 0, slices: int = 3) -> Broadcast {
        let place = (rank - root) % nranks;
        view slice = output.split(slices);

        step receive(from: peer, piece: region) {
            from.RxDataSignal();
            copy(from.piece, local.piece);
            from.TxAck();
        }

        if rank == root {
            copy(local.input, local.output);
        }
        for i in 0..slices {
            if place > 0 {
                receive(peer((rank - 1) % nranks), slice[i]);
            }
            if place < nranks - 1 {
                peer((rank + 1) % nranks).TxDataSignal();
            }
        }
        if place < nranks - 1 {
            for _i in 0..slices {
                peer((rank + 1) % nranks).RxAck();
            }
        }
    }

    /// A chain to the root, through scratch.
    algorithm ChainReduce(root: Rank = 0) -> Reduce {
        let place = (root - rank) % nranks;
        scratch sum: like output;
        copy(local.input, local.sum);
        if place < nranks - 1 {
            let before = peer((rank - 1) % nranks);
            before.RxDataSignal();
            reduce(before.sum, local.sum);
            before.TxAck();
        }
        if place > 0 {
            let after = peer((rank + 1) % nranks);
            after.TxDataSignal();
            after.RxAck();
        } else {
            copy(local.sum, local.output);
        }
    }

    /// The root pushes to each.
    algorithm PushScatter(root: Rank = 0) -> Scatter {
        if rank == root {
            copy(local.input.block(rank), local.output);
            for d in 1..nranks {
                let to = peer((rank + d) % nranks);
                to.RxAck();
                copy(local.input.block(to.rank), to.output);
                to.TxDataSignal();
            }
        } else {
            peer(root).TxAck();
            peer(root).RxDataSignal();
        }
    }

    /// The root pulls from all at once, a stream for each.
    algorithm ParallelGather(root: Rank = 0) -> Gather {
        if rank == root {
            copy(local.input, local.output.block(rank));
            parallel d in 1..nranks {
                let from = peer((rank + d) % nranks);
                from.RxDataSignal();
                copy(from.input, local.output.block(from.rank));
                from.TxAck();
            }
        } else {
            let d = (rank - root) % nranks;
            parallel _lane in d..d + 1 {
                peer(root).TxDataSignal();
                peer(root).RxAck();
            }
        }
    }

    /// Half of each block is pushed, half is pulled; partners come from Rust.
    algorithm SwappingAllToAll() -> AllToAll {
        copy(local.input.block(rank), local.output.block(rank));
        for d in 1..nranks {
            let to = peer(rust { after(rank.get(), d.get(), nranks.get()) });
            let from = peer(rust { after(rank.get(), -d.get(), nranks.get()) });
            to.TxAck();
            from.TxAck();
            to.RxAck();
            from.RxAck();
            copy(local.input.block(to.rank).split(2)[0], to.output.block(rank).split(2)[0]);
            copy(from.input.block(rank).split(2)[1], local.output.block(from.rank).split(2)[1]);
            to.TxDataSignal();
            from.TxDataSignal();
            to.RxDataSignal();
            from.RxDataSignal();
        }
    }
}

/// Small and odd rank counts x counts x kinds, the kinds dealt out in turn, each at least twice.
fn sample(algorithm: &dyn Algorithm) {
    let collective = algorithm.collective();
    let kinds: Vec<Kind> = Kind::all()
        .into_iter()
        .filter(|kind| collective.has_in_place() || !kind.in_place)
        .filter(|kind| collective.reduces() || kind.op == ReduceOp::Sum)
        .collect();
    let mut proofs = Proofs::new(algorithm);
    let mut turn = 0;
    let rank_counts = [1, 2, 3, 4, 5, 8, 13, 33];
    let each = (2 * kinds.len()).div_ceil(6 * rank_counts.len());
    for nranks in rank_counts {
        let n = u64::from(nranks);
        for count in [0, 1, n - 1, n, 2 * n + 1, 257] {
            for _ in 0..each {
                let kind = kinds[turn % kinds.len()];
                assert_right(&proofs.plan(nranks, count, kind), kind, turn as u64);
                turn += 1;
            }
        }
    }
    assert!(turn >= 2 * kinds.len(), "every kind is met at least twice");
}

#[test]
fn reduce_scatter() {
    sample(&PullReduceScatter::new());
}

#[test]
fn all_gather() {
    sample(&PushAllGather::new());
}

#[test]
fn broadcast() {
    sample(&ChainBroadcast::new());
    sample(&ChainBroadcast::new().slices(1));
}

#[test]
fn reduce() {
    sample(&ChainReduce::new());
}

#[test]
fn scatter() {
    sample(&PushScatter::new());
}

#[test]
fn gather() {
    sample(&ParallelGather::new());
}

#[test]
fn all_to_all() {
    sample(&SwappingAllToAll::new());
}

#[test]
fn every_root() {
    const KINDS: [Kind; 2] = [
        Kind { dtype: DType::I32, op: ReduceOp::Avg, in_place: false },
        Kind { dtype: DType::F64, op: ReduceOp::Sum, in_place: true },
    ];
    for root in 0..5_i64 {
        let rooted: [&dyn Algorithm; 4] = [
            &ChainBroadcast::new().root(root).slices(7),
            &ChainReduce::new().root(root),
            &PushScatter::new().root(root),
            &ParallelGather::new().root(root),
        ];
        for algorithm in rooted {
            let mut proofs = Proofs::new(algorithm);
            for kind in KINDS {
                for count in [0, 3, 101] {
                    let plan = proofs.plan(5, count, kind);
                    assert_eq!(i64::from(plan.schedule().root.0), root);
                    assert_right(&plan, kind, 17);
                }
            }
        }
    }
}

#[test]
fn a_root_that_does_not_exist() {
    let error =
        roundelay::ToPlan::plan(&ChainReduce::new().root(5), 5, 1, DType::F32, ReduceOp::Sum);
    assert_eq!(error.unwrap_err().code().as_str(), "E0204");
}

#[test]
fn the_names_of_the_tests_are_the_collectives() {
    let all: [&dyn Algorithm; 7] = [
        &PullReduceScatter::new(),
        &PushAllGather::new(),
        &ChainBroadcast::new(),
        &ChainReduce::new(),
        &PushScatter::new(),
        &ParallelGather::new(),
        &SwappingAllToAll::new(),
    ];
    let mut covered: Vec<_> = all.iter().map(|a| a.collective()).collect();
    covered.push(Collective::AllReduce);
    for collective in Collective::ALL {
        assert!(covered.contains(&collective), "{collective} has no test of results");
    }
}
