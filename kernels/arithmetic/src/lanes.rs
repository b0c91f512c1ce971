//! The steps of a loop on its items: load, combine in registers, store. An item is one element or a few, and an
//! accumulator stays in the form in which the next step needs it: rounded, but not yet packed.
//!
//! [`super::number`] defines the results; the forms here give the same bits with fewer instructions.

use std::marker::PhantomData;

use super::byte::NAN;
use super::number::{Number, Whole};

/// The steps for one dtype and op.
pub(super) trait Lanes {
    /// The type that is loaded and stored: any bits are a value, and its alignment is that of the element.
    type Item: Copy;
    /// The type that is kept in registers between the first load and the store.
    type Acc: Copy;
    /// Elements of an item.
    const ELEMENTS: usize;

    fn begin(first: Self::Item) -> Self::Acc;
    fn step(src: Self::Item, acc: Self::Acc) -> Self::Acc;
    fn end(acc: Self::Acc) -> Self::Item;
}

/// Steps whose accumulator is f32 to its end, so that an average is divided before it is rounded.
pub(super) trait Average: Lanes {
    /// Divides by a rank count.
    fn over(acc: Self::Acc, nranks: f32) -> Self::Acc;
}

/// A reduce op as a type, so that each op has compiled loops of its own.
pub(super) trait Combine<T> {
    fn combine(src: T, acc: T) -> T;
}

macro_rules! ops {
    ($($of:ident: $($name:ident $method:ident)*;)*) => {$($(
        pub(super) struct $name;
        impl<T: $of> Combine<T> for $name {
            #[inline(always)]
            fn combine(src: T, acc: T) -> T {
                src.$method(acc)
            }
        }
    )*)*};
}

ops! {
    Number: Sum sum Prod prod Min min Max max;
    Whole: Band band Bor bor Bxor bxor Land land Lor lor Lxor lxor;
}

/// The steps element by element, as [`Number`] defines them.
pub(super) struct Plain<T, O>(PhantomData<(T, O)>);

impl<T: Number, O: Combine<T>> Lanes for Plain<T, O> {
    type Item = T;
    type Acc = T;
    const ELEMENTS: usize = 1;

    #[inline(always)]
    fn begin(first: T) -> T {
        first
    }
    #[inline(always)]
    fn step(src: T, acc: T) -> T {
        O::combine(src, acc)
    }
    #[inline(always)]
    fn end(acc: T) -> T {
        acc
    }
}

/// The extremum of an op: the smallest or the largest.
pub(super) trait Extreme {
    const LARGEST: bool;
}

impl Extreme for Min {
    const LARGEST: bool = false;
}

impl Extreme for Max {
    const LARGEST: bool = true;
}

/// Minimum and maximum of f32 and f64.
pub(super) struct FloatExtremum<T, O>(PhantomData<(T, O)>);

macro_rules! float_extrema {
    ($($t:ty)*) => {$(
        impl Lanes for FloatExtremum<$t, Min> {
            type Item = $t;
            type Acc = $t;
            const ELEMENTS: usize = 1;

            #[inline(always)]
            fn begin(first: $t) -> $t {
                first
            }
            #[inline(always)]
            fn step(src: $t, acc: $t) -> $t {
                // Each is one instruction that returns its second operand for equal numbers and for NaN. The two
                // results differ only there: -0 with +0 gives -0, and a NaN with any value gives a NaN.
                let one = if src < acc { src } else { acc };
                let other = if acc < src { acc } else { src };
                <$t>::from_bits(one.to_bits() | other.to_bits())
            }
            #[inline(always)]
            fn end(acc: $t) -> $t {
                if acc.is_nan() { <$t>::NAN } else { acc }
            }
        }

        impl Lanes for FloatExtremum<$t, Max> {
            type Item = $t;
            type Acc = $t;
            const ELEMENTS: usize = 1;

            #[inline(always)]
            fn begin(first: $t) -> $t {
                first
            }
            #[inline(always)]
            fn step(src: $t, acc: $t) -> $t {
                let one = if src > acc { src } else { acc };
                let other = if acc > src { acc } else { src };
                // This works as for the minimum, but a NaN with another value need not give a NaN.
                let number = <$t>::from_bits(one.to_bits() & other.to_bits());
                if src.is_nan() | acc.is_nan() { <$t>::NAN } else { number }
            }
            #[inline(always)]
            fn end(acc: $t) -> $t {
                acc
            }
        }
    )*};
}

float_extrema! { f32 f64 }

/// Minimum and maximum of floats of 16 and 8 bits as integers of the same order: a NaN is beyond `$largest`, and `$nan`
/// is the canonical one.
macro_rules! small_extrema {
    ($($name:ident $bits:ty, $largest:ident $nan:expr;)*) => {$(
        pub(super) struct $name<const $largest: $bits, O>(PhantomData<O>);

        impl<const $largest: $bits, O: Extreme> $name<$largest, O> {
            /// The key of all NaNs, beyond every number, so that NaNs win.
            const NAN: $bits = if O::LARGEST { <$bits>::MAX } else { <$bits>::MIN };

            /// Turns bits into a key of the same order and back; -0 is just below +0.
            #[inline(always)]
            fn flip(bits: $bits) -> $bits {
                bits ^ ((bits >> (<$bits>::BITS - 1)) & <$bits>::MAX)
            }
        }

        impl<const $largest: $bits, O: Extreme> Lanes for $name<$largest, O> {
            type Item = $bits;
            type Acc = $bits;
            const ELEMENTS: usize = 1;

            #[inline(always)]
            fn begin(first: $bits) -> $bits {
                if first & <$bits>::MAX > $largest { Self::NAN } else { Self::flip(first) }
            }
            #[inline(always)]
            fn step(src: $bits, acc: $bits) -> $bits {
                let src = Self::begin(src);
                if O::LARGEST { Ord::max(src, acc) } else { Ord::min(src, acc) }
            }
            #[inline(always)]
            fn end(acc: $bits) -> $bits {
                if acc == Self::NAN { $nan } else { Self::flip(acc) }
            }
        }
    )*};
}

small_extrema! {
    // The first mantissa bit alone gives the canonical quiet NaN.
    HalfExtremum i16, INFINITY INFINITY | (((INFINITY & -INFINITY) as u16) >> 1) as i16;
    ByteExtremum i8, LARGEST NAN as i8;
}

/// Two bf16 in one word: a mask or a shift turns each into an f32, without a shuffle.
#[derive(Clone, Copy)]
#[repr(C, packed(2))]
pub(super) struct Bf16Pair(u32);

/// Sum and product of bf16.
pub(super) struct Bf16<O>(PhantomData<O>);

const HIGH: u32 = 0xffff_0000;

/// Rounds to the nearest bf16, ties to even, as an f32. A NaN stays a NaN: a NaN computed from bf16 has a low half of
/// 0.
#[inline(always)]
fn round_to_bf16(value: f32) -> f32 {
    let bits = value.to_bits();
    let carry = if bits & 0x1_0000 == 0 { 0x7fff } else { 0x8000 };
    f32::from_bits(bits.wrapping_add(carry) & HIGH)
}

#[inline(always)]
fn quiet_bf16(value: f32) -> u32 {
    if value.is_nan() { 0x7fc0_0000 } else { value.to_bits() }
}

impl<O: Combine<f32>> Lanes for Bf16<O> {
    type Item = Bf16Pair;
    type Acc = (f32, f32);
    const ELEMENTS: usize = 2;

    #[inline(always)]
    fn begin(first: Bf16Pair) -> (f32, f32) {
        (f32::from_bits(first.0 << 16), f32::from_bits(first.0 & HIGH))
    }
    #[inline(always)]
    fn step(src: Bf16Pair, acc: (f32, f32)) -> (f32, f32) {
        let exact = Bf16Once::<O>::step(src, acc);
        (round_to_bf16(exact.0), round_to_bf16(exact.1))
    }
    #[inline(always)]
    fn end(acc: (f32, f32)) -> Bf16Pair {
        Bf16Pair((quiet_bf16(acc.0) >> 16) | quiet_bf16(acc.1))
    }
}

/// Folds of bf16 that round once.
pub(super) struct Bf16Once<O>(PhantomData<O>);

impl<O: Combine<f32>> Lanes for Bf16Once<O> {
    type Item = Bf16Pair;
    type Acc = (f32, f32);
    const ELEMENTS: usize = 2;

    #[inline(always)]
    fn begin(first: Bf16Pair) -> (f32, f32) {
        Bf16::<O>::begin(first)
    }
    #[inline(always)]
    fn step(src: Bf16Pair, acc: (f32, f32)) -> (f32, f32) {
        let src = Self::begin(src);
        (O::combine(src.0, acc.0), O::combine(src.1, acc.1))
    }
    #[inline(always)]
    fn end(acc: (f32, f32)) -> Bf16Pair {
        Bf16::<O>::end((round_to_bf16(acc.0), round_to_bf16(acc.1)))
    }
}

impl<O: Combine<f32>> Average for Bf16Once<O> {
    #[inline(always)]
    fn over(acc: (f32, f32), nranks: f32) -> (f32, f32) {
        (acc.0 / nranks, acc.1 / nranks)
    }
}

/// f16 by the CPU's conversions, a vector at a time.
#[cfg(target_arch = "x86_64")]
pub(super) mod f16c {
    use std::arch::x86_64::{
        __m128i, __m256, __m256i, __m512, _CMP_UNORD_Q, _MM_FROUND_TO_NEAREST_INT,
        _mm256_blendv_ps, _mm256_cmp_ps, _mm256_cvtph_ps, _mm256_cvtps_ph, _mm256_set1_ps,
        _mm512_cmp_ps_mask, _mm512_cvtph_ps, _mm512_cvtps_ph, _mm512_mask_blend_ps, _mm512_set1_ps,
    };
    use std::marker::PhantomData;
    use std::mem::transmute;

    use super::{Average, Combine, Lanes};

    macro_rules! vectors {
        ($name:ident, $once:ident, $elements:literal, $bits:ty, $floats:ty, $widen:ident, $narrow:ident, |$v:ident| $quiet:expr) => {
            /// Sum and product; only in loops that are compiled for the instructions.
            pub(in super::super) struct $name<O>(PhantomData<O>);

            impl<O> $name<O> {
                #[inline(always)]
                fn vector(floats: [f32; $elements]) -> $floats {
                    // SAFETY: both types have equally many bytes, and any bits are a value.
                    unsafe { transmute(floats) }
                }
                #[inline(always)]
                fn array(floats: $floats) -> [f32; $elements] {
                    // SAFETY: both types have equally many bytes, and any bits are a value.
                    unsafe { transmute(floats) }
                }
            }

            impl<O: Combine<f32>> Lanes for $name<O> {
                type Item = [u16; $elements];
                type Acc = $floats;
                const ELEMENTS: usize = $elements;

                #[inline(always)]
                fn begin(first: [u16; $elements]) -> $floats {
                    // SAFETY: both types have equally many bytes, and any bits are a value; the loops are compiled for
                    // machines that have the instruction.
                    unsafe { $widen(transmute::<[u16; $elements], $bits>(first)) }
                }
                #[inline(always)]
                fn step(src: [u16; $elements], acc: $floats) -> $floats {
                    let exact = $once::<O>::step(src, acc);
                    // SAFETY: the loops are compiled for machines that have the instructions.
                    unsafe { $widen($narrow::<_MM_FROUND_TO_NEAREST_INT>(exact)) }
                }
                #[inline(always)]
                fn end($v: $floats) -> [u16; $elements] {
                    // SAFETY: both types have equally many bytes, and the loops are compiled for machines that have the
                    // instruction.
                    unsafe {
                        transmute::<$bits, [u16; $elements]>($narrow::<_MM_FROUND_TO_NEAREST_INT>(
                            $quiet,
                        ))
                    }
                }
            }

            /// Folds that round once.
            pub(in super::super) struct $once<O>(PhantomData<O>);

            impl<O: Combine<f32>> Lanes for $once<O> {
                type Item = [u16; $elements];
                type Acc = $floats;
                const ELEMENTS: usize = $elements;

                #[inline(always)]
                fn begin(first: [u16; $elements]) -> $floats {
                    $name::<O>::begin(first)
                }
                #[inline(always)]
                fn step(src: [u16; $elements], acc: $floats) -> $floats {
                    let src = $name::<O>::array(Self::begin(src));
                    let mut exact = $name::<O>::array(acc);
                    for i in 0..$elements {
                        exact[i] = O::combine(src[i], exact[i]);
                    }
                    $name::<O>::vector(exact)
                }
                #[inline(always)]
                fn end(acc: $floats) -> [u16; $elements] {
                    $name::<O>::end(acc)
                }
            }

            impl<O: Combine<f32>> Average for $once<O> {
                #[inline(always)]
                fn over(acc: $floats, nranks: f32) -> $floats {
                    let mut quotients = $name::<O>::array(acc);
                    for quotient in &mut quotients {
                        *quotient /= nranks;
                    }
                    $name::<O>::vector(quotients)
                }
            }
        };
    }

    // The conversion keeps the payload of a NaN: these expressions make all NaNs canonical.
    vectors!(F16x8, F16x8Once, 8, __m128i, __m256, _mm256_cvtph_ps, _mm256_cvtps_ph, |v| {
        let nan = _mm256_cmp_ps::<_CMP_UNORD_Q>(v, v);
        _mm256_blendv_ps(v, _mm256_set1_ps(f32::NAN), nan)
    });
    vectors!(F16x16, F16x16Once, 16, __m256i, __m512, _mm512_cvtph_ps, _mm512_cvtps_ph, |v| {
        let nan = _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(v, v);
        _mm512_mask_blend_ps(nan, v, _mm512_set1_ps(f32::NAN))
    });
}
