//! The arithmetic of one element, for each dtype: no loops, no branches.

use half::{bf16, f16};

use super::byte::{F8E4M3, F8E5M2, e4m3_to_f32, e5m2_to_f32, f32_to_e4m3, f32_to_e5m2};
use super::half::{bf16_to_f32, f16_to_f32, f32_to_bf16, f32_to_f16};

/// The arithmetic of a reduction on two elements.
pub(super) trait Number: Copy {
    fn sum(self, other: Self) -> Self;
    fn prod(self, other: Self) -> Self;
    fn min(self, other: Self) -> Self;
    fn max(self, other: Self) -> Self;
}

/// The arithmetic of `avg` on a complete sum. Floats narrower than f32 are divided as f32, before they are rounded.
pub(super) trait Divide: Number {
    /// Division by a rank count; integers truncate toward zero.
    fn divide(self, nranks: u32) -> Self;
}

/// The further ops of integers. Signs make no difference: the unsigned types serve for the signed ones.
pub(super) trait Whole: Number {
    fn band(self, other: Self) -> Self;
    fn bor(self, other: Self) -> Self;
    fn bxor(self, other: Self) -> Self;
    fn land(self, other: Self) -> Self;
    fn lor(self, other: Self) -> Self;
    fn lxor(self, other: Self) -> Self;
}

macro_rules! integers {
    ($($t:ty, |$x:ident, $n:ident| $divide:expr;)*) => {$(
        impl Number for $t {
            #[inline(always)]
            fn sum(self, other: Self) -> Self {
                self.wrapping_add(other)
            }
            #[inline(always)]
            fn prod(self, other: Self) -> Self {
                self.wrapping_mul(other)
            }
            #[inline(always)]
            fn min(self, other: Self) -> Self {
                Ord::min(self, other)
            }
            #[inline(always)]
            fn max(self, other: Self) -> Self {
                Ord::max(self, other)
            }
        }

        impl Divide for $t {
            #[inline(always)]
            fn divide(self, nranks: u32) -> Self {
                let ($x, $n) = (self, nranks);
                $divide as $t
            }
        }
    )*};
}

// Up to 32 bits the f64 quotient is at least 2^-32 (relative) away from any integer that it does not equal, so
// truncating it is exact; and it vectorises, which integer division does not.
integers! {
    i8, |x, n| f64::from(x) / f64::from(n);
    u8, |x, n| f64::from(x) / f64::from(n);
    i32, |x, n| f64::from(x) / f64::from(n);
    u32, |x, n| f64::from(x) / f64::from(n);
    i64, |x, n| x / i64::from(n);
    u64, |x, n| x / u64::from(n);
}

macro_rules! wholes {
    ($($t:ty)*) => {$(
        impl Whole for $t {
            #[inline(always)]
            fn band(self, other: Self) -> Self {
                self & other
            }
            #[inline(always)]
            fn bor(self, other: Self) -> Self {
                self | other
            }
            #[inline(always)]
            fn bxor(self, other: Self) -> Self {
                self ^ other
            }
            #[inline(always)]
            fn land(self, other: Self) -> Self {
                Self::from(self != 0) & Self::from(other != 0)
            }
            #[inline(always)]
            fn lor(self, other: Self) -> Self {
                Self::from(self | other != 0)
            }
            #[inline(always)]
            fn lxor(self, other: Self) -> Self {
                Self::from(self != 0) ^ Self::from(other != 0)
            }
        }
    )*};
}

wholes! { u8 u32 u64 }

macro_rules! floats {
    ($($t:ty)*) => {$(
        impl Number for $t {
            #[inline(always)]
            fn sum(self, other: Self) -> Self {
                self + other
            }
            #[inline(always)]
            fn prod(self, other: Self) -> Self {
                self * other
            }
            #[inline(always)]
            fn min(self, other: Self) -> Self {
                let less = if self < other { self } else { other };
                // Equal numbers have equal bits, except for zeros, whose sign decides.
                let equal = Self::from_bits(self.to_bits() | other.to_bits());
                let ordered = if self == other { equal } else { less };
                if self.is_nan() | other.is_nan() { self + other } else { ordered }
            }
            #[inline(always)]
            fn max(self, other: Self) -> Self {
                let more = if self > other { self } else { other };
                let equal = Self::from_bits(self.to_bits() & other.to_bits());
                let ordered = if self == other { equal } else { more };
                if self.is_nan() | other.is_nan() { self + other } else { ordered }
            }
        }

        impl Divide for $t {
            #[inline(always)]
            fn divide(self, nranks: u32) -> Self {
                self / nranks as Self
            }
        }
    )*};
}

floats! { f32 f64 }

macro_rules! narrow {
    ($($t:ty, $widen:ident, $narrow:ident;)*) => {$(
        impl Number for $t {
            #[inline(always)]
            fn sum(self, other: Self) -> Self {
                Self::from_bits($narrow($widen(self.to_bits()) + $widen(other.to_bits())))
            }
            #[inline(always)]
            fn prod(self, other: Self) -> Self {
                Self::from_bits($narrow($widen(self.to_bits()) * $widen(other.to_bits())))
            }
            #[inline(always)]
            fn min(self, other: Self) -> Self {
                let (a, b) = ($widen(self.to_bits()), $widen(other.to_bits()));
                Self::from_bits($narrow(Number::min(a, b)))
            }
            #[inline(always)]
            fn max(self, other: Self) -> Self {
                let (a, b) = ($widen(self.to_bits()), $widen(other.to_bits()));
                Self::from_bits($narrow(Number::max(a, b)))
            }
        }
    )*};
}

narrow! {
    f16, f16_to_f32, f32_to_f16;
    bf16, bf16_to_f32, f32_to_bf16;
    F8E4M3, e4m3_to_f32, f32_to_e4m3;
    F8E5M2, e5m2_to_f32, f32_to_e5m2;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn minimum_and_maximum_are_those_of_ieee_754_2019() {
        assert_eq!(Number::min(-0.0f32, 0.0).to_bits(), (-0.0f32).to_bits());
        assert_eq!(Number::min(0.0f32, -0.0).to_bits(), (-0.0f32).to_bits());
        assert_eq!(Number::max(-0.0f64, 0.0).to_bits(), 0);
        assert_eq!(Number::max(0.0f64, -0.0).to_bits(), 0);
        for (a, b) in [(f64::NAN, 1.0), (1.0, f64::NAN), (f64::NAN, f64::INFINITY)] {
            assert!(Number::min(a, b).is_nan() && Number::max(a, b).is_nan());
        }
        assert!(Number::min(f16::NAN, f16::ONE).is_nan());
        assert!(Number::max(bf16::ONE, bf16::NAN).is_nan());
        assert_eq!(Number::min(f16::NEG_ZERO, f16::ZERO).to_bits(), 0x8000);
        assert_eq!(Number::max(2.0f32, -3.0), 2.0);
        assert_eq!(Number::min(f32::NEG_INFINITY, 3.0), f32::NEG_INFINITY);
    }

    #[test]
    fn integer_division_truncates_toward_zero() {
        for n in [1, 2, 3, 5, 7, 1000, 65_537, u32::MAX] {
            let limits = [i32::MIN, i32::MIN + 1, -7, -1, 0, 1, 7, i32::MAX - 1, i32::MAX];
            let multiples = (2..100).flat_map(|k| {
                let m = (i64::from(i32::MAX) / k) as i32;
                [m - 1, m, m + 1, -m]
            });
            for x in limits.into_iter().chain(multiples) {
                assert_eq!(i64::from(x.divide(n)), i64::from(x) / i64::from(n), "{x} / {n}");
                let u = x as u32;
                assert_eq!(u.divide(n), u / n);
            }
            for x in i8::MIN..=i8::MAX {
                assert_eq!(i64::from(x.divide(n)), i64::from(x) / i64::from(n));
            }
        }
        assert_eq!(i64::MIN.divide(3), i64::MIN / 3);
        assert_eq!(u64::MAX.divide(7), u64::MAX / 7);
    }
}
