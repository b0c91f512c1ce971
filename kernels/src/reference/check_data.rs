//! Data that every rank can compute for every other rank, for the check of a plan's first call: an element follows from
//! its rank, its block and its place there, and no reduction of these elements is ever rounded. So there is one right
//! result in every order of summation, and a rank needs no data of other ranks to know it.

use std::fmt;
use std::ops::Range;

use roundelay_core::collective::{Collective, Expected};
use roundelay_core::counts::Block;
use roundelay_core::dtype::{DType, ReduceOp};
use roundelay_core::ids::RankId;
use roundelay_core::random::SplitMix64;

use super::exact::{self, Exact, Tolerance};

/// One rank in a call on known data, with its blocks: the units of its input and output.
#[derive(Clone, Debug)]
pub(crate) struct KnownRank {
    pub(crate) collective: Collective,
    pub(crate) nranks: u32,
    /// The root; rank 0 where there is none.
    pub(crate) root: RankId,
    pub(crate) dtype: DType,
    pub(crate) op: ReduceOp,
    pub(crate) rank: RankId,
    pub(crate) input: Vec<Block>,
    pub(crate) output: Vec<Block>,
}

/// The elements of a rank's output that are not what they should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WrongElements {
    /// How many there are.
    pub(crate) number: u64,
    /// The place of the first, in elements from the beginning of the output.
    pub(crate) first: u64,
    /// The bits of the first as they should be.
    pub(crate) expected: u64,
    /// The bits of the first as they are.
    pub(crate) found: u64,
}

/// The details of [`Error::WrongData`](crate::Error::WrongData) (E0433). All ranks get the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrongData {
    /// The first rank whose output differs.
    pub rank: RankId,
    /// The place of the first element that differs, counted from 0 from the beginning of the rank's output.
    pub element: u64,
    /// The value that the element should have.
    pub expected: String,
    /// The value that it has.
    pub found: String,
    /// The number of the rank's elements that differ.
    pub number: u64,
    /// The call, in words.
    pub call: String,
    /// The name of the algorithm that ran.
    pub algorithm: String,
}

impl fmt::Display for WrongData {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rank, element, expected, found, number, call, algorithm } = self;
        let others = match number {
            1 => String::new(),
            _ => format!(" (and {} more of its elements are wrong)", number - 1),
        };
        write!(
            f,
            "{algorithm} gives wrong data in {call}: on known data, element {element} of the output of rank {rank} is {found} and must be {expected}{others}"
        )
    }
}

impl WrongElements {
    /// Returns the error's details for the rank whose elements these are.
    pub(crate) fn of(
        &self,
        rank: RankId,
        dtype: DType,
        (call, algorithm): (String, String),
    ) -> WrongData {
        let [expected, found] = [self.expected, self.found].map(|bits| exact::shown(dtype, bits));
        WrongData {
            rank,
            element: self.first,
            expected,
            found,
            number: self.number,
            call,
            algorithm,
        }
    }
}

impl KnownRank {
    /// Writes the rank's input; `origin` is the place in `bytes` from which the places of blocks are counted.
    pub(crate) fn fill(&self, bytes: &mut [u8], origin: usize) {
        for (unit, block) in (0..).zip(&self.input) {
            let here = within(origin, block, self.dtype);
            for (at, element) in bytes[here].chunks_exact_mut(self.dtype.size()).enumerate() {
                let bits = self.element(self.rank, unit, at as u64);
                exact::put_bits(self.dtype, element, 0, bits);
            }
        }
    }

    /// Returns the elements of the rank's output that are wrong; `origin` as for [`Self::fill`].
    pub(crate) fn wrong(&self, bytes: &[u8], origin: usize) -> Option<WrongElements> {
        let mut wrong: Option<WrongElements> = None;
        let mut all = Vec::with_capacity(self.nranks as usize);
        // No step of the reduction rounds, but for the division of an average.
        let tolerance = Tolerance::new(self.dtype, self.op, 0);
        for (unit, block) in (0..).zip(&self.output) {
            let made_of = self.collective.expected_value(self.rank, unit, self.root);
            let here = within(origin, block, self.dtype);
            for (at, element) in bytes[here].chunks_exact(self.dtype.size()).enumerate() {
                let exact = match made_of {
                    Expected::Copied { rank, unit } => {
                        Exact::Bits(self.element(rank, unit, at as u64))
                    }
                    Expected::Reduced { unit } => {
                        all.clear();
                        let ranks = (0..self.nranks).map(RankId);
                        all.extend(ranks.map(|rank| self.element(rank, unit, at as u64)));
                        exact::reduce(self.dtype, self.op, &all)
                    }
                };
                let found = exact::bits_at(self.dtype, element, 0);
                if !exact.admits(&tolerance, found) {
                    let expected = exact.bits(self.dtype);
                    let first = block.start + at as u64;
                    let new = WrongElements { number: 0, first, expected, found };
                    wrong.get_or_insert(new).number += 1;
                }
            }
        }
        wrong
    }

    /// Returns the bits of element `at` of a block of a rank's input. Ranks and places differ in almost all elements.
    fn element(&self, rank: RankId, unit: u32, at: u64) -> u64 {
        let block = SplitMix64(u64::from(rank.0) << 32 | u64::from(unit)).draw();
        let random = SplitMix64(block ^ at).draw();
        let (dtype, op) = (self.dtype, self.op);
        let bits = 8 * dtype.size();
        if !dtype.is_float() {
            return (u64::MAX >> (64 - bits)) & self.integer(random);
        }
        let reduces = self.collective.reduces();
        let sign = if random >> 63 == 0 { 1.0 } else { -1.0 };
        let turn = u64::from(rank.0) + u64::from(unit) + at;
        let value = match op {
            ReduceOp::Sum | ReduceOp::Avg if reduces => {
                // All integers up to this one are exact, so all partial sums are if their terms are at most that in all.
                let most = 1_u64 << (1 + mantissa_bits(dtype));
                let each = most / u64::from(self.nranks);
                let turns = u64::from(self.nranks).div_ceil(most);
                if !turn.is_multiple_of(turns) {
                    return 0;
                }
                sign * (1 + random % each.max(1)) as f64
            }
            ReduceOp::Prod if reduces => {
                // Powers of two are exact, and in every type 2^6 and 2^-6 are normal numbers.
                let turns = u64::from(self.nranks).div_ceil(6);
                match turn.is_multiple_of(turns) {
                    true if random & 1 == 0 => sign * 2.0,
                    true => sign * 0.5,
                    false => -1.0,
                }
            }
            // Any number below 2: the first bit of the exponent is 0.
            _ => return (u64::MAX >> (64 - bits)) & random & !(1_u64 << (bits - 2)),
        };
        Exact::Near { high: value, low: 0.0, scale: 0.0 }.bits(dtype)
    }

    /// Returns an integer of these random bits. For the logical ops some are 0, few for `land` and many for `lor`, so
    /// that both results occur; factors are odd, so that no product vanishes.
    fn integer(&self, random: u64) -> u64 {
        let zeros = match self.op {
            _ if !self.collective.reduces() => 0,
            ReduceOp::Land => 1,
            ReduceOp::Lxor => 4,
            ReduceOp::Lor => 7,
            ReduceOp::Prod => return random | 1,
            _ => 0,
        };
        if random >> 61 < zeros { 0 } else { random | u64::from(zeros > 0) }
    }
}

/// Returns the bytes of a block, which may be anywhere if it has no elements.
fn within(origin: usize, block: &Block, dtype: DType) -> Range<usize> {
    if block.count == 0 {
        return 0..0;
    }
    let [start, len] = [block.start, block.count].map(|elements| elements as usize * dtype.size());
    let start = origin.wrapping_add(start);
    start..start + len
}

/// The bits of a float's fraction.
pub(crate) fn mantissa_bits(dtype: DType) -> u32 {
    match dtype {
        DType::F8E5M2 => 2,
        DType::F8E4M3 => 3,
        DType::Bf16 => 7,
        DType::F16 => 10,
        DType::F32 => 23,
        _ => 52,
    }
}

#[cfg(test)]
mod tests {
    use super::super::Reference;
    use super::*;

    fn kinds() -> Vec<(DType, ReduceOp)> {
        let of = |dtype: DType| ReduceOp::ALL.iter().map(move |op| (dtype, *op));
        DType::ALL.iter().copied().flat_map(of).filter(|(dtype, op)| op.takes(*dtype)).collect()
    }

    fn rank(reference: &Reference, rank: u32) -> KnownRank {
        let Reference { collective, nranks, root, dtype, op, count } = *reference;
        let rank = RankId(rank);
        let blocks = |units: u32| Block::pack((0..units).map(|_| count as u64));
        let input = blocks(collective.input_units(rank, nranks, root));
        let output = blocks(collective.output_units(rank, nranks, root));
        KnownRank { collective, nranks, root, dtype, op, rank, input, output }
    }

    /// The results of the plain reference are right, and each other result is found at its place.
    #[test]
    fn known_results_are_those_of_the_reference() {
        for (nranks, collective) in
            [1, 2, 3, 7, 20].into_iter().flat_map(|n| Collective::ALL.map(|c| (n, c)))
        {
            for (dtype, op) in kinds() {
                let (root, count) = (RankId(nranks / 2), 5);
                let reference = Reference { collective, nranks, root, count, dtype, op };
                let ranks: Vec<KnownRank> = (0..nranks).map(|r| rank(&reference, r)).collect();
                let filled = |known: &KnownRank| {
                    let mut bytes = vec![0; Block::end(&known.input) as usize * dtype.size()];
                    known.fill(&mut bytes, 0);
                    bytes
                };
                let inputs: Vec<Vec<u8>> = ranks.iter().map(filled).collect();
                for (known, mut output) in ranks.iter().zip(reference.outputs(&inputs)) {
                    assert_eq!(known.wrong(&output, 0), None, "{reference:?}");
                    let Some(last) = output.len().checked_sub(dtype.size()) else { continue };
                    // The lowest bit of an average of floats may be rounded either way.
                    let top = if cfg!(target_endian = "big") { 0 } else { dtype.size() - 1 };
                    output[last + top] ^= 0x40;
                    let wrong = known.wrong(&output, 0).expect("it is wrong");
                    assert_eq!((wrong.number, wrong.first), (1, Block::end(&known.output) - 1));
                    assert_ne!(wrong.expected, wrong.found);
                }
            }
        }
    }

    /// Sums and products are equal in every order, also if each step is rounded, for any number of ranks; a
    /// contribution that is lost or counted twice shows.
    #[test]
    fn known_floats_are_never_rounded() {
        for nranks in [2, 5, 8, 9, 16, 17, 40, 300, 1000] {
            let floats = kinds().into_iter().filter(|(dtype, op)| {
                dtype.is_float() && matches!(op, ReduceOp::Sum | ReduceOp::Prod)
            });
            for (dtype, op) in floats {
                let (collective, root) = (Collective::AllReduce, RankId(0));
                let reference = Reference { collective, nranks, root, count: 1, dtype, op };
                let known = rank(&reference, 0);
                for at in 0..20 {
                    let all: Vec<u64> =
                        (0..nranks).map(|r| known.element(RankId(r), 0, at)).collect();
                    let two = |a: u64, b: &u64| exact::reduce(dtype, op, &[a, *b]).bits(dtype);
                    let exact = exact::reduce(dtype, op, &all).bits(dtype);
                    let up = all[1..].iter().fold(all[0], two);
                    let (last, others) = all.split_last().expect("two ranks");
                    let down = others.iter().rev().fold(*last, two);
                    assert_eq!([up, down], [exact; 2], "{dtype} {op} {nranks}");
                    let without = |r: usize| {
                        let others: Vec<u64> = [&all[..r], &all[r + 1..]].concat();
                        exact::reduce(dtype, op, &others).bits(dtype)
                    };
                    let seen = (0..all.len()).filter(|r| without(*r) != exact).count();
                    let turns = match op {
                        ReduceOp::Sum => nranks.div_ceil(1 << (1 + mantissa_bits(dtype)).min(20)),
                        _ => 1,
                    };
                    assert!(seen >= (nranks / turns) as usize, "{dtype} {op} {nranks}: {seen}");
                }
            }
        }
    }
}
