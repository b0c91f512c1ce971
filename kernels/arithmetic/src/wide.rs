//! Folds of floats narrower than f32 that round once, and operands that keep such floats as f32.
//!
//! [`super::lanes`] has the folds that round after each source.

use std::marker::PhantomData;

use half::{bf16, f16};

use super::byte::{F8E4M3, F8E5M2, e4m3_to_f32, e5m2_to_f32, f32_to_e4m3, f32_to_e5m2};
use super::half::{bf16_to_f32, f16_to_f32, f32_to_bf16, f32_to_f16};
#[cfg(target_arch = "x86_64")]
use super::lanes::f16c::{F16x8Once, F16x16Once};
use super::lanes::{Average, Bf16Once, Combine, Lanes};

/// A float narrower than f32.
pub(super) trait Narrow: Copy {
    /// The steps of folds that round once, on any machine.
    type Once<O: Combine<f32>>: Average;
    /// The same by vectors of 256 bits.
    type Once256<O: Combine<f32>>: Average;
    /// The same by vectors of 512 bits.
    type Once512<O: Combine<f32>>: Average;

    /// Converts exactly.
    fn widen(self) -> f32;
    /// Rounds to nearest even, as each op on this type does.
    fn narrow(wide: f32) -> Self;
}

macro_rules! narrow {
    ($($t:ty, $widen:ident, $narrow:ident, [$once:ty, $once256:ty, $once512:ty];)*) => {$(
        impl Narrow for $t {
            type Once<O: Combine<f32>> = $once;
            type Once256<O: Combine<f32>> = $once256;
            type Once512<O: Combine<f32>> = $once512;

            #[inline(always)]
            fn widen(self) -> f32 {
                $widen(self.to_bits())
            }
            #[inline(always)]
            fn narrow(wide: f32) -> Self {
                Self::from_bits($narrow(wide))
            }
        }
    )*};
}

narrow! {
    bf16, bf16_to_f32, f32_to_bf16, [Bf16Once<O>, Bf16Once<O>, Bf16Once<O>];
    F8E4M3, e4m3_to_f32, f32_to_e4m3, [Once<Self, O>, Once<Self, O>, Once<Self, O>];
    F8E5M2, e5m2_to_f32, f32_to_e5m2, [Once<Self, O>, Once<Self, O>, Once<Self, O>];
}

#[cfg(target_arch = "x86_64")]
narrow! {
    f16, f16_to_f32, f32_to_f16, [Once<Self, O>, F16x8Once<O>, F16x16Once<O>];
}

#[cfg(not(target_arch = "x86_64"))]
narrow! {
    f16, f16_to_f32, f32_to_f16, [Once<Self, O>, Once<Self, O>, Once<Self, O>];
}

/// The steps of a fold that rounds once, after its last source.
pub(super) struct Once<T, O>(PhantomData<(T, O)>);

impl<T: Narrow, O: Combine<f32>> Lanes for Once<T, O> {
    type Item = T;
    type Acc = f32;
    const ELEMENTS: usize = 1;

    #[inline(always)]
    fn begin(first: T) -> f32 {
        first.widen()
    }
    #[inline(always)]
    fn step(src: T, acc: f32) -> f32 {
        O::combine(src.widen(), acc)
    }
    #[inline(always)]
    fn end(acc: f32) -> T {
        T::narrow(acc)
    }
}

impl<T: Narrow, O: Combine<f32>> Average for Once<T, O> {
    #[inline(always)]
    fn over(acc: f32, nranks: f32) -> f32 {
        acc / nranks
    }
}

/// The most sources of a fold that rounds once in one pass.
pub(super) const SOURCES: usize = 8;

/// Folds that divide by a rank count and then round, as the folds of [`WideLoops::once`] round; by the number of sources
/// minus one.
pub(super) type Averages = [unsafe fn(*mut u8, *const *const u8, usize, u32); SOURCES];

/// The loops for one narrow type and op. Lengths are in elements, and no operand overlaps a destination.
#[derive(Clone, Copy)]
pub(super) struct WideLoops {
    /// Folds that round once, whose first source takes the place of the destination; by the number of sources minus
    /// three.
    pub(super) once: [unsafe fn(*mut u8, *const *const u8, usize); SOURCES - 2],
    /// The averages, where the op is `avg`.
    pub(super) average: Option<Averages>,
    /// Converts narrow floats to f32.
    pub(super) widen: unsafe fn(*mut f32, *const u8, usize),
    /// Folds narrow floats into f32.
    pub(super) step: unsafe fn(*mut f32, *const u8, usize),
    /// Folds f32 into f32.
    pub(super) step_wide: unsafe fn(*mut f32, *const f32, usize),
    /// Rounds f32.
    pub(super) narrow: unsafe fn(*mut u8, *const f32, usize),
}

#[inline(always)]
pub(super) fn widen<T: Narrow>(dst: &mut [f32], src: &[T]) {
    for (dst, src) in dst.iter_mut().zip(src) {
        *dst = src.widen();
    }
}

#[inline(always)]
pub(super) fn step<T: Narrow, O: Combine<f32>>(acc: &mut [f32], src: &[T]) {
    for (acc, src) in acc.iter_mut().zip(src) {
        *acc = O::combine(src.widen(), *acc);
    }
}

#[inline(always)]
pub(super) fn step_wide<O: Combine<f32>>(acc: &mut [f32], src: &[f32]) {
    for (acc, src) in acc.iter_mut().zip(src) {
        *acc = O::combine(*src, *acc);
    }
}

#[inline(always)]
pub(super) fn narrow<T: Narrow>(dst: &mut [T], src: &[f32]) {
    for (dst, src) in dst.iter_mut().zip(src) {
        *dst = T::narrow(*src);
    }
}
