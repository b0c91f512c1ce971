//! Results against the plain reference: rank counts x counts x dtypes x ops, in and out of place.

use super::common::*;
use roundelay_core::collective::Alias;
use roundelay_core::dtype::{DType, ReduceOp};
use roundelay_core::ids::RankId;
use roundelay_kernels::reference::Reference;
use roundelay_kernels::{Options, Plan};

/// Bytes at an address fit for any dtype.
struct Aligned(Vec<u64>, usize);

impl Aligned {
    fn new(bytes: usize, fill: u8) -> Self {
        Self(vec![u64::from_ne_bytes([fill; 8]); bytes.div_ceil(8)], bytes)
    }
    fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: `bytes` was rounded up to whole words; any bytes are words.
        unsafe { std::slice::from_raw_parts_mut(self.0.as_mut_ptr().cast(), self.1) }
    }
    fn copy(from: &[u8]) -> Self {
        let mut new = Self::new(from.len(), 0);
        new.bytes().copy_from_slice(from);
        new
    }
}

fn check(plan: &Plan, seed: u64) {
    let schedule = plan.schedule();
    let reference = Reference {
        collective: schedule.collective,
        nranks: schedule.nranks,
        root: schedule.root,
        count: plan.count() as usize,
        dtype: plan.dtype(),
        op: plan.op(),
    };
    let what = format!("{} {plan:?}", schedule.algorithm);
    let size = plan.dtype().size();
    let ranks = || (0..schedule.nranks).map(RankId);
    let depth = plan.proof().reduce_depth;
    let inputs = reference.inputs(seed);

    let mut aligned: Vec<Aligned> = inputs.iter().map(|i| Aligned::copy(i)).collect();
    let given: Vec<&[u8]> = aligned.iter_mut().map(|a| &*a.bytes()).collect();
    let mut outputs: Vec<Aligned> =
        ranks().map(|r| Aligned::new(plan.output_len(r) * size, 0xa5)).collect();
    let mut lent: Vec<&mut [u8]> = outputs.iter_mut().map(Aligned::bytes).collect();
    plan.run_bytes(&given, &mut lent).expect(&what);
    let got: Vec<&[u8]> = lent.iter().map(|o| &**o).collect();
    assert_eq!(reference.count_wrong(&inputs, &got, depth), 0, "{what}");
    assert!(given.iter().zip(&inputs).all(|(a, b)| a == b), "{what}: inputs changed");

    let unit = plan.count() as usize * size;
    let mut whole: Vec<Aligned> =
        ranks().map(|r| Aligned::new(plan.in_place_len(r) * size, 0x5a)).collect();
    let alias = |rank| schedule.collective.alias(rank, schedule.root);
    for (rank, input) in ranks().zip(&inputs) {
        let at =
            if let Alias::InputInOutput(units) = alias(rank) { units as usize * unit } else { 0 };
        whole[rank.index()].bytes()[at..at + input.len()].copy_from_slice(input);
    }
    let mut lent: Vec<&mut [u8]> = whole.iter_mut().map(Aligned::bytes).collect();
    plan.run_bytes_in_place(&mut lent).expect(&what);
    let got: Vec<&[u8]> = ranks()
        .map(|rank| {
            let at = if let Alias::OutputInInput(units) = alias(rank) {
                units as usize * unit
            } else {
                0
            };
            &lent[rank.index()][at..at + plan.output_len(rank) * size]
        })
        .collect();
    assert_eq!(reference.count_wrong(&inputs, &got, depth), 0, "{what} in place");
}

fn counts(nranks: u32) -> Vec<u64> {
    let n = u64::from(nranks);
    let mut counts = vec![0, 1, n - 1, n, 2 * n + 1, 1000];
    counts.sort_unstable();
    counts.dedup();
    counts
}

/// The ops of all dtypes, and of those of integers one for each of the six: the kernels' own tests have all.
fn ops(at: usize) -> impl Iterator<Item = ReduceOp> {
    let [others @ .., a, b, c, d, e, f] = ReduceOp::ALL else { unreachable!("there are eleven") };
    others.iter().copied().chain([a, b, c, d, e, f].get(at).map(|op| **op))
}

fn everything(nranks: u32, build: impl Fn() -> Builder) {
    for count in counts(nranks) {
        for (at, &dtype) in DType::ALL.iter().enumerate() {
            for op in ops(at) {
                let plan = build().plan(count, dtype, op);
                check(&plan.with_options(Options::new().workers(1 + at as u32 % 3)), count + 7);
            }
        }
    }
}

#[test]
fn rings_reduce_everything() {
    for nranks in [1, 2, 3, 5, 8, 33] {
        everything(nranks, || ring(nranks));
    }
}

#[test]
fn folds_of_many_sources_reduce_everything() {
    for nranks in [1, 2, 3, 9, 16] {
        everything(nranks, || direct_reduce_scatter(nranks));
    }
}

#[test]
fn doubling_scales_its_outputs_at_the_end() {
    for nranks in [1, 2, 8, 32] {
        everything(nranks, || recursive_doubling(nranks));
    }
}

#[test]
fn forked_streams_and_pushes_carry_copies() {
    for nranks in [1, 2, 5, 17] {
        for count in counts(nranks) {
            for workers in 1..4 {
                let options = Options::new().workers(workers);
                let gather = parallel_all_gather(nranks).plan(count, DType::U8, ReduceOp::Sum);
                check(&gather.with_options(options), count);
                let push =
                    push_broadcast(nranks, nranks - 1).plan(count, DType::F64, ReduceOp::Sum);
                check(&push.with_options(options), count);
            }
        }
    }
}

#[test]
fn large_moves_are_cut_into_segments() {
    for dtype in [DType::I8, DType::Bf16, DType::F32] {
        for workers in [1, 2, 5] {
            let plan = ring(3).plan(1_000_003, dtype, ReduceOp::Avg);
            check(&plan.with_options(Options::new().workers(workers)), 3);
        }
    }
}

#[test]
fn a_thousand_ranks_complete() {
    let inputs: Vec<Vec<i32>> = (0..1024).map(|r| (0..1000).map(|i| r * 7 + i).collect()).collect();
    let want: Vec<i32> = (0..1000).map(|i| (0..1024).map(|r| r * 7 + i).sum()).collect();
    for workers in [0, 1, 2, 7] {
        let plan = ring(1024).plan(1000, DType::I32, ReduceOp::Sum);
        let plan = plan.with_options(Options::new().workers(workers));
        let mut outputs = vec![vec![0; 1000]; 1024];
        let given: Vec<&[i32]> = inputs.iter().map(|v| &v[..]).collect();
        plan.run(&given, &mut outputs.iter_mut().map(|v| &mut v[..]).collect::<Vec<_>>()).unwrap();
        assert!(outputs.iter().all(|o| *o == want));
    }
}

#[test]
fn one_plan_runs_from_many_threads_and_again_and_again() {
    let plan = ring(8).plan(257, DType::I64, ReduceOp::Sum).with_options(Options::new().workers(2));
    std::thread::scope(|scope| {
        for thread in 0..4i64 {
            let plan = &plan;
            scope.spawn(move || {
                for run in 0..200i64 {
                    let mut data: Vec<Vec<i64>> = (0..8)
                        .map(|r| (0..257).map(|i| thread * 1000 + run + r * i).collect())
                        .collect();
                    let want: Vec<i64> =
                        (0..257).map(|i| 8 * (thread * 1000 + run) + 28 * i).collect();
                    plan.run_in_place(&mut data.iter_mut().map(|v| &mut v[..]).collect::<Vec<_>>())
                        .unwrap();
                    assert!(data.iter().all(|d| *d == want));
                }
            });
        }
    });
}
