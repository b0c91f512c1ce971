//! The loops over [`Number`]s, once for each dtype, op and instruction set, behind one table entry.

use half::{bf16, f16};
use roundelay_core::dtype::{DType, ReduceOp};

use super::number::Number;

/// `acc[i] = srcs[last][i] op (.. (srcs[0][i] op acc[i]))`, where `acc` overlaps no source.
type Fold = unsafe fn(acc: *mut u8, srcs: *const *const u8, len: usize);
/// `acc[i] /= nranks`
type Divide = unsafe fn(acc: *mut u8, len: usize, nranks: u32);

/// Sources that one pass over an accumulator takes at most.
pub(super) const WIDTH: usize = 4;

/// The loops for one dtype and op. Lengths are in elements, pointers aligned for the dtype.
#[derive(Clone, Copy)]
pub(super) struct Loops {
    /// By the number of sources less one.
    pub(super) fold: [Fold; WIDTH],
    /// The same with the first source in the place of `acc`, which is only written; by the number of
    /// sources less two.
    pub(super) join: [Fold; WIDTH],
    pub(super) divide: Divide,
}

/// A reduce op as a type, so that every loop is compiled for its own.
trait Combine {
    fn combine<T: Number>(src: T, acc: T) -> T;
}

macro_rules! ops {
    ($($name:ident $method:ident;)*) => {$(
        struct $name;
        impl Combine for $name {
            #[inline(always)]
            fn combine<T: Number>(src: T, acc: T) -> T {
                src.$method(acc)
            }
        }
    )*};
}

ops! {
    Sum sum;
    Prod prod;
    Min min;
    Max max;
}

// Slices as arguments tell LLVM that nothing overlaps, also after inlining.
#[inline(always)]
fn fold<T: Number, O: Combine, const N: usize>(acc: &mut [T], srcs: [&[T]; N]) {
    let srcs = srcs.map(|src| &src[..acc.len()]);
    for (i, a) in acc.iter_mut().enumerate() {
        *a = srcs.iter().fold(*a, |a, src| O::combine(src[i], a));
    }
}

#[inline(always)]
fn join<T: Number, O: Combine, const N: usize>(dst: &mut [T], first: &[T], srcs: [&[T]; N]) {
    let first = &first[..dst.len()];
    let srcs = srcs.map(|src| &src[..dst.len()]);
    for (i, d) in dst.iter_mut().enumerate() {
        *d = srcs.iter().fold(first[i], |a, src| O::combine(src[i], a));
    }
}

#[inline(always)]
fn divide<T: Number>(acc: &mut [T], nranks: u32) {
    for a in acc {
        *a = a.divide(nranks);
    }
}

/// The three entry points, compiled for one instruction set.
macro_rules! instruction_set {
    ($module:ident $(, #[$attribute:meta])?) => {
        mod $module {
            use super::{Combine, Loops, Number};
            use std::slice::{from_raw_parts, from_raw_parts_mut};

            $(#[$attribute])?
            unsafe fn fold<T: Number, O: Combine, const N: usize>(
                acc: *mut u8,
                srcs: *const *const u8,
                len: usize,
            ) {
                // SAFETY: the caller gives `len` aligned elements at `acc` and at each of `N` sources,
                // which `acc` does not overlap.
                unsafe {
                    let srcs = srcs.cast::<[*const T; N]>().read();
                    let acc = from_raw_parts_mut(acc.cast::<T>(), len);
                    super::fold::<T, O, N>(acc, srcs.map(|src| from_raw_parts(src, len)));
                }
            }

            $(#[$attribute])?
            unsafe fn join<T: Number, O: Combine, const N: usize>(
                dst: *mut u8,
                srcs: *const *const u8,
                len: usize,
            ) {
                // SAFETY: the caller gives `len` aligned elements at `dst` and at each of `1 + N`
                // sources, which `dst` does not overlap.
                unsafe {
                    let first = from_raw_parts(srcs.read().cast::<T>(), len);
                    let srcs = srcs.add(1).cast::<[*const T; N]>().read();
                    let dst = from_raw_parts_mut(dst.cast::<T>(), len);
                    super::join::<T, O, N>(dst, first, srcs.map(|src| from_raw_parts(src, len)));
                }
            }

            $(#[$attribute])?
            unsafe fn divide<T: Number>(acc: *mut u8, len: usize, nranks: u32) {
                // SAFETY: the caller gives `len` aligned elements that nobody else touches.
                let acc = unsafe { from_raw_parts_mut(acc.cast::<T>(), len) };
                super::divide(acc, nranks);
            }

            pub(super) fn loops<T: Number, O: Combine>() -> Loops {
                Loops {
                    fold: [fold::<T, O, 1>, fold::<T, O, 2>, fold::<T, O, 3>, fold::<T, O, 4>],
                    join: [join::<T, O, 1>, join::<T, O, 2>, join::<T, O, 3>, join::<T, O, 4>],
                    divide: divide::<T>,
                }
            }
        }
    };
}

instruction_set!(baseline);
#[cfg(target_arch = "x86_64")]
instruction_set!(avx2, #[target_feature(enable = "avx2")]);
#[cfg(target_arch = "x86_64")]
instruction_set!(
    avx512,
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
);

/// The widest loops that this machine runs. Multiply and add are never contracted, so all give the same bits.
fn widest<T: Number, O: Combine>() -> Loops {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::is_x86_feature_detected as has;
        if has!("avx512f") && has!("avx512bw") && has!("avx512dq") && has!("avx512vl") {
            return avx512::loops::<T, O>();
        }
        if has!("avx2") {
            return avx2::loops::<T, O>();
        }
    }
    baseline::loops::<T, O>()
}

fn of_type<T: Number>(op: ReduceOp) -> Loops {
    match op {
        ReduceOp::Sum | ReduceOp::Avg => widest::<T, Sum>(),
        ReduceOp::Prod => widest::<T, Prod>(),
        ReduceOp::Min => widest::<T, Min>(),
        ReduceOp::Max => widest::<T, Max>(),
    }
}

impl Loops {
    pub(super) fn new(dtype: DType, op: ReduceOp) -> Self {
        match dtype {
            DType::I8 => of_type::<i8>(op),
            DType::U8 => of_type::<u8>(op),
            DType::I32 => of_type::<i32>(op),
            DType::U32 => of_type::<u32>(op),
            DType::I64 => of_type::<i64>(op),
            DType::U64 => of_type::<u64>(op),
            DType::F16 => of_type::<f16>(op),
            DType::Bf16 => of_type::<bf16>(op),
            DType::F32 => of_type::<f32>(op),
            DType::F64 => of_type::<f64>(op),
        }
    }
}

#[cfg(all(test, not(loom), target_arch = "x86_64"))]
mod tests {
    use super::*;

    #[test]
    fn wide_and_baseline_loops_give_the_same_bits() {
        if !std::arch::is_x86_feature_detected!("avx2") {
            return;
        }
        fn same<T: Number, O: Combine>() {
            // Bit patterns of every exponent; 2048 bytes are whole elements of every dtype.
            let src: Vec<u64> =
                (0..256u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
            let acc: Vec<u64> = src.iter().map(|x| x.rotate_left(29) ^ 0x55).collect();
            let run = |loops: Loops| {
                let (mut acc, mut dst) = (acc.clone(), vec![0u64; 256]);
                let len = 2048 / size_of::<T>();
                // SAFETY: all three hold 2048 bytes, aligned for every dtype, and are apart.
                unsafe {
                    let srcs = [acc.as_ptr().cast(), src.as_ptr().cast()];
                    (loops.join[0])(dst.as_mut_ptr().cast(), srcs.as_ptr(), len);
                    (loops.fold[0])(acc.as_mut_ptr().cast(), srcs[1..].as_ptr(), len);
                    assert_eq!(acc, dst);
                    (loops.divide)(acc.as_mut_ptr().cast(), len, 7);
                }
                acc
            };
            assert_eq!(run(avx2::loops::<T, O>()), run(baseline::loops::<T, O>()));
        }
        macro_rules! all {
            ($($t:ty)*) => {$(
                same::<$t, Sum>(); same::<$t, Prod>(); same::<$t, Min>(); same::<$t, Max>();
            )*};
        }
        all! { i8 u8 i32 u32 i64 u64 f16 bf16 }
    }
}
