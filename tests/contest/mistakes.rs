//! The mistakes of a published entry, one at a time, against exported executors.

use std::path::PathBuf;

use roundelay_core::dtype::{DType, ReduceOp};
use roundelay_core::ids::RankId;
use roundelay_core::verify::Sameness;
use roundelay_kernels::reference::Reference;
use roundelay_tests::root;

use crate::contest::executable::{Call, Executable};
use crate::contest::export::{BROKEN, Exported, place};
use crate::contest::exports::{DEAD, ring};

fn published(name: &str) -> Executable {
    let folder: PathBuf = root().join("tests/contest/mistakes");
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).expect("the transcription");
    let text = read("entry.cpp").replace("#include \"entry.h\"", &read("entry.h"));
    let text = text.replace("#pragma once\n", "");
    Executable::compile(&text, name).unwrap_or_else(|log| panic!("{log}"))
}

fn ours() -> Exported {
    Exported::new("Ring", vec![(None, ring())])
}

/// Each of 8 ranks has `value(rank, i)`; returns the number of rank 0's elements with a wrong sum.
fn wrong_sums(program: &Executable, count: u64) -> usize {
    let value = |rank: i32, i: i32| rank * 100_000 + i;
    let each = |of: &dyn Fn(i32) -> i32| {
        (0..count as i32).flat_map(|i| of(i).to_le_bytes()).collect::<Vec<u8>>()
    };
    let inputs: Vec<_> = (0..8).map(|rank| each(&|i| value(rank, i))).collect();
    let call = Call { counts: &[count], dtype: DType::I32, dead: DEAD, ..Call::default() };
    let (outputs, _) = program.run(&call, &inputs).expect("it ends");
    let expected = each(&|i| (0..8).map(|rank| value(rank, i)).sum());
    outputs[0].chunks(4).zip(expected.chunks(4)).filter(|(got, wanted)| got != wanted).count()
}

#[test]
fn cutting_in_bytes_loses_the_tail() {
    let entry = published("CutsInBytes");
    assert_eq!(wrong_sums(&entry, 160), 0, "16 divides it");
    assert_eq!(wrong_sums(&entry, 100), 52, "blocks begin inside elements");
    assert_eq!(wrong_sums(&entry, 7), 7);
    for count in [160, 100, 7, 1] {
        assert_eq!(wrong_sums(&ours().program, count), 0, "{count}");
    }
}

#[test]
fn a_typed_order_is_for_one_dead_cable() {
    let entry = published("TypedOrder");
    assert_eq!(wrong_sums(&entry, 100), 0, "the cable that it was typed for");
    let call = Call { counts: &[100], dead: &[(2, 3)], ..Call::default() };
    let refused =
        entry.run(&call, &vec![vec![0; 400]; 8]).expect_err("the order passes the dead cable");
    assert!(refused.contains("asks for a link to rank 3, and that cable is cut"), "{refused}");

    // Derived from the links, any one may be dead.
    let other = "full_mesh(8) without (2, 3)";
    let ring = place("TwistedRingAllReduce", other, 8, &[("ring", "around(topology)")]);
    let derived = Exported::new("Derived", vec![(None, ring.expect("it is right"))]);
    derived.program.run(&call, &vec![vec![0; 400]; 8]).expect("no dead cable is used");
    // Where there is none, the error says so.
    for (nranks, cut, reason) in [
        (2, "full_mesh(2) without (0, 1)", "[E0603]"),
        (3, "full_mesh(3) without (1, 2)", "[E0605]"),
    ] {
        let placed = place("TwistedRingAllReduce", cut, nranks, &[("ring", "around(topology)")]);
        let refused = placed.err().expect("there is no ring");
        assert!(refused.contains(reason), "{refused}");
    }
}

#[test]
fn two_ranks_share_the_flags_of_their_link() {
    let entry = published("AnyRankCount");
    let call = Call { nranks: 2, counts: &[100], seed: Some(0), ..Call::default() };
    let lost = entry.run(&call, &vec![vec![0; 400]; 2]).expect_err("a signal is lost");
    assert!(lost.contains("posts TxAck of rank 0 to rank 1, which is lost"), "{lost}");
    // At four there are two links; at two, ours uses one direction.
    let call = Call { nranks: 4, ..call };
    entry.run(&call, &vec![vec![0; 400]; 4]).expect("every flag has one stream");
    let one_way = place("RingAllReduce", "full_mesh(2)", 2, &[]).expect("it is right");
    let ours = Exported::new("OneWay", vec![(None, one_way)]);
    for seed in 0..8 {
        let call = Call { nranks: 2, counts: &[100, 3], seed: Some(seed), ..Call::default() };
        let inputs = [400, 400, 12, 12].map(|bytes| vec![0; bytes]);
        ours.program.run(&call, &inputs).expect("no signal is lost");
    }
}

#[test]
fn narrow_offsets_wrap_at_four_gibibytes() {
    let call = |counts| Call { counts, ccl: 8 << 30, dead: DEAD, ..Call::default() };
    let (below, beyond) = (&[1_000_000_000], &[1_500_000_000]);
    let entry = published("NarrowOffsets");
    entry.dry(&call(below)).expect("4 GB have 32-bit offsets");
    let wrong = entry.dry(&call(beyond)).expect_err("6 GB have not");
    assert!(wrong.contains("bytes 205032704..375000000 have rank"), "{wrong}");
    ours().program.dry(&call(beyond)).expect("offsets have 64 bits");
}

#[test]
fn a_wired_reduction_is_for_one_type_and_op() {
    let wrong = |program: &Executable, dtype: DType, op: ReduceOp| {
        let reference = Reference {
            collective: roundelay_core::collective::Collective::AllReduce,
            nranks: 8,
            root: RankId(0),
            count: 160,
            dtype,
            op,
        };
        let inputs = reference.inputs(3);
        let call = Call { counts: &[160], dtype, op, dead: DEAD, ..Call::default() };
        let (outputs, _) = program.run(&call, &inputs).expect("it ends");
        let outputs: Vec<_> = outputs.iter().map(Vec::as_slice).collect();
        reference.count_wrong(&inputs, &outputs, 7)
    };
    let (entry, ours) = (published("WiredReduction"), ours().program);
    let all = 8 * 160;
    for (dtype, op, bad) in [
        (DType::F32, ReduceOp::Sum, 0),
        (DType::F32, ReduceOp::Prod, all),
        (DType::I64, ReduceOp::Sum, all),
        (DType::I64, ReduceOp::Prod, all),
    ] {
        assert_eq!(wrong(&entry, dtype, op), bad, "{dtype} {op}");
        assert_eq!(wrong(&ours, dtype, op), 0, "{dtype} {op}");
    }
}

/// The most bytes on a link each way, of S bytes a rank; and links that rank 2 receives on.
fn load(program: &Executable) -> (f64, usize) {
    let count = 7 * 8 * 27 * 1000;
    let call = Call { counts: &[count], dead: DEAD, ..Call::default() };
    let report = program.dry(&call).expect("it is right");
    let most = report.links.iter().map(|link| link.2).max().expect("it uses links");
    let used = report.links.iter().filter(|link| link.1 == 2).count();
    (most as f64 / (4 * count) as f64, used)
}

#[test]
fn two_of_seven_links_are_a_third_of_the_bound() {
    let (ring, links) = load(&published("TypedOrder"));
    assert_eq!((ring, links), (0.875, 2));
    let mesh = place("MeshAround", BROKEN, 8, &[]).expect("it is right");
    let (mesh, links) = load(&Exported::new("Mesh", vec![(None, mesh)]).program);
    let bound = 7.0 / 27.0;
    assert_eq!(links, 7);
    assert!(bound / ring < 0.3, "{ring}");
    assert!(bound / mesh > 0.85, "{mesh}");
}

#[test]
fn the_order_of_a_ring_differs_by_slice() {
    // Every element is one sum, but for the order in which it is added up.
    let values = [1e8_f32, 1.0, -1e8, 3.0, 1e-3, -7.0, 5e7, 0.3];
    let inputs: Vec<Vec<u8>> = values.iter().map(|v| v.to_le_bytes().repeat(160)).collect();
    let call = Call { counts: &[160], dead: DEAD, ..Call::default() };
    let different = |program: &Executable| {
        let (outputs, _) = program.run(&call, &inputs).expect("it ends");
        let mut elements: Vec<_> = outputs.iter().flat_map(|o| o.chunks(4)).collect();
        elements.sort_unstable();
        elements.dedup();
        elements.len()
    };
    assert!(different(&published("TypedOrder")) > 1);
    let one_shot = place("OneShotAround", BROKEN, 8, &[]).expect("it is right");
    let same = |proof: &roundelay_core::verify::Proof| {
        proof.reduction.as_ref().expect("it reduces").in_every_mode().counts
    };
    // The proof says which is which.
    assert_eq!(same(ring().proved.proof()), Sameness::Differs);
    assert_ne!(same(one_shot.proved.proof()), Sameness::Differs);
    assert_eq!(different(&Exported::new("OneShot", vec![(None, one_shot)]).program), 1);
}
