//! `cargo bench -p roundelay-kernels --bench reduce`: every reduce kernel at every level of the caches, next to
//! copies of as many bytes. Bytes are those read and written, once for each operand.
//!
//! Operands lie a multiple of 4 KiB apart, as large allocations do, so that they meet in the same sets of the
//! caches. `threads = [1, 2]` shows what is left when both cores draw on the same memory.

use std::cell::RefCell;

use divan::counter::BytesCount;
use divan::{Bencher, black_box};
use roundelay_core::dtype::{DType, ReduceOp};
use roundelay_kernels::reduce::{Kernel, MoveForm, Stores, copy};

fn main() {
    divan::main();
}

/// Bytes of an operand: within L1, L2, L3 and beyond.
const SIZES: [usize; 5] = [1 << 10, 4 << 10, 256 << 10, 4 << 20, 64 << 20];

/// A kernel's name and parameters.
#[derive(Clone, Copy)]
struct Reduction {
    dtype: DType,
    op: ReduceOp,
    srcs: usize,
    dsts: usize,
    /// Elements from the start of a line to each operand.
    off: usize,
    stores: Stores,
}

impl std::fmt::Display for Reduction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { dtype, op, srcs, dsts, off, stores } = self;
        write!(f, "{dtype} {op} {srcs}->{dsts} +{off} {stores:?}")
    }
}

/// Every dtype and op in the shapes that matter.
fn reductions() -> Vec<Reduction> {
    let mut all = Vec::new();
    for &dtype in DType::ALL {
        for &op in ReduceOp::ALL.iter().filter(|op| op.takes(dtype)) {
            for (srcs, dsts) in [(2, 1), (8, 1), (2, 8), (8, 8)] {
                for off in [0, 1] {
                    for stores in [Stores::Cached, Stores::Streaming] {
                        all.push(Reduction { dtype, op, srcs, dsts, off, stores });
                    }
                }
            }
        }
    }
    all
}

thread_local! {
    /// The memory of a thread's operands; it grows with them.
    static MEMORY: RefCell<Vec<u64>> = const { RefCell::new(Vec::new()) };
}

/// `operands` of `size` bytes, a page apart, and `off` bytes from the start of one.
fn operands(operands: usize, size: usize, off: usize) -> Vec<*mut u8> {
    const PAGE: usize = 4096;
    let stride = size.next_multiple_of(PAGE) + PAGE;
    MEMORY.with_borrow_mut(|words| {
        let enough = (stride * operands + PAGE) / 8;
        if words.len() < enough {
            // 1 in f16, near it in the others: no NaN, no subnormal.
            words.resize(enough, 0x3c00_3c00_3c00_3c00);
        }
        let start = words.as_mut_ptr().cast::<u8>();
        let first = start.align_offset(PAGE) + off;
        // SAFETY: the vector has a page more than the operands take.
        (0..operands).map(|operand| unsafe { start.add(first + operand * stride) }).collect()
    })
}

#[divan::bench(args = reductions(), consts = SIZES, threads = [1, 2], max_time = 0.05)]
fn reduce<const SIZE: usize>(bencher: Bencher, reduction: &Reduction) {
    let Reduction { dtype, op, srcs, dsts, off, stores } = *reduction;
    let kernel = Kernel::new(dtype, op).expect("the dtype has the op");
    let divide = (op == ReduceOp::Avg).then_some(3);
    bencher.counter(BytesCount::new(SIZE * (srcs + dsts))).bench(|| {
        let at = operands(srcs + dsts, SIZE, off * dtype.size());
        let mut from = [std::ptr::null(); 8];
        for (from, at) in from.iter_mut().zip(&at) {
            *from = at.cast_const();
        }
        let (from, to) = (black_box(&from[..srcs]), black_box(&at[srcs..]));
        // SAFETY: `SIZE` bytes each, apart, aligned for the dtype; the thread's own.
        unsafe { kernel.run(from, to, SIZE / dtype.size(), MoveForm::CHAIN, divide, stores) };
    });
}

/// A copy of as many bytes as a run of `operands` touches, half read and half written, through the caches.
#[divan::bench(args = [3, 9, 10, 16], consts = SIZES, threads = [1, 2], max_time = 0.05)]
fn copy_cached<const SIZE: usize>(bencher: Bencher, count: usize) {
    copies::<SIZE>(bencher, count, Stores::Cached);
}

/// A copy of as many bytes as a run of `operands` touches, past the caches.
#[divan::bench(args = [3, 9, 10, 16], consts = SIZES, threads = [1, 2], max_time = 0.05)]
fn copy_streaming<const SIZE: usize>(bencher: Bencher, count: usize) {
    copies::<SIZE>(bencher, count, Stores::Streaming);
}

fn copies<const SIZE: usize>(bencher: Bencher, count: usize, stores: Stores) {
    let bytes = count * SIZE / 2;
    bencher.counter(BytesCount::new(2 * bytes)).bench(|| {
        let at = operands(2, bytes, 0);
        // SAFETY: two of `bytes` each, apart; the thread's own.
        unsafe { copy(black_box(at[1]), black_box(at[0]), bytes, stores) };
    });
}
