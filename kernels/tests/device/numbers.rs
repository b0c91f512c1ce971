//! What a fold of elements must give: the host's loops for its ten dtypes, and fp8 from its table of numbers.

use roundelay_core::dtype::{DType, ReduceOp};
use roundelay_kernels::reduce::{Kernel, MoveForm, Stores};

use crate::device::Random;

/// A dtype of the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Host(DType),
    F8E4M3,
    F8E5M2,
}

impl Kind {
    pub fn all() -> Vec<Self> {
        DType::ALL
            .iter()
            .map(|&dtype| Self::Host(dtype))
            .chain([Self::F8E4M3, Self::F8E5M2])
            .collect()
    }

    pub fn name(self) -> String {
        match self {
            Self::Host(dtype) => dtype.to_string(),
            Self::F8E4M3 => "f8e4m3".to_owned(),
            Self::F8E5M2 => "f8e5m2".to_owned(),
        }
    }

    pub fn size(self) -> usize {
        match self {
            Self::Host(dtype) => dtype.size(),
            Self::F8E4M3 | Self::F8E5M2 => 1,
        }
    }

    /// Bits of (infinity, 1): a float whose magnitude is above infinity is NaN.
    fn float(self) -> Option<(u64, u64)> {
        match self {
            Self::Host(DType::F16) => Some((0x7c00, 0x3c00)),
            Self::Host(DType::Bf16) => Some((0x7f80, 0x3f80)),
            Self::Host(DType::F32) => Some((0x7f80_0000, 0x3f80_0000)),
            Self::Host(DType::F64) => Some((0x7ff0 << 48, 0x3ff0 << 48)),
            Self::Host(_) => None,
            // No infinity: above the largest number.
            Self::F8E4M3 => Some((0x7e, 0x38)),
            Self::F8E5M2 => Some((0x7c, 0x3c)),
        }
    }

    /// Bits of an element: any, of integers often 0, of floats such as meet ties, zeros, infinities and NaN.
    pub fn random(self, random: &mut Random, to: &mut [u8]) {
        let any = random.next();
        let sign = (any & 1) << (self.size() * 8 - 1);
        let bits = match self.float() {
            Some((infinity, one)) if any >> 61 == 0 => {
                let near = [0, 1, 2, infinity, infinity - 1, infinity + 1, one, one + 1, one - 1];
                near[random.below(near.len())] | sign
            }
            Some((_, one)) if any >> 62 == 1 => (one + (any >> 8) % 16) ^ sign,
            None if any >> 61 == 0 => 0,
            _ => any,
        };
        to.copy_from_slice(&bits.to_le_bytes()[..self.size()]);
    }

    /// Whether these are bits of one element, or of two that are both NaN.
    pub fn same(self, a: &[u8], b: &[u8]) -> bool {
        let nan = |bytes: &[u8]| {
            let mut word = [0; 8];
            word[..bytes.len()].copy_from_slice(bytes);
            let magnitude = u64::from_le_bytes(word) & ((1 << (bytes.len() * 8 - 1)) - 1);
            self.float().is_some_and(|(infinity, _)| magnitude > infinity)
        };
        a == b || (nan(a) && nan(b))
    }

    /// `acc = srcs[0]; for s in srcs[1..] { acc = s op acc }`, divided by `divisor` if that is not 0.
    pub fn fold(self, op: ReduceOp, srcs: &[&[u8]], divisor: u32) -> Vec<u8> {
        match self {
            Self::Host(dtype) => on_host(dtype, op, srcs, divisor),
            Self::F8E4M3 | Self::F8E5M2 => {
                let elements = 0..srcs[0].len();
                elements
                    .map(|i| self.fold_fp8(op, srcs.iter().map(|src| src[i]), divisor))
                    .collect()
            }
        }
    }

    fn fold_fp8(self, op: ReduceOp, mut srcs: impl Iterator<Item = u8>, divisor: u32) -> u8 {
        let first = srcs.next().expect("a source");
        let sum = srcs.fold(first, |acc, src| {
            let (a, b) = (self.fp8(src), self.fp8(acc));
            match op {
                ReduceOp::Sum | ReduceOp::Avg => self.rounded(a + b),
                ReduceOp::Prod => self.rounded(a * b),
                _ if a.is_nan() || b.is_nan() => 0x7f,
                // Zeros differ by their signs, and the others by their values.
                ReduceOp::Min if a == b => src | acc,
                ReduceOp::Max if a == b => src & acc,
                ReduceOp::Min => [src, acc][usize::from(b < a)],
                ReduceOp::Max => [src, acc][usize::from(b > a)],
                _ => panic!("{op} is for integers"),
            }
        });
        if divisor == 0 {
            sum
        } else {
            self.rounded((self.fp8(sum) as f32 / divisor as f32).into())
        }
    }

    /// The number that 8 bits stand for.
    fn fp8(self, bits: u8) -> f64 {
        let (mantissa_bits, bias) = if self == Self::F8E4M3 { (3, 7) } else { (2, 15) };
        let (_, infinity) = (0, if self == Self::F8E4M3 { 0x80 } else { 0x7c });
        let magnitude = bits & 0x7f;
        let value = if magnitude == infinity {
            f64::INFINITY
        } else if magnitude > infinity || (self == Self::F8E4M3 && magnitude == 0x7f) {
            f64::NAN
        } else {
            let (exponent, mantissa) =
                (magnitude >> mantissa_bits, magnitude & ((1 << mantissa_bits) - 1));
            let hidden = if exponent == 0 { 0 } else { 1 << mantissa_bits };
            let power = i32::from(exponent.max(1)) - bias - mantissa_bits;
            f64::from(hidden + mantissa) * f64::powi(2.0, power)
        };
        if bits & 0x80 == 0 { value } else { -value }
    }

    /// The nearest of all 8-bit numbers, the even one of two; the largest for what is larger.
    fn rounded(self, value: f64) -> u8 {
        let sign = if value.is_sign_negative() { 0x80 } else { 0 };
        let finite = (0..0x80).filter(|&bits| self.fp8(bits).is_finite());
        let distance = |bits: u8| (self.fp8(bits) - value.abs()).abs();
        if value.is_nan() {
            return 0x7f;
        }
        if value.is_infinite() {
            return 0x7c | sign;
        }
        let nearest = finite.min_by(|&a, &b| {
            distance(a).total_cmp(&distance(b)).then_with(|| (a & 1).cmp(&(b & 1)))
        });
        nearest.expect("numbers are finite") | sign
    }
}

fn on_host(dtype: DType, op: ReduceOp, srcs: &[&[u8]], divisor: u32) -> Vec<u8> {
    // In words, so that everything is aligned.
    let words = |bytes: &[u8]| {
        let mut words = vec![0u64; bytes.len().div_ceil(8)];
        for (word, bytes) in words.iter_mut().zip(bytes.chunks(8)) {
            let mut all = [0; 8];
            all[..bytes.len()].copy_from_slice(bytes);
            *word = u64::from_le_bytes(all);
        }
        words
    };
    let owned: Vec<Vec<u64>> = srcs.iter().map(|src| words(src)).collect();
    let mut result = words(srcs[0]);
    let from: Vec<*const u8> = owned.iter().map(|words| words.as_ptr().cast()).collect();
    let len = srcs[0].len() / dtype.size();
    let divide = (divisor != 0).then_some(divisor);
    let kernel = Kernel::new(dtype, op).expect("the dtype has the op");
    // SAFETY: all are vectors of as many elements, apart, and at most 8.
    unsafe {
        let to = [result.as_mut_ptr().cast()];
        kernel.run(&from, &to, len, MoveForm::CHAIN, divide, Stores::Cached);
    }
    let bytes: Vec<u8> = result.into_iter().flat_map(u64::to_le_bytes).collect();
    bytes[..srcs[0].len()].to_vec()
}
