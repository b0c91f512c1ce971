//! The library's algorithms: a covering sample of rank counts x counts x dtypes x ops x placement.
//!
//! The whole product is 33 x 8 x 100 runs an algorithm. Sampled are, for each algorithm and each of the
//! eight counts, all 100 kinds (dtype, op, placement), dealt out in turn over the rank counts; so every
//! (count, kind) and every (nranks, count) is run, and every (nranks, kind) up to four ranks.

use std::collections::BTreeSet;

use roundelay::library::{
    BruckAllGather, BruckAllToAll, DoubleBinaryTreeAllReduce, DoubleBinaryTreeBroadcast,
    DoubleBinaryTreeReduce, HalvingDoublingAllGather, HalvingDoublingAllReduce,
    HalvingDoublingReduceScatter, MeshAllGather, MeshAllReduce, MeshAllToAll, MeshGather,
    MeshReduceScatter, MeshScatter, MultiRingAllGather, MultiRingAllReduce, MultiRingReduceScatter,
    NcclRingAllGather, NcclRingAllReduce, NcclRingBroadcast, NcclRingReduce, NcclRingReduceScatter,
    NhrAllGather, NhrAllReduce, NhrBroadcast, NhrOneShotAllReduce, NhrReduceScatter, NhrScatter,
    OneShotMeshAllReduce, PairwiseAllToAll, PairwiseReduceScatter, RecursiveDoublingAllGather,
    RecursiveDoublingAllReduce, RecursiveHalvingDoublingAllGather,
    RecursiveHalvingDoublingAllReduce, RecursiveHalvingDoublingReduceScatter, RingAllGather,
    RingAllReduce, RingBroadcast, RingReduce, RingReduceScatter, TreeAllReduce, TreeBroadcast,
    TreeReduce, TwistedRingAllGather, TwistedRingAllReduce, TwistedRingReduceScatter,
};
use roundelay::{Algorithm, DType, ReduceOp, Ring, Rings, Run as _, Tree, half};
use roundelay_core::ids::RankId;
use roundelay_core::topology::shape::Shape;

use super::runs::{Kind, Proofs, admitted, assert_right, data, run};

fn counts(nranks: u32) -> [u64; 8] {
    let n = u64::from(nranks);
    let large = if nranks <= 4 { 30_011 } else { 2_003 };
    [0, 1, n - 1, n, 2 * n - 1, 2 * n + 1, 1000, large]
}

fn sample(algorithm: &dyn Algorithm) {
    sample_of(algorithm, &Kind::all());
}

/// Out of place alone: an `AllToAll` has no other way.
fn sample_apart(algorithm: &dyn Algorithm) {
    let kinds: Vec<_> = Kind::all().into_iter().filter(|kind| !kind.in_place).collect();
    sample_of(algorithm, &kinds);
}

fn sample_of(algorithm: &dyn Algorithm, kinds: &[Kind]) {
    let ranks = admitted(algorithm, 1..=33);
    let each = kinds.len().div_ceil(ranks.len());
    let mut proofs = Proofs::new(algorithm);
    let mut met = BTreeSet::new();
    for (i, &nranks) in ranks.iter().enumerate() {
        for (which, count) in counts(nranks).into_iter().enumerate() {
            // Another start for each count: neighbours in the list do not always meet the same ranks.
            let all = if nranks <= 4 && which < 6 { kinds.len() } else { each };
            for j in 0..all {
                let kind = kinds[(i * each + j + which * 37) % kinds.len()];
                assert_right(&proofs.plan(nranks, count, kind), kind, u64::from(nranks));
                met.insert((which, kind));
            }
        }
    }
    assert_eq!(met.len(), 8 * kinds.len(), "the sample covers every count with every kind");
}

#[test]
fn the_ring() {
    sample(&RingAllReduce::new());
    sample(&RingReduceScatter::new());
    sample(&RingAllGather::new());
    sample(&RingBroadcast::new());
    sample(&RingReduce::new());
}

#[test]
fn the_ring_of_nccl() {
    sample(&NcclRingAllReduce::new());
    sample(&NcclRingReduceScatter::new());
    sample(&NcclRingAllGather::new());
    sample(&NcclRingBroadcast::new());
    sample(&NcclRingReduce::new());
}

/// The slots that another setting of the fifo uses, and the data in them.
#[test]
fn the_ring_of_nccl_with_other_fifos() {
    for algorithm in [
        &NcclRingAllReduce::new().handshake(true).slices(1).credits(2) as &dyn Algorithm,
        &NcclRingAllReduce::new().slices(3).loops(3),
        &NcclRingReduceScatter::new().slices(7).credits(8),
        &NcclRingAllGather::new().slices(3).loops(2),
        &NcclRingBroadcast::new().pieces(3).slices(2).credits(1).root(0),
        &NcclRingReduce::new().pieces(5).slices(2).credits(1).root(0),
    ] {
        let mut proofs = Proofs::new(algorithm);
        for nranks in [1, 2, 3, 5, 8] {
            for count in [0, 1, 4, 7, 1003] {
                for in_place in [false, true] {
                    let kind = Kind { in_place, ..SUM };
                    assert_right(&proofs.plan(nranks, count, kind), kind, count);
                }
            }
        }
    }
}

/// Values of many magnitudes: every order of adding them up rounds in another way.
fn rough(plan: &roundelay::Plan) -> Vec<Vec<u8>> {
    let mut seed = 0x9E37_79B9_u32;
    let mut value = || {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let magnitude = [1e-3_f32, 1.0, 1e3, 1e6][(seed >> 12) as usize % 4];
        (((seed >> 8) as f32 / (1 << 23) as f32) - 1.0) * magnitude
    };
    let lens = (0..plan.schedule().nranks).map(|rank| plan.input_len(RankId(rank)));
    lens.map(|len| (0..len).flat_map(|_| value().to_ne_bytes()).collect()).collect()
}

#[test]
fn the_ring_of_nccl_rounds_as_the_handshake_ring_where_blocks_are_numbered_alike() {
    let bits = |algorithm: &dyn Algorithm, nranks, in_place| {
        let plan = Proofs::new(algorithm).plan(nranks, 1003, SUM);
        run(&plan, in_place, &rough(&plan))
    };
    for nranks in 2..=9 {
        for in_place in [false, true] {
            let ring = bits(&RingAllReduce::new(), nranks, in_place);
            for slices in [1, 2, 3] {
                let nccl = NcclRingAllReduce::new().handshake(true).slices(slices);
                assert!(bits(&nccl, nranks, in_place) == ring, "{nranks} ranks, {slices} slices");
            }
            // NCCL's own numbering starts every chunk one rank further on: two operands commute, three do not.
            let rotated = bits(&NcclRingAllReduce::new(), nranks, in_place);
            assert_eq!(rotated == ring, nranks == 2, "{nranks} ranks");
            let scattered = bits(&NcclRingReduceScatter::new(), nranks, in_place);
            assert!(scattered == bits(&RingReduceScatter::new(), nranks, in_place));
            let reduced = bits(&NcclRingReduce::new(), nranks, in_place);
            assert!(reduced == bits(&RingReduce::new(), nranks, in_place));
        }
    }
}

#[test]
fn the_twisted_ring() {
    sample(&TwistedRingAllReduce::new());
    sample(&TwistedRingReduceScatter::new());
    sample(&TwistedRingAllGather::new());
}

#[test]
fn several_rings() {
    // The channels of a full mesh are nearly as many as its ranks.
    let mesh = Shape::full_mesh(33).build().unwrap();
    let two = Rings::disjoint(mesh, 2);
    sample(&MultiRingAllReduce::new().rings(two.clone()));
    sample(&MultiRingReduceScatter::new().rings(two.clone()));
    sample(&MultiRingAllGather::new().rings(two));
}

#[test]
fn trees() {
    sample(&TreeAllReduce::new());
    sample(&TreeReduce::new());
    sample(&TreeBroadcast::new());
}

#[test]
fn two_trees_at_once() {
    sample(&DoubleBinaryTreeAllReduce::new());
    sample(&DoubleBinaryTreeReduce::new());
    sample(&DoubleBinaryTreeBroadcast::new());
}

#[test]
fn halving_and_doubling() {
    sample(&HalvingDoublingAllReduce::new());
    sample(&HalvingDoublingReduceScatter::new());
    sample(&HalvingDoublingAllGather::new());
}

#[test]
fn halving_and_doubling_mirrored() {
    sample(&HalvingDoublingAllReduce::new().near_first(true));
    sample(&HalvingDoublingReduceScatter::new().near_first(true));
    sample(&HalvingDoublingAllGather::new().far_first(true));
}

#[test]
fn halving_and_doubling_folded() {
    sample(&RecursiveHalvingDoublingAllReduce::new());
    sample(&RecursiveHalvingDoublingReduceScatter::new());
    sample(&RecursiveHalvingDoublingAllGather::new());
}

#[test]
fn nhr() {
    sample(&NhrAllReduce::new());
    sample(&NhrAllReduce::new().reorder(true));
    sample(&NhrReduceScatter::new());
    sample(&NhrAllGather::new());
    sample(&NhrScatter::new());
    sample(&NhrBroadcast::new());
    sample(&NhrOneShotAllReduce::new());
}

#[test]
fn meshes_that_reduce() {
    sample(&MeshAllReduce::new());
    sample(&OneShotMeshAllReduce::new());
    sample(&MeshReduceScatter::new());
}

#[test]
fn meshes_that_copy() {
    sample(&MeshAllGather::new());
    sample_apart(&MeshAllToAll::new());
    sample(&MeshScatter::new().root(0));
    sample(&MeshGather::new().root(0));
}

#[test]
fn recursive_doubling() {
    sample(&RecursiveDoublingAllReduce::new());
    sample(&RecursiveDoublingAllGather::new());
}

#[test]
fn bruck() {
    sample(&BruckAllGather::new());
    sample_apart(&BruckAllToAll::new());
}

#[test]
fn pairwise_exchange() {
    sample_apart(&PairwiseAllToAll::new());
    sample(&PairwiseReduceScatter::new());
}

const SUM: Kind = Kind { dtype: DType::F32, op: ReduceOp::Sum, in_place: false };

#[test]
fn rings_in_any_order() {
    let order = || [3, 0, 4, 1, 2];
    let ring = RingAllReduce::new().ring(order());
    let both = TwistedRingAllReduce::new().ring(order());
    let two = || [order(), [4, 3, 2, 1, 0]].into_iter().collect::<Rings>();
    for algorithm in [
        &ring as &dyn Algorithm,
        &both,
        &MultiRingAllReduce::new().rings(two()),
        &NcclRingAllReduce::new().ring(order()),
        &NcclRingReduceScatter::new().ring(order()),
        &NcclRingAllGather::new().ring(order()),
        &NcclRingBroadcast::new().root(1).pieces(3).ring(order()),
        &NcclRingReduce::new().root(4).pieces(3).ring(order()),
        &RingReduceScatter::new().ring(order()),
        &RingAllGather::new().ring(order()),
        &RingBroadcast::new().root(1).slices(3).ring(order()),
        &RingReduce::new().root(4).slices(3).ring(order()),
        &TwistedRingReduceScatter::new().ring(order()),
        &TwistedRingAllGather::new().ring(order()),
        &MultiRingReduceScatter::new().rings(two()),
        &MultiRingAllGather::new().rings(two()),
    ] {
        let mut proofs = Proofs::new(algorithm);
        for count in [1, 4, 5, 11, 1000] {
            assert_right(&proofs.plan(5, count, SUM), SUM, 9);
        }
    }
}

#[test]
fn trees_of_any_kind_and_root() {
    let parents = || [3, 3, 0, -1, 2];
    for algorithm in [
        &TreeAllReduce::new().tree(parents()) as &dyn Algorithm,
        &TreeAllReduce::new().tree(Tree::chain(2)).slices(3),
        &TreeAllReduce::new().tree(Tree::star(1)).slices(1),
        &TreeReduce::new().root(3).tree(parents()).slices(3),
        &TreeReduce::new().root(4).tree(Tree::chain(4)).slices(8),
        &TreeBroadcast::new().root(3).tree(parents()).slices(3),
        &TreeBroadcast::new().root(1).tree(Tree::double_binary(1, 1)).slices(2),
        &DoubleBinaryTreeReduce::new().root(2).slices(3),
        &DoubleBinaryTreeBroadcast::new().root(4).slices(1),
    ] {
        let mut proofs = Proofs::new(algorithm);
        for count in [1, 4, 5, 11, 1000] {
            assert_right(&proofs.plan(5, count, SUM), SUM, 9);
        }
    }
}

#[test]
fn a_mesh_with_a_cut_link() {
    let twisted = TwistedRingAllReduce::new().ring(Ring::twisted());
    let plan = Proofs::new(&twisted).plan(8, 1003, SUM);
    assert_right(&plan, SUM, 5);

    let schedule = plan.schedule();
    let cut = |a: u32, b: u32| (a.min(b), a.max(b)) == (0, 1);
    let mut used = BTreeSet::new();
    for stream in &schedule.streams {
        for at in stream.first.index()..stream.first.index() + stream.len as usize {
            let op = &schedule.ops[at];
            let others: Vec<u32> = match op.kind {
                roundelay_core::schedule::OpKind::Move => {
                    let operands = schedule.srcs(op).iter().chain(schedule.dsts(op));
                    operands.map(|operand| operand.rank.0).collect()
                }
                _ => vec![schedule.channel(op).from.0, schedule.channel(op).to.0],
            };
            for other in others {
                assert!(!cut(stream.rank.0, other), "op {at} uses the link 0-1");
                if other != stream.rank.0 {
                    used.insert((stream.rank.0.min(other), stream.rank.0.max(other)));
                }
            }
        }
    }
    let order = [1_u32, 2, 3, 4, 5, 6, 0, 7, 1];
    let links: BTreeSet<_> = order.windows(2).map(|w| (w[0].min(w[1]), w[0].max(w[1]))).collect();
    assert_eq!(used, links, "the links of the ring 1 2 3 4 5 6 0 7, and no others");
}

#[test]
fn two_runs_give_the_same_bytes() {
    for algorithm in [
        &RingAllReduce::new() as &dyn Algorithm,
        &TwistedRingAllReduce::new(),
        &NcclRingAllReduce::new(),
    ] {
        let mut proofs = Proofs::new(algorithm);
        let workers = |w| roundelay::Options::new().workers(w);
        let plan = proofs.plan(7, 10_007, SUM).with_options(workers(1));
        let (_, inputs) = data(&plan, 3);
        let alone = run(&plan, false, &inputs);
        let together = proofs.plan(7, 10_007, SUM).with_options(workers(4));
        for _ in 0..5 {
            assert!(run(&together, false, &inputs) == alone, "{}", algorithm.name());
        }
        assert!(alone.iter().all(|output| *output == alone[0]), "all ranks hold the same bytes");
    }
}

/// With flags shared by both directions of a link the two streams would steal each other's signals.
#[test]
fn two_ranks_on_two_streams_a_thousand_times() {
    let algorithm = TwistedRingAllReduce::new();
    let mut proofs = Proofs::new(&algorithm);
    for count in [1, 2, 3, 5] {
        let plan = proofs.plan(2, count, SUM).with_options(roundelay::Options::new().workers(4));
        for seed in 0..250 {
            assert_right(&plan, SUM, seed);
        }
    }
}

#[test]
fn many_ranks_on_few_cores() {
    for (nranks, count) in [(64, 1000), (256, 300)] {
        for algorithm in [
            &RingAllReduce::new() as &dyn Algorithm,
            &TwistedRingAllReduce::new(),
            &HalvingDoublingAllReduce::new(),
        ] {
            assert_right(&Proofs::new(algorithm).plan(nranks, count, SUM), SUM, 1);
        }
    }
    // The rings of 1024 ranks are ten million ops: not for a debug build.
    let halving = HalvingDoublingAllReduce::new();
    assert_right(&Proofs::new(&halving).plan(1024, 100, SUM), SUM, 1);
}

#[test]
fn typed_slices_and_bytes_are_one_thing() {
    let plan = RingAllReduce::new().plan(3, 4, DType::Bf16, ReduceOp::Max).unwrap();
    let inputs = [1.0_f32, 3.0, 2.0].map(|x| [half::bf16::from_f32(x); 4]);
    let mut outputs = [[half::bf16::ZERO; 4]; 3];
    let mut views = outputs.each_mut().map(|o| &mut o[..]);
    plan.run(&inputs.each_ref().map(|i| &i[..]), &mut views).unwrap();
    assert_eq!(outputs, [[half::bf16::from_f32(3.0); 4]; 3]);
    let mut buffers = inputs;
    plan.run_in_place(&mut buffers.each_mut().map(|b| &mut b[..])).unwrap();
    assert_eq!(buffers, outputs);
}
