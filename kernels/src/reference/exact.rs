//! The exact result of a reduction, and the error bound of a computed one. The module knows nothing of schedules.
//!
//! Floats are folded in double-double arithmetic (Dekker, Numer. Math. 18, 1971), whose error is far below the
//! bound. The bound is the standard one with unit roundoff u: `|got - exact| <= γ_d Σ|x|` for sums on a tree of
//! depth d, and `γ_{n-1} |Π x|` for products of n factors on any tree (Higham, Accuracy and Stability of Numerical
//! Algorithms, 2nd ed., 2002, sections 3.1 and 4.2). There `γ_k = k u / (1 - k u)`; here it is `(1 + u)^k - 1`, which is
//! smaller, and holds for the u of fp8 with any k. The division of `avg` is one step more.

use float8::{F8E4M3, F8E5M2};
use half::{bf16, f16};
use roundelay_core::dtype::{DType, ReduceOp};

/// An unevaluated sum of two f64, `|low| <= ulp(high) / 2`.
#[derive(Clone, Copy)]
struct Double {
    high: f64,
    low: f64,
}

impl Double {
    fn normalised(high: f64, low: f64) -> Self {
        // An infinity or NaN has no remainder: that of its operands is NaN.
        let sum = if high.is_finite() { high + low } else { high };
        Self { high: sum, low: if sum.is_finite() { low - (sum - high) } else { 0.0 } }
    }

    fn plus(self, x: f64) -> Self {
        let sum = self.high + x;
        let part = sum - self.high;
        let error = (self.high - (sum - part)) + (x - part);
        Self::normalised(sum, error + self.low)
    }

    fn times(self, x: f64) -> Self {
        let product = self.high * x;
        let error = self.high.mul_add(x, -product);
        Self::normalised(product, self.low.mul_add(x, error))
    }

    fn over(self, n: f64) -> Self {
        let quotient = self.high / n;
        let rest = (-quotient).mul_add(n, self.high) + self.low;
        Self::normalised(quotient, rest / n)
    }
}

/// One element of a result.
#[derive(Clone, Copy)]
pub(super) enum Exact {
    /// The bits of the only right result.
    Bits(u64),
    /// The exact value, and the value that the relative error refers to.
    Near { high: f64, low: f64, scale: f64 },
}

/// Returns one element, widened without loss: integers as bits, floats as f64.
pub(super) fn bits_at(dtype: DType, bytes: &[u8], at: usize) -> u64 {
    let size = dtype.size();
    match bytes[at * size..][..size] {
        [a] => a.into(),
        [a, b] => u16::from_ne_bytes([a, b]).into(),
        [a, b, c, d] => u32::from_ne_bytes([a, b, c, d]).into(),
        [a, b, c, d, e, f, g, h] => u64::from_ne_bytes([a, b, c, d, e, f, g, h]),
        _ => unreachable!("{dtype} has {size} bytes"),
    }
}

/// Writes one element, given by its bits.
pub(super) fn put_bits(dtype: DType, bytes: &mut [u8], at: usize, bits: u64) {
    let (size, wide) = (dtype.size(), bits.to_le_bytes());
    let wide = if cfg!(target_endian = "big") { reversed(wide, size) } else { wide };
    bytes[at * size..][..size].copy_from_slice(&wide[..size]);
}

/// Returns an element as text.
pub(super) fn shown(dtype: DType, bits: u64) -> String {
    match dtype {
        _ if dtype.is_float() => float(dtype, bits).to_string(),
        _ if is_signed(dtype) => signed(dtype, bits).to_string(),
        _ => bits.to_string(),
    }
}

fn reversed(mut bytes: [u8; 8], size: usize) -> [u8; 8] {
    bytes[..size].reverse();
    bytes
}

fn float(dtype: DType, bits: u64) -> f64 {
    match dtype {
        DType::F16 => f16::from_bits(bits as u16).to_f64(),
        DType::Bf16 => bf16::from_bits(bits as u16).to_f64(),
        DType::F32 => f64::from(f32::from_bits(bits as u32)),
        DType::F8E4M3 => F8E4M3::from_bits(bits as u8).to_f64(),
        DType::F8E5M2 => F8E5M2::from_bits(bits as u8).to_f64(),
        _ => f64::from_bits(bits),
    }
}

fn signed(dtype: DType, bits: u64) -> i64 {
    match dtype {
        DType::I8 => i64::from(bits as i8),
        DType::I32 => i64::from(bits as i32),
        _ => bits as i64,
    }
}

fn is_signed(dtype: DType) -> bool {
    matches!(dtype, DType::I8 | DType::I32 | DType::I64)
}

/// Returns the lowest bits, as many as the dtype has.
fn wrapped(dtype: DType, bits: u64) -> u64 {
    bits & (u64::MAX >> (64 - 8 * dtype.size()))
}

/// Returns the reduction of one element of every rank, given by their bits. A single element is returned unchanged.
pub(super) fn reduce(dtype: DType, op: ReduceOp, elements: &[u64]) -> Exact {
    let (all, not_0) = (elements.iter().copied(), elements.iter().filter(|bits| **bits != 0));
    match op {
        _ if op.is_for_integers() && elements.len() == 1 => Exact::Bits(elements[0]),
        ReduceOp::Band => Exact::Bits(wrapped(dtype, all.fold(u64::MAX, |a, x| a & x))),
        ReduceOp::Bor => Exact::Bits(all.fold(0, |a, x| a | x)),
        ReduceOp::Bxor => Exact::Bits(all.fold(0, |a, x| a ^ x)),
        ReduceOp::Land => Exact::Bits(u64::from(not_0.count() == elements.len())),
        ReduceOp::Lor => Exact::Bits(u64::from(not_0.count() > 0)),
        ReduceOp::Lxor => Exact::Bits(not_0.count() as u64 % 2),
        ReduceOp::Min | ReduceOp::Max => {
            let better = |a: u64, b: u64| if wins(dtype, op, b, a) { b } else { a };
            Exact::Bits(elements.iter().copied().reduce(better).unwrap_or(0))
        }
        _ if dtype.is_float() => near(dtype, op, elements),
        ReduceOp::Prod => {
            Exact::Bits(wrapped(dtype, elements.iter().fold(1, |a, x| a.wrapping_mul(*x))))
        }
        ReduceOp::Sum | ReduceOp::Avg => {
            let sum = wrapped(dtype, elements.iter().fold(0, |a, x| a.wrapping_add(*x)));
            let n = if op == ReduceOp::Avg { elements.len() as u64 } else { 1 };
            let result =
                if is_signed(dtype) { (signed(dtype, sum) / n as i64) as u64 } else { sum / n };
            Exact::Bits(wrapped(dtype, result))
        }
    }
}

/// Whether `b` replaces `a`: a NaN replaces everything, -0 lies below +0.
fn wins(dtype: DType, op: ReduceOp, b: u64, a: u64) -> bool {
    let less = |x: u64, y: u64| {
        if dtype.is_float() {
            float(dtype, x).total_cmp(&float(dtype, y)).is_lt()
        } else if is_signed(dtype) {
            signed(dtype, x) < signed(dtype, y)
        } else {
            x < y
        }
    };
    let nan = |x| dtype.is_float() && float(dtype, x).is_nan();
    !nan(a) && (nan(b) || if op == ReduceOp::Min { less(b, a) } else { less(a, b) })
}

fn near(dtype: DType, op: ReduceOp, elements: &[u64]) -> Exact {
    let values = elements.iter().map(|&bits| float(dtype, bits));
    if op == ReduceOp::Prod {
        let exact = values.fold(Double { high: 1.0, low: 0.0 }, Double::times);
        return Exact::Near { high: exact.high, low: exact.low, scale: exact.high.abs() };
    }
    let n = if op == ReduceOp::Avg { elements.len() as f64 } else { 1.0 };
    let scale = values.clone().map(f64::abs).sum::<f64>() / n;
    let exact = values.fold(Double { high: 0.0, low: 0.0 }, Double::plus).over(n);
    Exact::Near { high: exact.high, low: exact.low, scale }
}

impl Exact {
    /// Rounded to the dtype.
    pub(super) fn bits(self, dtype: DType) -> u64 {
        match self {
            Self::Bits(bits) => bits,
            Self::Near { high, .. } => match dtype {
                DType::F16 => u64::from(f16::from_f64(high).to_bits()),
                DType::Bf16 => u64::from(bf16::from_f64(high).to_bits()),
                DType::F32 => u64::from((high as f32).to_bits()),
                DType::F8E4M3 => u64::from(F8E4M3::from_f64(high).to_bits()),
                DType::F8E5M2 if high.is_infinite() => {
                    0x7c | (u64::from(high.is_sign_negative()) << 7)
                }
                DType::F8E5M2 => u64::from(F8E5M2::from_f64(high).to_bits()),
                _ => high.to_bits(),
            },
        }
    }

    /// Whether `got` can result within a tolerance.
    pub(super) fn admits(self, within: &Tolerance, got: u64) -> bool {
        let Tolerance { dtype, gamma, absolute, largest } = *within;
        let (high, low, scale) = match self {
            Self::Bits(bits) => {
                let nan = |bits| dtype.is_float() && float(dtype, bits).is_nan();
                return got == bits || nan(got) && nan(bits);
            }
            Self::Near { high, low, scale } => (high, low, scale),
        };
        let value = float(dtype, got);
        if !high.is_finite() {
            return value == high || value.is_nan() && high.is_nan();
        }
        let bound = gamma * scale + absolute;
        // A result that overflows is infinite, or in fp8 the largest number.
        let saturates = matches!(dtype, DType::F8E4M3 | DType::F8E5M2);
        if value.is_infinite() || saturates && value.abs() == largest {
            let overflows = high.abs() + bound >= largest;
            return value.is_infinite() != saturates
                && value.signum() == high.signum()
                && overflows;
        }
        ((value - high) - low).abs() <= bound
    }
}

/// The largest error of a result of some consecutive roundings.
#[derive(Clone, Copy)]
pub(super) struct Tolerance {
    dtype: DType,
    /// The relative error.
    gamma: f64,
    /// The error of subnormal results.
    absolute: f64,
    /// The largest finite number.
    largest: f64,
}

impl Tolerance {
    pub(super) fn new(dtype: DType, op: ReduceOp, steps: u32) -> Self {
        let (roundoff, tiniest, largest) = limits(dtype);
        let steps = f64::from(steps + u32::from(op == ReduceOp::Avg));
        let gamma = (steps * roundoff.ln_1p()).exp_m1();
        // Each step of a product or division errs on subnormal results by half the smallest subnormal.
        let absolute = if op == ReduceOp::Sum { 0.0 } else { steps * tiniest };
        Self { dtype, gamma, absolute, largest }
    }
}

/// Unit roundoff, smallest subnormal, largest finite number.
fn limits(dtype: DType) -> (f64, f64, f64) {
    match dtype {
        DType::F16 => (2f64.powi(-11), 2f64.powi(-24), f16::MAX.to_f64()),
        DType::Bf16 => (2f64.powi(-8), 2f64.powi(-133), bf16::MAX.to_f64()),
        DType::F32 => (2f64.powi(-24), 2f64.powi(-149), f64::from(f32::MAX)),
        DType::F8E4M3 => (2f64.powi(-4), 2f64.powi(-9), 448.0),
        DType::F8E5M2 => (2f64.powi(-3), 2f64.powi(-16), 57344.0),
        _ => (2f64.powi(-53), f64::from_bits(1), f64::MAX),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn f32s(values: &[f32]) -> Vec<u64> {
        values.iter().map(|v| u64::from(v.to_bits())).collect()
    }

    #[test]
    fn sums_are_exact_where_a_plain_fold_is_not() {
        let exact = reduce(DType::F64, ReduceOp::Sum, &[1e16f64, 1.0, -1e16].map(f64::to_bits));
        assert_eq!(f64::from_bits(exact.bits(DType::F64)), 1.0);
    }

    #[test]
    fn the_bound_admits_rounding_and_nothing_else() {
        let (dtype, op) = (DType::F32, ReduceOp::Sum);
        let inputs = f32s(&[1.0, 2f32.powi(-24), 2f32.powi(-24)]);
        let exact = reduce(dtype, op, &inputs);
        let admits =
            |value: f32| exact.admits(&Tolerance::new(dtype, op, 2), value.to_bits().into());
        // A fold from the left rounds both small values away; the exact sum is the next float.
        assert!(admits(1.0) && admits(1.0 + f32::EPSILON));
        assert!(!admits(1.0 + 4.0 * f32::EPSILON) && !admits(1.0 - 2.0 * f32::EPSILON));
        assert!(!admits(f32::NAN) && !admits(f32::INFINITY) && !admits(0.0));
        assert!(
            !exact.admits(&Tolerance::new(dtype, op, 0), 1f32.to_bits().into()),
            "no step, no rounding"
        );
    }

    #[test]
    fn integers_wrap_and_averages_truncate() {
        let bits = |x: i64| x as u64;
        let reduce = |dtype, op, elements: &[u64]| reduce(dtype, op, elements).bits(dtype);
        assert_eq!(reduce(DType::I8, ReduceOp::Sum, &[0x7f, 0x01]), 0x80);
        assert_eq!(reduce(DType::I8, ReduceOp::Avg, &[0xff, 0xfe]), 0xff); // (-1 - 2) / 2 = -1
        assert_eq!(reduce(DType::U8, ReduceOp::Avg, &[0xff, 0x02]), 0x00); // wraps first
        assert_eq!(reduce(DType::I64, ReduceOp::Max, &[bits(-5), 3, bits(-9)]), 3);
        assert_eq!(reduce(DType::U64, ReduceOp::Max, &[bits(-5), 3, bits(-9)]), bits(-5));
        assert_eq!(reduce(DType::F32, ReduceOp::Min, &f32s(&[0.0, -0.0, 0.0])), 0x8000_0000);
    }

    #[test]
    fn bits_and_truth_values_are_those_of_all_elements() {
        let of = |op, elements: &[u64]| reduce(DType::U8, op, elements).bits(DType::U8);
        assert_eq!(of(ReduceOp::Band, &[0b1110, 0b0111, 0b1111]), 0b0110);
        assert_eq!(of(ReduceOp::Bor, &[0b1000, 0b0010, 0b1010]), 0b1010);
        assert_eq!(of(ReduceOp::Bxor, &[0b1100, 0b1010, 0b0001]), 0b0111);
        assert_eq!([of(ReduceOp::Land, &[2, 4, 6]), of(ReduceOp::Land, &[2, 0, 6])], [1, 0]);
        assert_eq!([of(ReduceOp::Lor, &[0, 4, 0]), of(ReduceOp::Lor, &[0, 0])], [1, 0]);
        assert_eq!([of(ReduceOp::Lxor, &[2, 4, 6]), of(ReduceOp::Lxor, &[2, 0, 6])], [1, 0]);
        assert!(ReduceOp::ALL.iter().all(|op| of(*op, &[5]) == 5), "one alone is as it is");
    }

    #[test]
    fn overflow_may_give_infinity_only_near_the_limit() {
        let exact = reduce(DType::F16, ReduceOp::Sum, &[0x7bff, 0x7bff]);
        assert!(exact.admits(&Tolerance::new(DType::F16, ReduceOp::Sum, 1), 0x7c00));
        assert!(!exact.admits(&Tolerance::new(DType::F16, ReduceOp::Sum, 1), 0xfc00));
        let small = reduce(DType::F16, ReduceOp::Sum, &[0x3c00, 0x3c00]);
        assert!(!small.admits(&Tolerance::new(DType::F16, ReduceOp::Sum, 1), 0x7c00));
    }

    #[test]
    fn fp8_saturates_near_the_limit_and_an_infinity_stays() {
        let (e4m3, e5m2, op) = (DType::F8E4M3, DType::F8E5M2, ReduceOp::Sum);
        for (dtype, largest, beyond) in [(e4m3, 0x7e, 0x7f), (e5m2, 0x7b, 0x7c)] {
            let exact = reduce(dtype, op, &[largest, largest]);
            assert_eq!(exact.bits(dtype), largest);
            assert!(exact.admits(&Tolerance::new(dtype, op, 1), largest), "{dtype}");
            assert!(!exact.admits(&Tolerance::new(dtype, op, 1), largest | 0x80), "{dtype}");
            assert!(!exact.admits(&Tolerance::new(dtype, op, 1), beyond), "{dtype}");
            let small = reduce(dtype, op, &[0x38, 0x38]);
            assert!(!small.admits(&Tolerance::new(dtype, op, 1), largest), "{dtype}");
        }
        let infinite = reduce(e5m2, op, &[0xfc, 0x3c]);
        assert_eq!(infinite.bits(e5m2), 0xfc);
        assert!(
            infinite.admits(&Tolerance::new(e5m2, op, 1), 0xfc)
                && !infinite.admits(&Tolerance::new(e5m2, op, 1), 0xfb)
        );
    }
}
