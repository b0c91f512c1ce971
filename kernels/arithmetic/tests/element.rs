//! The arithmetic of one element by its definition, and random elements.

use ::half::{bf16, f16};
use fastrand::Rng as Random;
use roundelay_arithmetic::MoveForm;
use roundelay_base::dtype::{DType, ReduceOp};

use crate::byte::{e4m3_to_f32, e5m2_to_f32, f32_to_e4m3, f32_to_e5m2};
use crate::number::{Divide, Number};

pub(crate) fn below(random: &mut Random, n: usize) -> usize {
    random.usize(..n)
}

/// Bits of (infinity, quiet NaN, 1) of a float.
pub(crate) fn float(dtype: DType) -> Option<(u64, u64, u64)> {
    match dtype {
        DType::F16 => Some((0x7c00, 0x7e00, 0x3c00)),
        DType::Bf16 => Some((0x7f80, 0x7fc0, 0x3f80)),
        DType::F32 => Some((0x7f80_0000, 0x7fc0_0000, 0x3f80_0000)),
        DType::F64 => Some((0x7ff0 << 48, 0x7ff8 << 48, 0x3ff0 << 48)),
        // There is no infinity: the largest number has its place.
        DType::F8E4M3 => Some((0x7e, 0x7f, 0x38)),
        DType::F8E5M2 => Some((0x7c, 0x7f, 0x3c)),
        _ => None,
    }
}

/// Random bits, or 0 for one in eight integers; floats also around zero, one and infinity, with either sign.
pub(crate) fn element(dtype: DType, random: &mut Random) -> u64 {
    let bits = random.u64(..);
    let sign = (bits & 1) << (dtype.size() * 8 - 1);
    match float(dtype) {
        Some((infinity, nan, one)) if bits >> 61 == 0 => {
            let near = [0, 1, 2, infinity, infinity - 1, infinity + 1, nan, one, one + 1, one - 1];
            near[below(random, near.len())] | sign
        }
        // The values have one magnitude, so that sums have ties.
        Some((_, _, one)) if bits >> 62 == 1 => (one + (bits >> 8) % 64) ^ sign,
        None if bits >> 61 == 0 => 0,
        _ => bits,
    }
}

pub(crate) fn write(dtype: DType, bits: u64, to: &mut [u8]) {
    let size = dtype.size();
    if cfg!(target_endian = "big") {
        to.copy_from_slice(&bits.to_be_bytes()[8 - size..]);
    } else {
        to.copy_from_slice(&bits.to_le_bytes()[..size]);
    }
}

pub(crate) fn read(dtype: DType, from: &[u8]) -> u64 {
    let (mut bytes, size) = ([0; 8], dtype.size());
    if cfg!(target_endian = "big") {
        bytes[8 - size..].copy_from_slice(from);
        u64::from_be_bytes(bytes)
    } else {
        bytes[..size].copy_from_slice(from);
        u64::from_le_bytes(bytes)
    }
}

/// Computes the result of one element by the definition, of a type that is not a narrow float.
pub(crate) fn defined(dtype: DType, op: ReduceOp, values: &[u64], divide: Option<u32>) -> u64 {
    fn of<T: Divide>(op: ReduceOp, values: impl Iterator<Item = T>, divide: Option<u32>) -> T {
        let folded = values.reduce(|acc, src| match op {
            ReduceOp::Sum | ReduceOp::Avg => src.sum(acc),
            ReduceOp::Prod => src.prod(acc),
            ReduceOp::Min => src.min(acc),
            ReduceOp::Max => src.max(acc),
            _ => panic!("{op} is of bits"),
        });
        let folded = folded.expect("a source");
        divide.map_or(folded, |nranks| folded.divide(nranks))
    }
    let values = values.iter().copied();
    if op.is_for_integers() {
        let unused = 64 - 8 * dtype.size();
        let folded = values.map(|x| x << unused >> unused).reduce(|acc, src| match op {
            ReduceOp::Band => src & acc,
            ReduceOp::Bor => src | acc,
            ReduceOp::Bxor => src ^ acc,
            ReduceOp::Land => (src > 0 && acc > 0).into(),
            ReduceOp::Lor => (src > 0 || acc > 0).into(),
            _ => ((src > 0) != (acc > 0)).into(),
        });
        return folded.expect("a source");
    }
    match dtype {
        DType::I8 => of(op, values.map(|x| x as i8), divide) as u8 as u64,
        DType::U8 => of(op, values.map(|x| x as u8), divide) as u64,
        DType::I32 => of(op, values.map(|x| x as i32), divide) as u32 as u64,
        DType::U32 => of(op, values.map(|x| x as u32), divide) as u64,
        DType::I64 => of(op, values.map(|x| x as i64), divide) as u64,
        DType::U64 => of(op, values, divide),
        DType::F32 => of(op, values.map(|x| f32::from_bits(x as u32)), divide).to_bits() as u64,
        DType::F64 => of(op, values.map(f64::from_bits), divide).to_bits(),
        _ => panic!("{dtype} is a narrow float"),
    }
}

/// Conversions between the bits of a narrow float and f32.
pub(crate) type ToWide = fn(u64) -> f32;
pub(crate) type ToNarrow = fn(f32) -> u64;

/// Returns the f32 of a narrow float, and the narrow float of an f32.
pub(crate) fn converted(dtype: DType) -> Option<(ToWide, ToNarrow)> {
    Some(match dtype {
        DType::F16 => {
            (|x| f16::from_bits(x as u16).to_f32(), |x| f16::from_f32(x).to_bits() as u64)
        }
        DType::Bf16 => {
            (|x| bf16::from_bits(x as u16).to_f32(), |x| bf16::from_f32(x).to_bits() as u64)
        }
        DType::F8E4M3 => (|x| e4m3_to_f32(x as u8), |x| f32_to_e4m3(x) as u64),
        DType::F8E5M2 => (|x| e5m2_to_f32(x as u8), |x| f32_to_e5m2(x) as u64),
        _ => return None,
    })
}

/// Computes one element by the definition of a move, with its wide sources as bits of f32: the result before it is
/// divided and rounded, and after.
pub(crate) fn defined_wide(
    (dtype, op): (DType, ReduceOp),
    form: MoveForm,
    values: &[u64],
    divide: Option<u32>,
) -> (f32, u64) {
    let (widen, narrow) = converted(dtype).expect("a narrow float");
    let value = |nth: usize| match form.wide_srcs >> nth & 1 {
        1 => f32::from_bits(values[nth] as u32),
        _ => widen(values[nth]),
    };
    let mut acc = value(0);
    for nth in 1..values.len() {
        if nth > 1 && form.chain {
            acc = widen(narrow(acc));
        }
        acc = match op {
            ReduceOp::Sum | ReduceOp::Avg => value(nth).sum(acc),
            ReduceOp::Prod => value(nth).prod(acc),
            ReduceOp::Min => Number::min(value(nth), acc),
            _ => Number::max(value(nth), acc),
        };
    }
    (acc, narrow(divide.map_or(acc, |nranks| acc.divide(nranks))))
}

/// Compares bits; two quiet NaNs are equal, and in 16 or 8 bits only canonical ones (of either sign), unless merely
/// copied.
pub(crate) fn same(dtype: DType, got: u64, want: u64, copied: bool) -> bool {
    let Some((infinity, quiet, _)) = float(dtype) else { return got == want };
    let magnitude = (1 << (dtype.size() * 8 - 1)) - 1;
    if copied || want & magnitude <= infinity {
        return got == want;
    }
    if dtype.size() <= 2 { got & magnitude == quiet } else { got & quiet == quiet }
}
