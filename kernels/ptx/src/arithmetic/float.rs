//! Operations on floats. The NaN that an f32 operation gives has all bits but the sign, as that of the narrower formats;
//! one of f64 passes a source's NaN on, made quiet, and otherwise is the negative quiet one. PTX leaves open which one of
//! two NaNs is passed on; an H200 takes the second one of a sum or a product, and the first one of a quotient.
//!
//! Narrow formats are computed in f64, rounded to odd: a result that is not exact has a last bit of 1, so that the second
//! rounding is that of the exact result.

use super::narrow;
use crate::program::{Clamp, Float, FloatOp, Mode, Rounding};

const NAN32: u32 = 0x7fff_ffff;
const NAN64: u64 = 0xfff8_0000_0000_0000;
const QUIET64: u64 = 0x0008_0000_0000_0000;

/// Returns the bit of the sign.
fn sign(ty: Float) -> u64 {
    1 << (ty.bits() - 1)
}

/// Performs an operation.
pub(super) fn evaluate(op: FloatOp, ty: Float, mode: Mode, from: [u64; 3]) -> u64 {
    match ty {
        Float::F16x2 => halves(op, Float::F16, mode, from),
        Float::Bf16x2 => halves(op, Float::Bf16, mode, from),
        _ => one(op, ty, mode, from.map(|bits| flushed(ty, mode, bits))),
    }
}

fn halves(op: FloatOp, ty: Float, mode: Mode, from: [u64; 3]) -> u64 {
    let [low, high] =
        [0, 16].map(|shift| evaluate(op, ty, mode, from.map(|bits| bits >> shift & 0xffff)));
    high << 16 | low
}

fn one(op: FloatOp, ty: Float, mode: Mode, [a, b, c]: [u64; 3]) -> u64 {
    let magnitude = sign(ty) - 1;
    match op {
        FloatOp::Neg => return (a & (magnitude | sign(ty))) ^ sign(ty),
        FloatOp::Abs if ty == Float::F32 && f32::from_bits(a as u32).is_nan() => {
            return NAN32.into();
        }
        FloatOp::Abs => return a & magnitude,
        FloatOp::CopySign => return b & magnitude | a & sign(ty),
        FloatOp::Min | FloatOp::Max => return extreme(op == FloatOp::Max, ty, mode, a, b),
        _ => {}
    }
    let is_plain = mode.rounding == Rounding::Nearest && mode.clamp == Clamp::None && !mode.ftz;
    match (op, ty) {
        (FloatOp::Add, Float::F32) if is_plain => plain(a, b, |a, b| a + b),
        (FloatOp::Mul, Float::F32) if is_plain => plain(a, b, |a, b| a * b),
        (_, Float::F64) => {
            let [x, y, z] = [a, b, c].map(f64::from_bits);
            let result = match op {
                FloatOp::Add => x + y,
                FloatOp::Sub => x - y,
                FloatOp::Mul => x * y,
                FloatOp::Fma => x.mul_add(y, z),
                FloatOp::Div => x / y,
                _ => function(op, x),
            };
            // Sums and products look at their second source first.
            let order = match op {
                FloatOp::Add | FloatOp::Mul => [b, a, a],
                FloatOp::Sub | FloatOp::Div => [a, b, b],
                FloatOp::Fma => [b, a, c],
                _ => [a; 3],
            };
            let passed = order.into_iter().find(|&bits| f64::from_bits(bits).is_nan());
            match passed {
                _ if !result.is_nan() => clamped(ty, mode, result.to_bits()),
                _ if mode.clamp == Clamp::Saturate => 0,
                Some(nan) => nan | QUIET64,
                None => NAN64,
            }
        }
        _ => rounded(ty, mode, exact(op, [a, b, c].map(|bits| wide(ty, bits)))),
    }
}

fn plain(a: u64, b: u64, by: impl Fn(f32, f32) -> f32) -> u64 {
    let result = by(f32::from_bits(a as u32), f32::from_bits(b as u32));
    if result.is_nan() { NAN32 } else { result.to_bits() }.into()
}

/// The value of a float of at most 32 bits, or of one of 64.
pub(super) fn wide(ty: Float, bits: u64) -> f64 {
    match ty {
        Float::F64 => f64::from_bits(bits),
        Float::F32 => f32::from_bits(bits as u32).into(),
        _ => f32::from_bits(narrow::to_f32(ty, bits as u16)).into(),
    }
}

/// The result of an operation on values of at most 24 bits, rounded to odd.
fn exact(op: FloatOp, [a, b, c]: [f64; 3]) -> f64 {
    match op {
        FloatOp::Add => sum(a, b),
        FloatOp::Sub => sum(a, -b),
        // The product of two has at most 48 bits.
        FloatOp::Mul => a * b,
        FloatOp::Fma => sum(a * b, c),
        FloatOp::Div => {
            let quotient = a / b;
            odd(quotient, (-quotient).mul_add(b, a) * b)
        }
        FloatOp::Rcp => exact(FloatOp::Div, [1.0, a, 0.0]),
        FloatOp::Sqrt => {
            let root = a.sqrt();
            odd(root, (-root).mul_add(root, a))
        }
        _ => function(op, a),
    }
}

fn sum(a: f64, b: f64) -> f64 {
    let sum = a + b;
    let of_b = sum - a;
    odd(sum, (a - (sum - of_b)) + (b - of_b))
}

/// Returns a value to which a rest of this sign is missing, rounded to odd.
pub(super) fn odd(value: f64, rest: f64) -> f64 {
    let bits = value.to_bits();
    if !value.is_finite() || value == 0.0 || rest == 0.0 || rest.is_nan() || bits & 1 == 1 {
        return value;
    }
    f64::from_bits(if (rest > 0.0) == (value > 0.0) { bits | 1 } else { bits - 1 })
}

fn function(op: FloatOp, a: f64) -> f64 {
    match op {
        FloatOp::Sqrt => a.sqrt(),
        FloatOp::Rcp => 1.0 / a,
        FloatOp::Rsqrt => 1.0 / a.sqrt(),
        FloatOp::Ex2 => a.exp2(),
        FloatOp::Lg2 => a.log2(),
        FloatOp::Sin => a.sin(),
        FloatOp::Cos => a.cos(),
        FloatOp::Tanh => a.tanh(),
        _ => a,
    }
}

/// Rounds a value that was rounded to odd to a format, and clamps it.
pub(super) fn rounded(ty: Float, mode: Mode, value: f64) -> u64 {
    let bits = match ty {
        Float::F64 if value.is_nan() => NAN64,
        Float::F64 => value.to_bits(),
        Float::F32 if value.is_nan() => NAN32.into(),
        Float::F32 if mode.rounding == Rounding::Nearest => (value as f32).to_bits().into(),
        _ => narrow::rounded(ty, value, mode.rounding),
    };
    clamped(ty, mode, flushed(ty, mode, bits))
}

fn clamped(ty: Float, mode: Mode, bits: u64) -> u64 {
    let value = wide(ty, bits);
    match mode.clamp {
        Clamp::Saturate if value.is_nan() || value <= 0.0 => 0,
        Clamp::Saturate if value > 1.0 => rounded(ty, Mode::default(), 1.0),
        Clamp::Relu if value < 0.0 || bits == sign(ty) => 0,
        _ => bits,
    }
}

/// Makes a subnormal value a zero of its sign, where the mode says so.
pub(super) fn flushed(ty: Float, mode: Mode, bits: u64) -> u64 {
    let least = match ty {
        Float::F32 => f64::from(f32::MIN_POSITIVE),
        Float::F16 => 2f64.powi(-14),
        _ => return bits,
    };
    if mode.ftz && wide(ty, bits).abs() < least { bits & sign(ty) } else { bits }
}

/// The smaller or the larger one of two values; a NaN is neither, unless it is to be passed on. -0 is less than 0.
fn extreme(larger: bool, ty: Float, mode: Mode, a: u64, b: u64) -> u64 {
    let (x, y) = (wide(ty, a), wide(ty, b));
    let nan = match ty {
        Float::F64 => 0x7fff_ffff_ffff_ffff,
        Float::F32 => NAN32.into(),
        _ => 0x7fff,
    };
    let bits = match (x.is_nan(), y.is_nan()) {
        (true, true) => return nan,
        (true, _) | (_, true) if mode.nan => return nan,
        (true, _) => b,
        (_, true) => a,
        _ if (x.total_cmp(&y).is_gt()) == larger => a,
        _ => b,
    };
    clamped(ty, mode, bits & (sign(ty) | (sign(ty) - 1)))
}
