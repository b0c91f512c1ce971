//! What a fold of elements must give: what the host's loops give.

use fastrand::Rng;
use roundelay_core::dtype::{DType, ReduceOp};
use roundelay_kernels::reduce::{Kernel, MoveForm, Stores};

/// Bits of (infinity, 1): a float whose magnitude is above infinity is NaN.
fn float(dtype: DType) -> Option<(u64, u64)> {
    match dtype {
        DType::F16 => Some((0x7c00, 0x3c00)),
        DType::Bf16 => Some((0x7f80, 0x3f80)),
        DType::F32 => Some((0x7f80_0000, 0x3f80_0000)),
        DType::F64 => Some((0x7ff0 << 48, 0x3ff0 << 48)),
        // There is no infinity: the largest number has its place.
        DType::F8E4M3 => Some((0x7e, 0x38)),
        DType::F8E5M2 => Some((0x7c, 0x3c)),
        DType::I8 | DType::U8 | DType::I32 | DType::U32 | DType::I64 | DType::U64 => None,
    }
}

/// Bits of an element: any, of integers often 0, of floats such as meet ties, zeros, infinities and NaN.
pub fn any_element(dtype: DType, random: &mut Rng, to: &mut [u8]) {
    let any = random.u64(..);
    let sign = (any & 1) << (dtype.size() * 8 - 1);
    let bits = match float(dtype) {
        Some((infinity, one)) if any >> 61 == 0 => {
            let near = [0, 1, 2, infinity, infinity - 1, infinity + 1, one, one + 1, one - 1];
            near[random.usize(..near.len())] | sign
        }
        Some((_, one)) if any >> 62 == 1 => (one + (any >> 8) % 16) ^ sign,
        None if any >> 61 == 0 => 0,
        _ => any,
    };
    to.copy_from_slice(&bits.to_le_bytes()[..dtype.size()]);
}

/// Whether these are bits of one element, or of two that are both NaN.
pub fn same(dtype: DType, a: &[u8], b: &[u8]) -> bool {
    let nan = |bytes: &[u8]| {
        let mut word = [0; 8];
        word[..bytes.len()].copy_from_slice(bytes);
        let magnitude = u64::from_le_bytes(word) & ((1 << (bytes.len() * 8 - 1)) - 1);
        float(dtype).is_some_and(|(infinity, _)| magnitude > infinity)
    };
    a == b || (nan(a) && nan(b))
}

/// `acc = srcs[0]; for s in srcs[1..] { acc = s op acc }`, divided by `divisor` if that is not 0.
pub fn fold((dtype, op): (DType, ReduceOp), chain: bool, srcs: &[&[u8]], divisor: u32) -> Vec<u8> {
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
        let form = MoveForm { chain, ..MoveForm::CHAIN };
        kernel.run(&from, &to, len, form, divide, Stores::Cached);
    }
    let bytes: Vec<u8> = result.into_iter().flat_map(u64::to_le_bytes).collect();
    bytes[..srcs[0].len()].to_vec()
}
