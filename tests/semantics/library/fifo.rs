//! NCCL's ring with other fifos, and to the bit against the ring of handshakes.

use roundelay::library::{
    DoubleBinaryTreeAllReduce, NcclDoubleBinaryTreeAllReduce, NcclRingAllGather, NcclRingAllReduce,
    NcclRingBroadcast, NcclRingReduce, NcclRingReduceScatter, NcclTreeAllReduce, RingAllReduce,
    RingReduce, RingReduceScatter, TreeAllReduce,
};
use roundelay::{Algorithm, Tree};

use roundelay_core::ids::RankId;

use super::super::runs::{Kind, Proofs, assert_right, run};
use super::SUM;

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

/// NCCL's trees have the bits of those that are pulled, whatever their fifos and however many children a rank has.
#[test]
fn the_trees_of_nccl_round_as_the_pulled_trees() {
    let bits = |algorithm: &dyn Algorithm, nranks, in_place| {
        let plan = Proofs::new(algorithm).plan(nranks, 1003, SUM);
        run(&plan, in_place, &rough(&plan))
    };
    let check = |nccl: &dyn Algorithm, pulled: &dyn Algorithm| {
        for nranks in [1, 2, 3, 4, 7, 8] {
            for in_place in [false, true] {
                let (nccl, pulled) = (bits(nccl, nranks, in_place), bits(pulled, nranks, in_place));
                assert!(nccl == pulled, "{nranks} ranks, in place: {in_place}");
            }
        }
    };
    for tree in [Tree::binary(0), Tree::binomial(0), Tree::star(0)] {
        let pulled = TreeAllReduce::new().tree(tree.clone());
        let nccl = NcclTreeAllReduce::new().tree(tree).pieces(3);
        check(&nccl.credits(1), &pulled);
    }
    check(&NcclTreeAllReduce::new().slices(3).credits(3), &TreeAllReduce::new());
    check(&NcclDoubleBinaryTreeAllReduce::new().pieces(2), &DoubleBinaryTreeAllReduce::new());
}

/// Values of many magnitudes: every order of adding them up rounds in another way.
fn rough(plan: &roundelay::Plan) -> Vec<Vec<u8>> {
    let mut random = fastrand::Rng::with_seed(1);
    let mut value = || {
        let magnitude = [1e-3_f32, 1.0, 1e3, 1e6][random.usize(..4)];
        (2.0 * random.f32() - 1.0) * magnitude
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
