//! Elements as numbers: random values, reductions with their rounding, and the comparison of results.

use float8::{F8E4M3, F8E5M2};
use half::{bf16, f16};
use roundelay_core::dtype::{DType, ReduceOp};
use roundelay_core::random::SplitMix64;

use crate::harness::Special;

/// The byte that memory holds where nothing was written.
pub(crate) const POISON: u8 = 0xa5;

/// One random element in this many is a special one, where there are any.
const SPECIAL_ONE_IN: u64 = 8;

/// An element.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Number {
    Whole(i128),
    Float(f64),
}

impl Number {
    fn float(self) -> f64 {
        match self {
            Self::Whole(whole) => rounded(whole),
            Self::Float(float) => float,
        }
    }
}

/// Rounds an integer, by a call that a float does not pay for.
#[cold]
fn rounded(whole: i128) -> f64 {
    whole as f64
}

/// The element of a type at a position.
pub(crate) fn at(dtype: DType, bytes: &[u8], position: usize) -> Number {
    let size = dtype.size();
    let mut word = [0; 8];
    word[..size].copy_from_slice(&bytes[position * size..][..size]);
    of_bits(dtype, u64::from_le_bytes(word))
}

/// The element of a type with these bits, behind which there may be others.
fn of_bits(dtype: DType, bits: u64) -> Number {
    match dtype {
        DType::I8 => Number::Whole((bits as i8).into()),
        DType::I32 => Number::Whole((bits as i32).into()),
        DType::I64 => Number::Whole((bits as i64).into()),
        DType::U8 => Number::Whole((bits as u8).into()),
        DType::U32 => Number::Whole((bits as u32).into()),
        DType::U64 => Number::Whole(bits.into()),
        DType::F16 => Number::Float(f16::from_bits(bits as u16).to_f64()),
        DType::Bf16 => Number::Float(bf16::from_bits(bits as u16).to_f64()),
        DType::F32 => Number::Float(f32::from_bits(bits as u32).into()),
        DType::F64 => Number::Float(f64::from_bits(bits)),
        DType::F8E4M3 => Number::Float(F8E4M3::from_bits(bits as u8).to_f64()),
        DType::F8E5M2 => Number::Float(F8E5M2::from_bits(bits as u8).to_f64()),
    }
}

/// The bytes of a number as an element: rounded to nearest, or cut to the width of an integer.
pub(crate) fn bytes_of(dtype: DType, number: Number) -> Vec<u8> {
    bits_of(dtype, number).to_le_bytes()[..dtype.size()].to_vec()
}

/// The bits of a number as an element; behind those of an integer there may be others.
fn bits_of(dtype: DType, number: Number) -> u64 {
    let float = number.float();
    match (dtype, number) {
        (DType::F16, _) => f16::from_f64(float).to_bits().into(),
        (DType::Bf16, _) => bf16::from_f64(float).to_bits().into(),
        (DType::F32, _) => (float as f32).to_bits().into(),
        (DType::F64, _) => float.to_bits(),
        (DType::F8E4M3, _) => F8E4M3::from_f64(float).to_bits().into(),
        (DType::F8E5M2, _) => F8E5M2::from_f64(float).to_bits().into(),
        (_, Number::Whole(whole)) => whole as u64,
        (_, Number::Float(float)) => float as i64 as u64,
    }
}

/// `len` random elements: floats in -1..1, and integers of all bits. Some are special, if there are special ones; the
/// sentinel is a word of 32 bits.
pub(crate) fn random(
    dtype: DType,
    len: usize,
    random: &mut SplitMix64,
    special: &[Special],
    sentinel: Option<u32>,
) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(len * dtype.size());
    for _ in 0..len {
        let bits = random.draw();
        if !special.is_empty() && random.draw().is_multiple_of(SPECIAL_ONE_IN) {
            match special[random.below(special.len())] {
                Special::Number(number) => bytes.extend(bytes_of(dtype, Number::Float(number))),
                Special::Sentinel => {
                    let word = sentinel.unwrap_or(0).to_le_bytes();
                    bytes.extend((0..dtype.size()).map(|at| word[at % 4]));
                }
            }
        } else if dtype.is_float() {
            let uniform = (bits >> 11) as f64 / (1u64 << 52) as f64 - 1.0;
            bytes.extend(bytes_of(dtype, Number::Float(uniform)));
        } else {
            bytes.extend(&bits.to_le_bytes()[..dtype.size()]);
        }
    }
    bytes
}

/// The reduction of elements in their order, rounded to `each` after every step and to the type at the end; and the sum of
/// their magnitudes, or 0 where the op rounds nothing.
pub(crate) fn reduce(
    (dtype, each): (DType, DType),
    op: ReduceOp,
    elements: impl Iterator<Item = Number>,
) -> (Vec<u8>, f64) {
    let (mut sum, mut scale, mut count) = (None, 0.0, 0);
    let round = |number: Number| match number {
        Number::Float(_) => of_bits(each, bits_of(each, number)),
        Number::Whole(_) => of_bits(dtype, bits_of(dtype, number)),
    };
    for element in elements {
        if matches!(op, ReduceOp::Sum | ReduceOp::Avg | ReduceOp::Prod) {
            scale += element.float().abs();
        }
        count += 1;
        sum = Some(match sum {
            None => element,
            Some(sum) => round(combine(op, sum, element)),
        });
    }
    let mut sum = sum.unwrap_or(Number::Whole(0));
    if op == ReduceOp::Avg && count > 0 {
        sum = round(match sum {
            Number::Float(sum) => Number::Float(sum / f64::from(count)),
            Number::Whole(sum) => Number::Whole(sum / i128::from(count)),
        });
    }
    (bytes_of(dtype, sum), scale)
}

fn combine(op: ReduceOp, a: Number, b: Number) -> Number {
    match (a, b) {
        (Number::Whole(a), Number::Whole(b)) => Number::Whole(match op {
            ReduceOp::Sum | ReduceOp::Avg => a + b,
            ReduceOp::Prod => a.wrapping_mul(b),
            ReduceOp::Min => a.min(b),
            ReduceOp::Max => a.max(b),
            ReduceOp::Band => a & b,
            ReduceOp::Bor => a | b,
            ReduceOp::Bxor => a ^ b,
            ReduceOp::Land => i128::from(a != 0 && b != 0),
            ReduceOp::Lor => i128::from(a != 0 || b != 0),
            ReduceOp::Lxor => i128::from((a != 0) != (b != 0)),
        }),
        (a, b) => {
            let (a, b) = (a.float(), b.float());
            Number::Float(match op {
                ReduceOp::Prod => a * b,
                // A kernel may or may not keep a NaN.
                ReduceOp::Min => a.min(b),
                ReduceOp::Max => a.max(b),
                _ => a + b,
            })
        }
    }
}

/// Whether an element is as expected: the same bits, or, where there is a scale, zeros of any sign, or NaNs, or not farther
/// away than `ulp` units of the last place of the scale.
pub(crate) fn is_right(
    dtype: DType,
    (got, wanted): (&[u8], &[u8]),
    (ulp, scale): (u32, Option<f64>),
) -> bool {
    if got == wanted {
        return true;
    }
    let Some(scale) = scale else { return false };
    let (Number::Float(got), Number::Float(wanted)) = (at(dtype, got, 0), at(dtype, wanted, 0))
    else {
        return false;
    };
    let mantissa = match dtype {
        DType::F64 => 52,
        DType::F32 => 23,
        DType::F16 => 10,
        DType::Bf16 => 7,
        DType::F8E4M3 => 3,
        _ => 2,
    };
    let unit = scale * 2f64.powi(-mantissa);
    got.is_nan() && wanted.is_nan()
        || got.abs() + wanted.abs() == 0.0
        || wanted.is_finite() && (got - wanted).abs() <= f64::from(ulp) * unit
}

/// An element as people read it.
pub(crate) fn shown(dtype: DType, bytes: &[u8]) -> String {
    match at(dtype, bytes, 0) {
        Number::Whole(whole) => whole.to_string(),
        Number::Float(float) => format!("{float:?}"),
    }
}
