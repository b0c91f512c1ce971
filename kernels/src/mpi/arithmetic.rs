//! How an MPI library combines values, found by trying each predefined type with each predefined op: integers may
//! saturate in one library and wrap in another, and even in one library by the processor and the number of values.

use std::ffi::c_int;

use roundelay_core::dtype::{DType, ReduceOp};

use super::Mpi;
use super::abi::Handle;
use super::types::{CombinedPair, Elements, OPS_LEN, TYPES_LEN};
use crate::Error;
use crate::reduce::{Kernel, MoveForm, Stores};

/// The number of pairs of a type and an op.
const PAIRS: usize = TYPES_LEN * OPS_LEN;
const BITS: usize = PAIRS.div_ceil(64);

/// The pairs of a predefined type and an op that an MPI library combines, and those that it combines to the same bits
/// as this crate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MpiArithmetic([u64; MpiArithmetic::WORDS]);

/// The numbers of values in a piece: a library may combine the values at the end of a vector by other instructions than
/// those before, so each value is tried within a vector and at an end.
const PIECES: [usize; 2] = [usize::MAX, 7];

impl MpiArithmetic {
    /// The number of words of [`Self::words`].
    pub const WORDS: usize = 2 * BITS;

    /// Tries all pairs. MPI has begun, and `own` is a communicator of this process alone whose calls return errors.
    pub fn probe(mpi: &Mpi, own: Handle) -> Self {
        let mut all = Self([0; Self::WORDS]);
        for pair in mpi.types.combined() {
            if is_made(mpi, own, &pair) {
                all.set(0, pair.of.1, pair.op.1);
                if is_same(mpi, &pair) {
                    all.set(BITS, pair.of.1, pair.op.1);
                }
            }
        }
        all
    }

    /// The words that another process makes the same value of.
    pub fn words(&self) -> [u64; Self::WORDS] {
        self.0
    }

    /// The pairs that are alike in this process and in another one, which sent its words.
    #[must_use]
    pub fn and(mut self, words: &[u64]) -> Self {
        for (mine, theirs) in self.0.iter_mut().zip(words) {
            *mine &= theirs;
        }
        self
    }

    /// The pairs that are alike in all processes, which all call it.
    ///
    /// # Errors
    /// E0427 where MPI refuses.
    pub fn and_of_all(self, mpi: &Mpi) -> Result<Self, Error> {
        let (of, op) = (mpi.types.word, mpi.types.bitwise_and);
        let mut all = [0_u64; Self::WORDS];
        let (from, to) = (self.0.as_ptr().cast(), all.as_mut_ptr().cast());
        let reduce = mpi.functions().allreduce;
        // SAFETY: both arrays have as many words.
        let code = unsafe { reduce(from, to, Self::WORDS as c_int, of, op, mpi.comm_world()) };
        if code == 0 { Ok(Self(all)) } else { Err(mpi.error("MPI_Allreduce", code)) }
    }

    /// Whether MPI combines this type by this op to the same bits as this crate; `None` where it does not combine it. A
    /// NaN may have other bits, and the extremum of a NaN or of zeros of both signs may be another value: MPI leaves it
    /// open.
    pub fn is_same(&self, mpi: &Mpi, of: Handle, op: Handle) -> Option<bool> {
        let row = mpi.types.row(mpi.abi.clean(of))?;
        let bit = row * OPS_LEN + mpi.types.op_row(mpi.abi.clean(op))?;
        let has = |first: usize| self.0[first + bit / 64] >> (bit % 64) & 1 != 0;
        has(0).then(|| has(BITS))
    }

    fn set(&mut self, first: usize, row: usize, op: usize) {
        let bit = row * OPS_LEN + op;
        self.0[first + bit / 64] |= 1 << (bit % 64);
    }
}

/// Whether MPI makes a reduction of this type by this op.
fn is_made(mpi: &Mpi, own: Handle, pair: &CombinedPair) -> bool {
    let (from, mut to) = ([0_u64; 2], [0_u64; 2]);
    let (from, to) = (from.as_ptr().cast(), to.as_mut_ptr().cast());
    // SAFETY: both have room for a value of any type that is combined.
    unsafe { (mpi.functions().allreduce)(from, to, 1, pair.of.0, pair.op.0, own) == 0 }
}

/// Whether MPI and this crate combine pairs of values to the same bits. The reduction is one that MPI makes: a function
/// without a communicator would end the program if it refused.
fn is_same(mpi: &Mpi, pair: &CombinedPair) -> bool {
    let Some(dtype) = pair.elements.combined_by(pair.by) else { return false };
    let Ok(kernel) = Kernel::new(dtype, pair.by) else { return false };
    let extremum = matches!(pair.by, ReduceOp::Min | ReduceOp::Max);
    let values = values(dtype, pair.elements == Elements::Truth);
    let is_open = |a: u64, b: u64| {
        let [a, b] = [a, b].map(|bits| float(dtype, bits));
        extremum && dtype.is_float() && (a.is_nan() || b.is_nan() || a == 0.0 && b == 0.0)
    };
    let pairs = values.iter().flat_map(|a| values.iter().map(move |b| (*a, *b)));
    let (first, second): (Vec<u64>, Vec<u64>) = pairs.filter(|(a, b)| !is_open(*a, *b)).unzip();
    let (first, second) = (ElementBits::new(dtype, &first), ElementBits::new(dtype, &second));
    let size = dtype.size();
    PIECES.into_iter().all(|piece| {
        let (mut ours, mut theirs) = (second.clone(), second.clone());
        let mut at = 0;
        while at < first.len {
            let len = piece.min(first.len - at);
            let from = first.words.as_ptr().cast::<u8>().wrapping_add(at * size);
            let [ours, theirs] = [&mut ours, &mut theirs]
                .map(|to| to.words.as_mut_ptr().cast::<u8>().wrapping_add(at * size));
            // SAFETY: each operand has `len` elements behind the place, aligned for them, and the three are apart.
            let code = unsafe {
                let (srcs, dsts) = ([from, ours.cast_const()], [ours]);
                kernel.run(&srcs, &dsts, len, MoveForm::CHAIN, None, Stores::Cached);
                let (from, to) = (from.cast(), theirs.cast());
                (mpi.functions().reduce_local)(from, to, len as c_int, pair.of.0, pair.op.0)
            };
            if code != 0 {
                return false;
            }
            at += len;
        }
        ours.elements(dtype).zip(theirs.elements(dtype)).all(|(ours, theirs)| {
            let nan =
                dtype.is_float() && float(dtype, ours).is_nan() && float(dtype, theirs).is_nan();
            ours == theirs || nan
        })
    })
}

/// Elements in memory that is aligned for all types.
#[derive(Clone)]
struct ElementBits {
    words: Vec<u64>,
    len: usize,
}

impl ElementBits {
    fn new(dtype: DType, elements: &[u64]) -> Self {
        let bytes =
            elements.iter().flat_map(|bits| bits.to_le_bytes().into_iter().take(dtype.size()));
        let mut bytes: Vec<u8> = bytes.collect();
        bytes.resize(bytes.len().next_multiple_of(8), 0);
        let words = bytes.chunks_exact(8).filter_map(|word| word.first_chunk());
        Self { words: words.map(|word| u64::from_le_bytes(*word)).collect(), len: elements.len() }
    }

    fn elements(&self, dtype: DType) -> impl Iterator<Item = u64> {
        let bits = 8 * dtype.size();
        let mask = u64::MAX >> (64 - bits);
        let per_word = 64 / bits;
        let all = self
            .words
            .iter()
            .flat_map(move |word| (0..per_word).map(move |at| word >> (at * bits) & mask));
        all.take(self.len)
    }
}

/// Returns the bits of values whose combinations tell ways of arithmetic apart.
fn values(dtype: DType, truth: bool) -> Vec<u64> {
    if truth {
        return vec![0, 1];
    }
    let bits = 8 * dtype.size();
    match dtype {
        DType::F64 => FLOATS.map(f64::to_bits).into(),
        DType::F32 => FLOATS.map(|value| u64::from((value as f32).to_bits())).into(),
        _ => {
            let mask = u64::MAX >> (64 - bits);
            let top = 1_u64 << (bits - 1);
            let small = [0, 1, 2, 3, 5, 100, 200, 0x55];
            let large = [
                top,
                top + 1,
                top - 1,
                top - 2,
                top / 2,
                top / 2 + 1,
                top + top / 2,
                u64::MAX,
                u64::MAX - 1,
            ];
            small.into_iter().chain(large).map(|value| value & mask).collect()
        }
    }
}

const FLOATS: [f64; 16] = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    3.0,
    1.0 / 3.0,
    -0.1,
    1e-7,
    16_777_217.0,
    -1e30,
    3e38,
    1e-42,
    -1e-40,
    f64::INFINITY,
    f64::NEG_INFINITY,
    f64::NAN,
];

fn float(dtype: DType, bits: u64) -> f64 {
    match dtype {
        DType::F64 => f64::from_bits(bits),
        DType::F32 => f64::from(f32::from_bits(bits as u32)),
        _ => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_those_that_were_given() {
        for dtype in [DType::I8, DType::U32, DType::F32, DType::F64] {
            let values = values(dtype, false);
            let odd = &values[1..];
            assert!(
                ElementBits::new(dtype, odd).elements(dtype).eq(odd.iter().copied()),
                "{dtype}"
            );
        }
    }

    #[test]
    fn pairs_are_alike_where_they_are_in_all_processes() {
        let (mut mine, mut theirs) =
            (MpiArithmetic([0; MpiArithmetic::WORDS]), MpiArithmetic([0; MpiArithmetic::WORDS]));
        mine.set(0, TYPES_LEN - 1, OPS_LEN - 1);
        mine.set(BITS, 3, 4);
        theirs.set(BITS, 3, 4);
        assert_eq!(mine.and(&theirs.words()), theirs);
    }
}
