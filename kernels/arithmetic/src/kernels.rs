//! The loops over [`Lanes`], once for each dtype, op and instruction set, behind one table entry.

use half::{bf16, f16};
use roundelay_base::dtype::{DType, ReduceOp};

use super::byte::{F8E4M3, F8E5M2};
#[cfg(target_arch = "x86_64")]
use super::lanes::f16c::{F16x8, F16x16};
use super::lanes::{
    Average, Band, Bf16, Bor, Bxor, ByteExtremum, Combine, FloatExtremum, HalfExtremum, Land,
    Lanes, Lor, Lxor, Max, Min, Plain, Prod, Sum,
};
use super::number::{Divide, Number, Whole};
use super::wide::{Averages, Narrow, WideLoops};

/// Computes `acc[i] = srcs[last][i] op (.. (srcs[0][i] op acc[i]))`, where `acc` overlaps no source.
type Fold = unsafe fn(acc: *mut u8, srcs: *const *const u8, len: usize);
/// Computes `acc[i] /= nranks`.
type Division = unsafe fn(acc: *mut u8, len: usize, nranks: u32);

/// The most sources of one pass over an accumulator.
pub(super) const WIDTH: usize = 4;

/// The loops for one dtype and op. Lengths are in elements, pointers aligned for the dtype.
#[derive(Clone, Copy)]
pub(super) struct Loops {
    /// By the number of sources minus one.
    pub(super) fold: [Fold; WIDTH],
    /// Folds whose first source takes the place of `acc`, which is only written; by the number of sources minus two.
    pub(super) join: [Fold; WIDTH],
    /// The division of `avg`, which folds as `sum` does: of f32 where the dtype is a narrower float.
    pub(super) divide: Division,
    /// The loops over f32, for floats narrower than that.
    pub(super) wide: Option<WideLoops>,
}

// Slice arguments tell LLVM that the operands do not overlap, also after inlining. These are loops and not closures: a
// closure is compiled without the features of its caller, and is not always inlined into it.
//
// Indices are not checked: a loop that may end in a panic leaves its last vectors to scalar code.
/// # Safety
/// All slices are of one length.
#[inline(always)]
unsafe fn fold<L: Lanes, const N: usize>(acc: &mut [L::Item], srcs: [&[L::Item]; N]) {
    for (i, acc) in acc.iter_mut().enumerate() {
        let mut a = L::begin(*acc);
        for src in srcs {
            // SAFETY: `i` is an index of `acc`, and the caller promises that all slices are of one length.
            a = L::step(*unsafe { src.get_unchecked(i) }, a);
        }
        *acc = L::end(a);
    }
}

/// The end of a fold: its accumulator becomes an item.
trait Ending<L: Lanes>: Copy {
    fn end(self, acc: L::Acc) -> L::Item;
}

/// The sum as it is.
#[derive(Clone, Copy)]
struct Undivided;

impl<L: Lanes> Ending<L> for Undivided {
    #[inline(always)]
    fn end(self, acc: L::Acc) -> L::Item {
        L::end(acc)
    }
}

/// The sum divided by a rank count.
#[derive(Clone, Copy)]
struct DividedBy(f32);

impl<L: Average> Ending<L> for DividedBy {
    #[inline(always)]
    fn end(self, acc: L::Acc) -> L::Item {
        L::end(L::over(acc, self.0))
    }
}

/// # Safety
/// All slices are of one length.
#[inline(always)]
unsafe fn join<L: Lanes, E: Ending<L>, const N: usize>(
    dst: &mut [L::Item],
    first: &[L::Item],
    srcs: [&[L::Item]; N],
    ending: E,
) {
    for (dst, (i, first)) in dst.iter_mut().zip(first.iter().enumerate()) {
        let mut a = L::begin(*first);
        for src in srcs {
            // SAFETY: `i` is an index of `first`, and the caller promises that all slices are of one length.
            a = L::step(*unsafe { src.get_unchecked(i) }, a);
        }
        *dst = ending.end(a);
    }
}

/// # Safety
/// `at` points to `N` pointers, each aligned and valid for `len` items for as long as the slices live.
#[inline(always)]
unsafe fn slices<'a, T, const N: usize>(at: *const *const u8, len: usize) -> [&'a [T]; N] {
    let mut slices = [&[][..]; N];
    for (k, slice) in slices.iter_mut().enumerate() {
        // SAFETY: the caller promises it.
        *slice = unsafe { std::slice::from_raw_parts(at.add(k).read().cast::<T>(), len) };
    }
    slices
}

#[inline(always)]
fn divide<D: Divide>(acc: &mut [D], nranks: u32) {
    for a in acc {
        *a = a.divide(nranks);
    }
}

/// Returns the elements after the last whole item, as an item whose other elements are 0.
///
/// # Safety
/// `at` is valid for `len` items; the `bytes` bytes after them are initialized and fewer than those of an item.
#[inline(always)]
unsafe fn rest<T: Copy>(at: *const u8, len: usize, bytes: usize) -> T {
    // SAFETY: any bits are an item; the caller promises that the bytes are valid.
    unsafe {
        let mut item = std::mem::zeroed::<T>();
        let from = at.add(len * size_of::<T>());
        std::ptr::copy_nonoverlapping(from, (&raw mut item).cast(), bytes);
        item
    }
}

/// Defines the three entry points, compiled for one instruction set.
macro_rules! instruction_set {
    ($module:ident $(, #[$attribute:meta])?) => {
        mod $module {
            use super::{
                Average, Averages, Combine, Divide, DividedBy, Ending, Lanes, Loops, Narrow,
                Undivided, WideLoops, rest, slices,
            };
            use crate::wide;
            use std::ptr::copy_nonoverlapping;
            use std::slice::{from_raw_parts, from_raw_parts_mut};

            $(#[$attribute])?
            unsafe fn fold<L: Lanes, const N: usize>(
                acc: *mut u8,
                srcs: *const *const u8,
                len: usize,
            ) {
                let (items, left) = (len / L::ELEMENTS, len % L::ELEMENTS);
                // SAFETY: the caller gives `len` aligned elements at `acc` and at each of `N` sources,
                // which `acc` does not overlap.
                unsafe {
                    let whole = from_raw_parts_mut(acc.cast::<L::Item>(), items);
                    super::fold::<L, N>(whole, slices(srcs, items));
                    if left > 0 {
                        last::<L, _, N>(acc, acc, (srcs, Undivided), items, left);
                    }
                }
            }

            $(#[$attribute])?
            unsafe fn join<L: Lanes, const N: usize>(
                dst: *mut u8,
                srcs: *const *const u8,
                len: usize,
            ) {
                // SAFETY: the caller's promise.
                unsafe { ended::<L, _, N>(dst, srcs, len, Undivided) };
            }

            $(#[$attribute])?
            unsafe fn average<L: Average, const N: usize>(
                dst: *mut u8,
                srcs: *const *const u8,
                len: usize,
                nranks: u32,
            ) {
                // SAFETY: the caller's promise.
                unsafe { ended::<L, _, N>(dst, srcs, len, DividedBy(nranks as f32)) };
            }

            $(#[$attribute])?
            unsafe fn ended<L: Lanes, E: Ending<L>, const N: usize>(
                dst: *mut u8,
                srcs: *const *const u8,
                len: usize,
                ending: E,
            ) {
                let (items, left) = (len / L::ELEMENTS, len % L::ELEMENTS);
                // SAFETY: the caller gives `len` aligned elements at `dst` and at each of `1 + N`
                // sources, which `dst` does not overlap.
                unsafe {
                    let [first] = slices(srcs, items);
                    let whole = from_raw_parts_mut(dst.cast::<L::Item>(), items);
                    super::join::<L, E, N>(whole, first, slices(srcs.add(1), items), ending);
                    if left > 0 {
                        let others = (srcs.add(1), ending);
                        last::<L, E, N>(dst, srcs.read(), others, items, left);
                    }
                }
            }

            /// Computes `dst = src op .. first` on the `left` elements after `items`, fewer than an item has.
            $(#[$attribute])?
            unsafe fn last<L: Lanes, E: Ending<L>, const N: usize>(
                dst: *mut u8,
                first: *const u8,
                (srcs, ending): (*const *const u8, E),
                items: usize,
                left: usize,
            ) {
                let bytes = left * (size_of::<L::Item>() / L::ELEMENTS);
                // SAFETY: the callers give `items` items and `left` elements at all pointers; `dst` is written last.
                unsafe {
                    let mut a = L::begin(rest(first, items, bytes));
                    for k in 0..N {
                        a = L::step(rest(srcs.add(k).read(), items, bytes), a);
                    }
                    let item = ending.end(a);
                    let to = dst.add(items * size_of::<L::Item>());
                    copy_nonoverlapping((&raw const item).cast(), to, bytes);
                }
            }

            $(#[$attribute])?
            unsafe fn divide<D: Divide>(acc: *mut u8, len: usize, nranks: u32) {
                // SAFETY: the caller gives `len` aligned elements that no other thread touches.
                unsafe { super::divide::<D>(from_raw_parts_mut(acc.cast(), len), nranks) };
            }

            pub(super) fn loops<L: Lanes, D: Divide>() -> Loops {
                Loops {
                    fold: [fold::<L, 1>, fold::<L, 2>, fold::<L, 3>, fold::<L, 4>],
                    join: [join::<L, 1>, join::<L, 2>, join::<L, 3>, join::<L, 4>],
                    divide: divide::<D>,
                    wide: None,
                }
            }

            $(#[$attribute])?
            unsafe fn widen<T: Narrow>(dst: *mut f32, src: *const u8, len: usize) {
                // SAFETY: the caller gives `len` aligned elements at both, which are apart.
                unsafe {
                    wide::widen::<T>(from_raw_parts_mut(dst, len), from_raw_parts(src.cast(), len));
                }
            }

            $(#[$attribute])?
            unsafe fn step<T: Narrow, O: Combine<f32>>(acc: *mut f32, src: *const u8, len: usize) {
                // SAFETY: the caller gives `len` aligned elements at both, which are apart.
                unsafe {
                    let (acc, src) = (from_raw_parts_mut(acc, len), from_raw_parts(src.cast(), len));
                    wide::step::<T, O>(acc, src);
                }
            }

            $(#[$attribute])?
            unsafe fn step_wide<O: Combine<f32>>(acc: *mut f32, src: *const f32, len: usize) {
                // SAFETY: the caller gives `len` aligned elements at both, which are apart.
                unsafe {
                    wide::step_wide::<O>(from_raw_parts_mut(acc, len), from_raw_parts(src, len));
                }
            }

            $(#[$attribute])?
            unsafe fn narrow<T: Narrow>(dst: *mut u8, src: *const f32, len: usize) {
                // SAFETY: the caller gives `len` aligned elements at both, which are apart.
                unsafe {
                    wide::narrow::<T>(from_raw_parts_mut(dst.cast(), len), from_raw_parts(src, len));
                }
            }

            pub(super) fn wide_loops<L: Lanes, T: Narrow, O: Combine<f32>>() -> WideLoops {
                WideLoops {
                    once: [
                        join::<L, 2>,
                        join::<L, 3>,
                        join::<L, 4>,
                        join::<L, 5>,
                        join::<L, 6>,
                        join::<L, 7>,
                    ],
                    average: None,
                    widen: widen::<T>,
                    step: step::<T, O>,
                    step_wide: step_wide::<O>,
                    narrow: narrow::<T>,
                }
            }

            pub(super) fn averages<L: Average>() -> Averages {
                [
                    average::<L, 0>,
                    average::<L, 1>,
                    average::<L, 2>,
                    average::<L, 3>,
                    average::<L, 4>,
                    average::<L, 5>,
                    average::<L, 6>,
                    average::<L, 7>,
                ]
            }
        }
    };
}

instruction_set!(baseline);
#[cfg(target_arch = "x86_64")]
instruction_set!(avx2, #[target_feature(enable = "avx2,f16c")]);
#[cfg(target_arch = "x86_64")]
instruction_set!(
    avx512,
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,f16c")]
);

/// An instruction set. Multiply and add are never contracted, so all sets give the same bits.
#[derive(Clone, Copy, Debug)]
pub enum InstructionSet {
    /// AVX-512 with bytes and words.
    #[cfg(target_arch = "x86_64")]
    Avx512,
    /// AVX2 with conversions of f16.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// The instructions that the compiler takes for granted.
    Baseline,
}

impl InstructionSet {
    /// Returns the sets that this CPU has, the widest first.
    pub(super) fn supported() -> Vec<Self> {
        let mut sets = Vec::with_capacity(3);
        #[cfg(target_arch = "x86_64")]
        {
            use std::arch::is_x86_feature_detected as has;
            let avx2 = has!("avx2") && has!("f16c");
            if avx2 && has!("avx512f") && has!("avx512bw") && has!("avx512dq") && has!("avx512vl") {
                sets.push(Self::Avx512);
            }
            if avx2 {
                sets.push(Self::Avx2);
            }
        }
        sets.push(Self::Baseline);
        sets
    }

    fn loops<L: Lanes, D: Divide>(self) -> Loops {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => avx512::loops::<L, D>(),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => avx2::loops::<L, D>(),
            Self::Baseline => baseline::loops::<L, D>(),
        }
    }

    fn wide<T: Narrow>(self, op: ReduceOp) -> Option<WideLoops> {
        Some(match op {
            ReduceOp::Sum => self.wide_of::<T, Sum>(),
            ReduceOp::Avg => {
                WideLoops { average: Some(self.averages::<T>()), ..self.wide_of::<T, Sum>() }
            }
            ReduceOp::Prod => self.wide_of::<T, Prod>(),
            ReduceOp::Min => self.wide_of::<T, Min>(),
            ReduceOp::Max => self.wide_of::<T, Max>(),
            _ => return None,
        })
    }

    fn wide_of<T: Narrow, O: Combine<f32>>(self) -> WideLoops {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => avx512::wide_loops::<T::Once512<O>, T, O>(),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => avx2::wide_loops::<T::Once256<O>, T, O>(),
            Self::Baseline => baseline::wide_loops::<T::Once<O>, T, O>(),
        }
    }

    fn averages<T: Narrow>(self) -> Averages {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => avx512::averages::<T::Once512<Sum>>(),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => avx2::averages::<T::Once256<Sum>>(),
            Self::Baseline => baseline::averages::<T::Once<Sum>>(),
        }
    }

    /// Returns the loops of numbers, whose averages are divided as `D`; `None` for the ops of [`Self::bits`].
    fn number<T: Number, D: Divide>(self, op: ReduceOp) -> Option<Loops> {
        Some(match op {
            ReduceOp::Sum | ReduceOp::Avg => self.loops::<Plain<T, Sum>, D>(),
            ReduceOp::Prod => self.loops::<Plain<T, Prod>, D>(),
            ReduceOp::Min => self.loops::<Plain<T, Min>, D>(),
            ReduceOp::Max => self.loops::<Plain<T, Max>, D>(),
            _ => return None,
        })
    }

    /// Returns the loops of bitwise and logical ops on integers; `None` for the ops of [`Self::number`].
    fn bits<T: Whole + Divide>(self, op: ReduceOp) -> Option<Loops> {
        Some(match op {
            ReduceOp::Band => self.loops::<Plain<T, Band>, T>(),
            ReduceOp::Bor => self.loops::<Plain<T, Bor>, T>(),
            ReduceOp::Bxor => self.loops::<Plain<T, Bxor>, T>(),
            ReduceOp::Land => self.loops::<Plain<T, Land>, T>(),
            ReduceOp::Lor => self.loops::<Plain<T, Lor>, T>(),
            ReduceOp::Lxor => self.loops::<Plain<T, Lxor>, T>(),
            _ => return None,
        })
    }

    fn integer<T: Divide, U: Whole + Divide>(self, op: ReduceOp) -> Option<Loops> {
        self.number::<T, T>(op).or_else(|| self.bits::<U>(op))
    }

    fn float<T: Divide>(self, op: ReduceOp) -> Option<Loops>
    where
        FloatExtremum<T, Min>: Lanes,
        FloatExtremum<T, Max>: Lanes,
    {
        match op {
            ReduceOp::Min => Some(self.loops::<FloatExtremum<T, Min>, T>()),
            ReduceOp::Max => Some(self.loops::<FloatExtremum<T, Max>, T>()),
            _ => self.number::<T, T>(op),
        }
    }

    /// Returns the loops of an fp8 type whose largest number, or infinity, has the bits `LARGEST`.
    fn fp8<T: Number, const LARGEST: i8>(self, op: ReduceOp) -> Option<Loops> {
        match op {
            ReduceOp::Min => Some(self.loops::<ByteExtremum<LARGEST, Min>, f32>()),
            ReduceOp::Max => Some(self.loops::<ByteExtremum<LARGEST, Max>, f32>()),
            _ => self.number::<T, f32>(op),
        }
    }

    fn f16<O: Combine<f32> + Combine<f16>>(self) -> Loops {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => avx512::loops::<F16x16<O>, f32>(),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => avx2::loops::<F16x8<O>, f32>(),
            Self::Baseline => baseline::loops::<Plain<f16, O>, f32>(),
        }
    }

    /// Returns the loops of a dtype and op; `None` where the dtype does not have the op.
    pub(super) fn table(self, dtype: DType, op: ReduceOp) -> Option<Loops> {
        let wide = match dtype {
            DType::F16 => self.wide::<f16>(op),
            DType::Bf16 => self.wide::<bf16>(op),
            DType::F8E4M3 => self.wide::<F8E4M3>(op),
            DType::F8E5M2 => self.wide::<F8E5M2>(op),
            _ => None,
        };
        Some(Loops { wide, ..self.narrow(dtype, op)? })
    }

    /// Returns the loops that round after each source.
    fn narrow(self, dtype: DType, op: ReduceOp) -> Option<Loops> {
        const F16: i16 = f16::INFINITY.to_bits() as i16;
        const BF16: i16 = bf16::INFINITY.to_bits() as i16;
        Some(match (dtype, op) {
            (DType::I8, _) => return self.integer::<i8, u8>(op),
            (DType::U8, _) => return self.integer::<u8, u8>(op),
            (DType::I32, _) => return self.integer::<i32, u32>(op),
            (DType::U32, _) => return self.integer::<u32, u32>(op),
            (DType::I64, _) => return self.integer::<i64, u64>(op),
            (DType::U64, _) => return self.integer::<u64, u64>(op),
            (DType::F32, _) => return self.float::<f32>(op),
            (DType::F64, _) => return self.float::<f64>(op),
            (DType::F8E4M3, _) => return self.fp8::<F8E4M3, { F8E4M3::LARGEST as i8 }>(op),
            (DType::F8E5M2, _) => return self.fp8::<F8E5M2, { F8E5M2::INFINITY as i8 }>(op),
            (DType::F16, ReduceOp::Sum | ReduceOp::Avg) => self.f16::<Sum>(),
            (DType::F16, ReduceOp::Prod) => self.f16::<Prod>(),
            (DType::F16, ReduceOp::Min) => self.loops::<HalfExtremum<F16, Min>, f32>(),
            (DType::F16, ReduceOp::Max) => self.loops::<HalfExtremum<F16, Max>, f32>(),
            (DType::Bf16, ReduceOp::Sum | ReduceOp::Avg) => self.loops::<Bf16<Sum>, f32>(),
            (DType::Bf16, ReduceOp::Prod) => self.loops::<Bf16<Prod>, f32>(),
            (DType::Bf16, ReduceOp::Min) => self.loops::<HalfExtremum<BF16, Min>, f32>(),
            (DType::Bf16, ReduceOp::Max) => self.loops::<HalfExtremum<BF16, Max>, f32>(),
            (DType::F16 | DType::Bf16, _) => return None,
        })
    }
}

impl Loops {
    /// Returns the widest loops that this CPU runs; `None` where the dtype does not have the op.
    pub(super) fn new(dtype: DType, op: ReduceOp) -> Option<Self> {
        InstructionSet::supported()[0].table(dtype, op)
    }
}
