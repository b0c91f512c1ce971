//! The library's algorithms on data. `matrix` has all of them; this module has properties of some.

#[path = "library/around.rs"]
mod around;
#[path = "library/cover.rs"]
mod cover;
#[path = "library/engines.rs"]
mod engines;
#[path = "library/fifo.rs"]
mod fifo;
#[path = "library/islands.rs"]
mod islands;
#[path = "library/kinds.rs"]
mod kinds;
#[path = "library/levels.rs"]
mod levels;
#[path = "library/matrix.rs"]
mod matrix;
#[path = "library/multiples.rs"]
mod multiples;
#[path = "library/orchestration.rs"]
mod orchestration;
#[path = "library/random.rs"]
mod random;
#[path = "library/subjects.rs"]
mod subjects;
#[path = "library/values.rs"]
mod values;
#[path = "library/workers.rs"]
mod workers;

use std::collections::BTreeSet;

use roundelay::library::{
    HalvingDoublingAllReduce, NcclRingAllReduce, RingAllReduce, TwistedRingAllReduce,
};
use roundelay::{Algorithm, DType, ReduceOp, Ring, ToPlan as _, half};

use super::runs::{Kind, Proofs, assert_right, data, run};

const SUM: Kind = Kind { dtype: DType::F32, op: ReduceOp::Sum, in_place: false };

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
