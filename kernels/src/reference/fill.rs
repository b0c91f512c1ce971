//! Seeded test data, identical on every machine, for which no result of a float reduction leaves its range.

use float8::{F8E4M3, F8E5M2};
use half::{bf16, f16};
use roundelay_core::dtype::{DType, ReduceOp};
use roundelay_core::random::SplitMix64;

/// `len` random elements for `rank`, as bytes.
///
/// Integers have all bits random (odd for `prod`, whose result would otherwise soon be 0), and for the logical ops some
/// are 0: few for `land` and many for `lor`, so that both results occur. Floats lie in -1..1; for `prod` in
/// ±(15/16..17/16), so that the product of 1000 ranks neither overflows nor vanishes, and of fp8, which has few numbers
/// there, in ±(3/4..5/4).
pub fn fill(dtype: DType, op: ReduceOp, seed: u64, rank: u32, len: usize) -> Vec<u8> {
    let mut random = SplitMix64(seed);
    let mut random =
        SplitMix64(random.draw() ^ u64::from(rank).wrapping_mul(0xd6e8_feb8_6659_fd93));
    let product = op == ReduceOp::Prod;
    // The number of zeros among eight elements.
    let zeros = match op {
        ReduceOp::Land => 1,
        ReduceOp::Lxor => 4,
        ReduceOp::Lor => 7,
        _ => 0,
    };
    let mut integer = || {
        let bits = random.draw() | u64::from(product);
        if bits >> 61 < zeros { 0 } else { bits }
    };
    let spread = if matches!(dtype, DType::F8E4M3 | DType::F8E5M2) { 4.0 } else { 16.0 };
    let float = |bits: u64| {
        let uniform = (bits >> 11) as f64 / (1u64 << 52) as f64 - 1.0;
        let sign = if bits & 2 == 0 { 1.0 } else { -1.0 };
        if product { sign * (1.0 + uniform / spread) } else { uniform }
    };
    let mut bytes = Vec::with_capacity(len * dtype.size());
    for _ in 0..len {
        let bits = integer();
        match dtype {
            DType::F16 => bytes.extend(f16::from_f64(float(bits)).to_ne_bytes()),
            DType::Bf16 => bytes.extend(bf16::from_f64(float(bits)).to_ne_bytes()),
            DType::F32 => bytes.extend((float(bits) as f32).to_ne_bytes()),
            DType::F64 => bytes.extend(float(bits).to_ne_bytes()),
            DType::F8E4M3 => bytes.push(F8E4M3::from_f64(float(bits)).to_bits()),
            DType::F8E5M2 => bytes.push(F8E5M2::from_f64(float(bits)).to_bits()),
            DType::I8 | DType::U8 => bytes.push(bits as u8),
            DType::I32 | DType::U32 => bytes.extend((bits as u32).to_ne_bytes()),
            DType::I64 | DType::U64 => bytes.extend(bits.to_ne_bytes()),
        }
    }
    bytes
}
