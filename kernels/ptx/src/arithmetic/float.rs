//! Operations on f32 and f64. The NaN that an f32 operation gives has all bits but the sign; one of f64 passes a
//! source's NaN on, made quiet, and otherwise is the negative quiet one. PTX leaves open which one of two NaNs is passed
//! on; an H200 takes the second one of a sum or a product, and the first one of a quotient.

use crate::program::Float;

const NAN32: u32 = 0x7fff_ffff;
const NAN64: u64 = 0xfff8_0000_0000_0000;
const QUIET64: u64 = 0x0008_0000_0000_0000;

/// Returns the bit of the sign.
pub(super) fn sign(ty: Float) -> u64 {
    1 << (ty.bits() - 1)
}

/// Returns the value without its sign.
pub(super) fn abs(ty: Float, a: u64) -> u64 {
    match ty {
        Float::F32 if f32::from_bits(a as u32).is_nan() => NAN32.into(),
        _ => a & (sign(ty) - 1),
    }
}

pub(super) fn add(ty: Float, a: u64, b: u64) -> u64 {
    binary(ty, b, a, |b, a| a + b, |b, a| a + b)
}

pub(super) fn sub(ty: Float, a: u64, b: u64) -> u64 {
    binary(ty, a, b, |a, b| a - b, |a, b| a - b)
}

pub(super) fn mul(ty: Float, a: u64, b: u64) -> u64 {
    binary(ty, b, a, |b, a| a * b, |b, a| a * b)
}

pub(super) fn div(ty: Float, a: u64, b: u64) -> u64 {
    binary(ty, a, b, |a, b| a / b, |a, b| a / b)
}

fn binary(
    ty: Float,
    a: u64,
    b: u64,
    narrow: impl Fn(f32, f32) -> f32,
    wide: impl Fn(f64, f64) -> f64,
) -> u64 {
    if ty == Float::F64 {
        let (x, y) = (f64::from_bits(a), f64::from_bits(b));
        let result = wide(x, y);
        return match (result.is_nan(), x.is_nan(), y.is_nan()) {
            (false, ..) => result.to_bits(),
            (_, true, _) => a | QUIET64,
            (_, _, true) => b | QUIET64,
            _ => NAN64,
        };
    }
    let result = narrow(f32::from_bits(a as u32), f32::from_bits(b as u32));
    if result.is_nan() { NAN32 } else { result.to_bits() }.into()
}
