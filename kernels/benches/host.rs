//! `cargo bench -p roundelay-kernels`: a ring on eight ranks, and the reduce loops alone.

#[path = "../tests/common/mod.rs"]
#[allow(dead_code, reason = "the tests use the rest")]
mod common;

use divan::counter::{BytesCount, ItemsCount};
use divan::{Bencher, black_box};
use roundelay_core::dtype::{DType, ReduceOp};
use roundelay_kernels::Options;
use roundelay_kernels::reduce::{Kernel, MoveForm, Stores};

fn main() {
    divan::main();
}

/// Bytes per second here are algbw; busbw is 2 * 7/8 of it.
#[divan::bench(args = [1, 2])]
fn ring_all_reduce_8_ranks_1mb_f32(bencher: Bencher, workers: u32) {
    let count = 1 << 18;
    let plan = common::ring(8)
        .plan(count, DType::F32, ReduceOp::Sum)
        .with_options(Options::new().workers(workers));
    let inputs = vec![vec![1f32; count as usize]; 8];
    let mut outputs = vec![vec![0f32; count as usize]; 8];
    bencher.counter(BytesCount::new(4 * count)).bench_local(|| {
        let given: Vec<&[f32]> = inputs.iter().map(|v| &v[..]).collect();
        let mut lent: Vec<&mut [f32]> = outputs.iter_mut().map(|v| &mut v[..]).collect();
        plan.run(&given, &mut lent).expect("a run")
    });
}

/// The cost of signals alone.
#[divan::bench(args = [1, 2])]
fn ring_all_reduce_8_ranks_8_elements(bencher: Bencher, workers: u32) {
    let plan = common::ring(8)
        .plan(8, DType::F32, ReduceOp::Sum)
        .with_options(Options::new().workers(workers));
    let mut data = vec![vec![1f32; 8]; 8];
    bencher.bench_local(|| {
        let mut lent: Vec<&mut [f32]> = data.iter_mut().map(|v| &mut v[..]).collect();
        plan.run_in_place(&mut lent).expect("a run")
    });
}

/// Nanoseconds an op: a signal or a move of one element as one worker takes them, without waiting for anybody.
#[divan::bench(args = [8, 64])]
fn ops_as_written(bencher: Bencher, nranks: u32) {
    let plan = common::ring(nranks)
        .plan(nranks.into(), DType::F32, ReduceOp::Sum)
        .with_options(Options::new().workers(1));
    let ops = plan.schedule().ops.len();
    let mut data = vec![vec![1f32; nranks as usize]; nranks as usize];
    bencher.counter(ItemsCount::new(ops)).bench_local(|| {
        let mut lent: Vec<&mut [f32]> = data.iter_mut().map(|v| &mut v[..]).collect();
        plan.run_in_place(&mut lent).expect("a run")
    });
}

/// Bytes of the destination per second; both sources are in the second-level cache.
#[divan::bench(args = DType::ALL, consts = [0, 2, 4])]
fn reduce_64_kib<const OP: usize>(bencher: Bencher, dtype: &DType) {
    let kernel = Kernel::new(*dtype, ReduceOp::ALL[OP]).expect("all dtypes have these");
    let divide = (ReduceOp::ALL[OP] == ReduceOp::Avg).then_some(3);
    let bytes = 64 << 10;
    let (mut acc, src) = (vec![0u64; bytes / 8], vec![0u64; bytes / 8]);
    let src = src.as_ptr().cast::<u8>();
    bencher.counter(BytesCount::new(bytes)).bench_local(|| {
        let at = black_box(acc.as_mut_ptr().cast::<u8>());
        // SAFETY: 64 KiB each, aligned for every dtype, apart.
        unsafe {
            kernel.run(
                &[at.cast_const(), src],
                &[at],
                bytes / dtype.size(),
                MoveForm::CHAIN,
                divide,
                Stores::Cached,
            );
        };
    });
}

/// One pass over eight sources.
#[divan::bench]
fn fold_8_sources_1mb_f32(bencher: Bencher) {
    let kernel = Kernel::new(DType::F32, ReduceOp::Sum).expect("numbers have sums");
    let srcs = vec![vec![1f32; 1 << 18]; 8];
    let mut dst = vec![0f32; 1 << 18];
    let srcs: Vec<*const u8> = srcs.iter().map(|s| s.as_ptr().cast()).collect();
    bencher.counter(BytesCount::new(8usize << 20)).bench_local(|| {
        // SAFETY: 1 MiB each, apart.
        unsafe {
            kernel.run(
                &srcs,
                &[dst.as_mut_ptr().cast()],
                1 << 18,
                MoveForm::CHAIN,
                None,
                Stores::Cached,
            );
        };
    });
}
