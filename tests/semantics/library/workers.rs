//! Plans by any number of worker threads, as written and fused; large moves, which workers cut into segments; and one plan
//! that several callers run at once.

use roundelay::library::{HalvingDoublingAllReduce, RingAllReduce};
use roundelay::{DType, Level, Options, ReduceOp, ToPlan as _};

use super::super::runs::{Kind, Proofs, assert_right};
use super::cover::rows;
use super::subjects;
use super::values::Values;

/// Chains of signals, folds of many sources, results that are scaled at the end, streams that fork and join, and pushes to
/// many targets.
const NAMES: [&str; 5] = [
    "RingAllReduce",
    "OneShotMeshAllReduce",
    "RecursiveDoublingAllReduce",
    "MeshAllGather",
    "PushedOneShotAllReduce",
];

#[test]
fn any_number_of_workers_gives_the_results() {
    let mut turn = 0;
    for subject in NAMES.map(subjects::named) {
        let mut admitted = vec![1, 2, 3, 5, 8, 16, 33];
        admitted.retain(|n| (subject.admits)(*n));
        for [ranks, count, workers, level] in rows([admitted.len(), 6, 3, 2]) {
            let nranks = admitted[ranks];
            let algorithm = (subject.with)(&Values::plain(nranks));
            let n = u64::from(nranks);
            let count = [0, 1, n - 1, n, 2 * n + 1, 1000][count];
            let kinds = Kind::all();
            let kind = kinds[turn * 13 % kinds.len()];
            let level = [Level::O0, Level::O2][level];
            let options = Options::new().workers(workers as u32 + 1).level(level);
            let plan = Proofs::new(&*algorithm).plan_with(nranks, count, kind, options);
            assert_right(&plan, kind, count + 7);
            turn += 1;
        }
    }
}

#[test]
fn large_moves_are_cut_into_segments() {
    let ring = RingAllReduce::new();
    let mut proofs = Proofs::new(&ring);
    for [dtype, workers, place] in rows([3, 3, 2]) {
        let dtype = [DType::I8, DType::Bf16, DType::F32][dtype];
        let kind = Kind { dtype, op: ReduceOp::Avg, in_place: place == 1 };
        let options = Options::new().workers([1, 2, 5][workers]);
        // A move has a third of it, which is more than the bytes that are moved at once.
        let count = 1_000_003 / dtype.size() as u64;
        assert_right(&proofs.plan_with(3, count, kind, options), kind, 3);
    }
}

#[test]
fn a_thousand_ranks_complete() {
    let halving = HalvingDoublingAllReduce::new();
    let mut proofs = Proofs::new(&halving);
    let kind = Kind { dtype: DType::I32, op: ReduceOp::Sum, in_place: false };
    for workers in [0, 1, 2, 7] {
        let options = Options::new().workers(workers);
        assert_right(&proofs.plan_with(1024, 1000, kind, options), kind, 1);
    }
}

#[test]
fn one_plan_runs_from_many_threads_and_again_and_again() {
    let plan = RingAllReduce::new().plan(8, 257, DType::I64, ReduceOp::Sum).expect("a plan");
    let plan = plan.with_options(Options::new().workers(2));
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let plan = &plan;
            scope.spawn(move || {
                for first in (0..200).map(|run| thread * 1000 + run) {
                    let mut data = [(); 8].map(|()| [0_i64; 257]);
                    for (rank, data) in (0..).zip(&mut data) {
                        (0..).zip(data).for_each(|(at, x)| *x = first + rank * at);
                    }
                    plan.run_in_place(&mut data.each_mut().map(|data| &mut data[..])).unwrap();
                    let right = |data: &[i64; 257]| {
                        (0..).zip(data).all(|(at, x)| *x == 8 * first + 28 * at)
                    };
                    assert!(data.iter().all(right), "thread {thread}, {first}");
                }
            });
        }
    });
}
