//! The kernel that folds up to eight sources, for engines that issue the ops of a schedule one by one, or one number into
//! each element.

use roundelay_core::dtype::{DType, ReduceOp};

/// The name of the kernel.
pub(crate) const NAME: &str = "roundelay_driven";
/// Bytes of a move for which one more block pays.
#[cfg(feature = "cuda")]
const BYTES_PER_BLOCK: u64 = 16 << 10;
/// The most blocks of a launch: more blocks would only wait for each other.
#[cfg(feature = "cuda")]
const MOST_BLOCKS: u64 = 512;

/// A number of a kernel's element type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scalar {
    /// Its bits, the lowest ones of the word.
    Bits(u64),
    /// The address of device memory that has it when the kernel runs.
    At(u64),
}

/// The argument of the kernel.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct FoldCall {
    sources: u64,
    len: u64,
    divisor: i64,
    to: u64,
    from: [u64; 8],
}

impl FoldCall {
    /// `to = from[0]`, with each other source folded into it in turn, divided by `divisor` unless that is 0.
    pub(crate) fn new(from: &[u64], to: u64, len: u64, divisor: i64) -> Self {
        let mut all = [0; 8];
        all[..from.len()].copy_from_slice(from);
        Self { sources: from.len() as u64, len, divisor, to, from: all }
    }

    /// `to[i] = from[i] op number`.
    #[cfg(feature = "cuda")]
    pub(crate) fn by_number(from: u64, to: u64, len: u64, number: Scalar) -> Self {
        let (bits, at) = match number {
            Scalar::Bits(bits) => (bits, 0),
            Scalar::At(address) => (0, address),
        };
        Self { sources: 0, ..Self::new(&[from, at], to, len, bits as i64) }
    }

    /// Returns the words, in order.
    #[cfg(feature = "ptx")]
    pub(crate) fn words(&self) -> impl Iterator<Item = u64> {
        let Self { sources, len, divisor, to, from } = *self;
        [sources, len, divisor as u64, to].into_iter().chain(from)
    }
}

/// Returns the blocks of a launch that writes that many bytes.
#[cfg(feature = "cuda")]
pub(crate) fn blocks(bytes: u64) -> u32 {
    bytes.div_ceil(BYTES_PER_BLOCK).min(MOST_BLOCKS) as u32
}

/// Returns the text of the kernel, for an element type and op. Its folds of narrow floats round once, or after each
/// source where they are a `chain`.
pub(crate) fn text(dtype: DType, op: ReduceOp, chain: bool) -> String {
    let chain = if chain { "#define ROUNDELAY_CHAIN 1\n" } else { "" };
    format!(
        "#define ROUNDELAY_ELEMENT {dtype}\n#define ROUNDELAY_OP {op:?}\n{chain}#include \"driven.cuh\"\n"
    )
}
