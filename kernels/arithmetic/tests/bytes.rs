//! Both fp8 types against the conversions of the crate `float8` and arithmetic in f64, which is exact for each pair.

use roundelay_arithmetic::{Kernel, MoveForm, Stores};
use roundelay_base::dtype::{DType, ReduceOp};

use crate::byte::{NAN, e4m3_to_f32, e5m2_to_f32, f32_to_e4m3, f32_to_e5m2};

/// A type as the crate `float8` has it.
#[derive(Clone, Copy)]
struct Reference {
    dtype: DType,
    widen: fn(u8) -> f64,
    narrow: fn(f64) -> u8,
    /// The bits of infinity, if there is one.
    infinity: Option<u8>,
}

const TYPES: [Reference; 2] = [
    Reference {
        dtype: DType::F8E4M3,
        widen: |bits| float8::F8E4M3::from_bits(bits).to_f64(),
        narrow: |value| float8::F8E4M3::from_f64(value).to_bits(),
        infinity: None,
    },
    Reference {
        dtype: DType::F8E5M2,
        widen: |bits| float8::F8E5M2::from_bits(bits).to_f64(),
        narrow: |value| float8::F8E5M2::from_f64(value).to_bits(),
        infinity: Some(0x7c),
    },
];

impl Reference {
    /// Rounds, saturates what is finite, and keeps what is not.
    fn rounded(self, value: f64) -> u8 {
        match self.infinity {
            _ if value.is_nan() => NAN,
            Some(infinity) if value.is_infinite() => {
                infinity | (u8::from(value.is_sign_negative()) << 7)
            }
            _ => (self.narrow)(value),
        }
    }

    /// Returns the result of an op of two elements, or of the division of `a` by `divide`.
    fn result(self, op: ReduceOp, (a, b): (u8, u8), divide: u32) -> u8 {
        let (x, y) = ((self.widen)(a), (self.widen)(b));
        let extremum = |smaller: u8, larger: u8| match op {
            _ if x.is_nan() || y.is_nan() => NAN,
            ReduceOp::Min => smaller,
            _ => larger,
        };
        match op {
            ReduceOp::Sum => self.rounded(x + y),
            ReduceOp::Prod => self.rounded(x * y),
            ReduceOp::Avg => self.rounded(x / f64::from(divide)),
            // The total order has -0 below +0.
            _ if x.total_cmp(&y).is_lt() => extremum(a, b),
            _ => extremum(b, a),
        }
    }
}

/// Returns the results of a kernel for the elements of `srcs`.
fn computed(kernel: &Kernel, srcs: &[&[u8; 256]], divide: Option<u32>) -> [u8; 256] {
    let mut out = [0; 256];
    let at: Vec<*const u8> = srcs.iter().map(|src| src.as_ptr()).collect();
    // SAFETY: the operands have 256 elements of a byte each, and are apart.
    unsafe { kernel.run(&at, &[out.as_mut_ptr()], 256, MoveForm::CHAIN, divide, Stores::Cached) };
    out
}

#[test]
fn all_pairs_agree_with_float8() {
    let all: [u8; 256] = std::array::from_fn(|bits| bits as u8);
    for reference in TYPES {
        let dtype = reference.dtype;
        for op in [ReduceOp::Sum, ReduceOp::Prod, ReduceOp::Min, ReduceOp::Max] {
            for (set, kernel) in Kernel::of_each_instruction_set(dtype, op) {
                for other in 0..=u8::MAX {
                    let got = computed(&kernel, &[&all, &[other; 256]], None);
                    for (&bits, got) in all.iter().zip(got) {
                        let want = reference.result(op, (bits, other), 0);
                        assert_eq!(
                            got, want,
                            "{set:?} {dtype} {op} of {bits:#x} and {other:#x}: {got:#x}, not {want:#x}"
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn averages_of_every_value_agree_with_float8() {
    let all: [u8; 256] = std::array::from_fn(|bits| bits as u8);
    for reference in TYPES {
        let dtype = reference.dtype;
        for (set, kernel) in Kernel::of_each_instruction_set(dtype, ReduceOp::Avg) {
            for n in [1, 2, 3, 5, 7, 8, 10, 64, 1000, 65_537] {
                let got = computed(&kernel, &[&all], Some(n));
                for (&bits, got) in all.iter().zip(got) {
                    let want = reference.result(ReduceOp::Avg, (bits, bits), n);
                    assert_eq!(
                        got, want,
                        "{set:?} {dtype} {bits:#x} / {n}: {got:#x}, not {want:#x}"
                    );
                }
            }
        }
    }
}

#[test]
fn conversions_agree_with_float8() {
    let ours =
        [(e4m3_to_f32 as fn(u8) -> f32, f32_to_e4m3 as fn(f32) -> u8), (e5m2_to_f32, f32_to_e5m2)];
    for (reference, (widen, narrow)) in TYPES.into_iter().zip(ours) {
        for bits in 0..=u8::MAX {
            let (wide, want) = (f64::from(widen(bits)), (reference.widen)(bits));
            assert!(
                wide.to_bits() == want.to_bits() || wide.is_nan() && want.is_nan(),
                "{bits:#x}"
            );
        }
        // Every exponent, with mantissas on and around the ties.
        for high in 0..=u16::MAX {
            for low in [0u32, 1, 0x7fff, 0x8000, 0xffff] {
                let value = f32::from_bits((u32::from(high) << 16) | low);
                let want = reference.rounded(f64::from(value));
                assert_eq!(narrow(value), want, "{} {value:e}", reference.dtype);
            }
        }
    }
}

/// SATFINITE, by some numbers of the specification's tables.
#[test]
fn what_is_too_large_becomes_the_largest_number() {
    assert_eq!((f32_to_e4m3(448.0), f32_to_e4m3(464.1), f32_to_e4m3(-1e30)), (0x7e, 0x7e, 0xfe));
    assert_eq!(
        (f32_to_e5m2(57344.0), f32_to_e5m2(61441.0), f32_to_e5m2(-1e30)),
        (0x7b, 0x7b, 0xfb)
    );
    assert_eq!((f32_to_e4m3(f32::INFINITY), f32_to_e5m2(f32::NEG_INFINITY)), (0x7e, 0xfc));
    assert_eq!((f32_to_e4m3(-f32::NAN), f32_to_e5m2(-f32::NAN)), (NAN, NAN));
    assert_eq!((e4m3_to_f32(0x01), e5m2_to_f32(0x81)), (1.0 / 512.0, -1.0 / 65536.0));
}
