//! A plain, slow reference of every collective, straight from its definition and independent of any schedule: the right
//! results, the number of wrong elements of an output, and test data.

pub(crate) mod check_data;
mod exact;
pub(crate) mod fill;

use std::ops::Range;

use roundelay_core::collective::{Collective, Expected};
use roundelay_core::counts::Counts;
use roundelay_core::dtype::{DType, ReduceOp};
use roundelay_core::ids::RankId;

pub use check_data::WrongData;
pub(crate) use check_data::{KnownRank, WrongElements};
use exact::{Exact, Tolerance};
pub use fill::fill;
pub use roundelay_core::random::SplitMix64;

/// One collective, on data of one count.
#[derive(Clone, Copy, Debug)]
pub struct Reference {
    /// The collective.
    pub collective: Collective,
    /// Number of ranks.
    pub nranks: u32,
    /// The root; rank 0 where there is none.
    pub root: RankId,
    /// Elements a unit, as NCCL counts.
    pub count: usize,
    /// Element type.
    pub dtype: DType,
    /// Reduce op that the element type supports.
    pub op: ReduceOp,
}

impl Reference {
    /// Returns the reference with a count for each block, where such counts are given; the count of `self` has no meaning
    /// then.
    pub fn with_counts<'a>(&'a self, counts: Option<&'a Counts>) -> ReferenceData<'a> {
        ReferenceData { reference: self, counts }
    }

    /// Random inputs of all ranks, as bytes; empty where a rank has none.
    pub fn inputs(&self, seed: u64) -> Vec<Vec<u8>> {
        self.with_counts(None).inputs(seed)
    }

    /// The outputs of all ranks, each float correctly rounded; empty where a rank has none.
    pub fn outputs<I: AsRef<[u8]>>(&self, inputs: &[I]) -> Vec<Vec<u8>> {
        self.with_counts(None).outputs(inputs)
    }

    /// Number of elements of all outputs that are wrong. Copies, integers, min and max must be exact; other floats must
    /// be within the error bound of a reduction tree of depth `depth`
    /// ([`roundelay_core::verify::Proof::reduce_depth`]).
    pub fn count_wrong<I: AsRef<[u8]>>(&self, inputs: &[I], outputs: &[&[u8]], depth: u32) -> u64 {
        self.with_counts(None).count_wrong(inputs, outputs, depth)
    }
}

/// A reference with the counts of its blocks: see [`Reference::with_counts`].
#[derive(Clone, Copy, Debug)]
pub struct ReferenceData<'a> {
    reference: &'a Reference,
    /// The counts of the blocks, where they are not all that of the reference.
    counts: Option<&'a Counts>,
}

impl ReferenceData<'_> {
    fn ranks(&self) -> impl Iterator<Item = RankId> + use<> {
        (0..self.reference.nranks).map(RankId)
    }

    fn input_units(&self, rank: RankId) -> u32 {
        let Reference { collective, nranks, root, .. } = *self.reference;
        collective.input_units(rank, nranks, root)
    }

    fn output_units(&self, rank: RankId) -> u32 {
        let Reference { collective, nranks, root, .. } = *self.reference;
        collective.output_units(rank, nranks, root)
    }

    /// Returns the elements of a rank's input that a unit has.
    fn input(&self, rank: RankId, unit: u32) -> Range<usize> {
        self.unit(unit, self.counts.map(|counts| counts.input_block(rank, unit)))
    }

    /// Returns the elements of a rank's output that a unit has.
    fn output(&self, rank: RankId, unit: u32) -> Range<usize> {
        self.unit(unit, self.counts.map(|counts| counts.output_block(rank, unit)))
    }

    fn unit(&self, unit: u32, block: Option<Range<u64>>) -> Range<usize> {
        let (unit, count) = (unit as usize, self.reference.count);
        match block {
            Some(block) => block.start as usize..block.end as usize,
            None => unit * count..(unit + 1) * count,
        }
    }

    /// Random inputs of all ranks, as [`Reference::inputs`] makes them.
    pub fn inputs(&self, seed: u64) -> Vec<Vec<u8>> {
        let Reference { dtype, op, .. } = *self.reference;
        let len = |rank| match self.input_units(rank) {
            0 => 0,
            units => self.input(rank, units - 1).end,
        };
        self.ranks().map(|rank| fill(dtype, op, seed, rank.0, len(rank))).collect()
    }

    /// The outputs of all ranks, as [`Reference::outputs`] makes them.
    pub fn outputs<I: AsRef<[u8]>>(&self, inputs: &[I]) -> Vec<Vec<u8>> {
        let dtype = self.reference.dtype;
        let size = dtype.size();
        let len = |rank| match self.output_units(rank) {
            0 => 0,
            units => self.output(rank, units - 1).end,
        };
        let mut outputs: Vec<Vec<u8>> =
            self.ranks().map(|rank| vec![0; len(rank) * size]).collect();
        self.each_element(inputs, |rank, at, exact| {
            exact::put_bits(dtype, &mut outputs[rank.index()], at, exact.bits(dtype));
        });
        outputs
    }

    /// Number of elements of all outputs that are wrong, as [`Reference::count_wrong`] counts them.
    pub fn count_wrong<I: AsRef<[u8]>>(&self, inputs: &[I], outputs: &[&[u8]], depth: u32) -> u64 {
        let Reference { nranks, dtype, op, .. } = *self.reference;
        // A term of a sum is rounded once on each step to the root; a product collects the relative errors of all its
        // steps, with any tree.
        let steps = if op == ReduceOp::Prod { nranks - 1 } else { depth };
        let (mut wrong, within) = (0, Tolerance::new(dtype, op, steps));
        self.each_element(inputs, |rank, at, exact| {
            let got = exact::bits_at(dtype, outputs[rank.index()], at);
            wrong += u64::from(!exact.admits(&within, got));
        });
        wrong
    }

    /// Visits every element of every output; a reduction is computed once for all ranks that receive it.
    fn each_element<I: AsRef<[u8]>>(
        &self,
        inputs: &[I],
        mut visit: impl FnMut(RankId, usize, Exact),
    ) {
        let Reference { collective, nranks, root, dtype, op, .. } = *self.reference;
        let mut wanted: Vec<(u32, RankId, u32)> = Vec::new();
        for rank in self.ranks() {
            for unit in 0..self.output_units(rank) {
                let to = self.output(rank, unit);
                match collective.expected_value(rank, unit, root) {
                    Expected::Reduced { unit: input } => wanted.push((input, rank, unit)),
                    Expected::Copied { rank: from, unit: input } => {
                        let from_block = self.input(from, input).start;
                        let from = inputs[from.index()].as_ref();
                        for (i, at) in to.enumerate() {
                            let bits = exact::bits_at(dtype, from, from_block + i);
                            visit(rank, at, Exact::Bits(bits));
                        }
                    }
                }
            }
        }
        wanted.sort_unstable();
        for same in wanted.chunk_by(|a, b| a.0 == b.0) {
            let (input, first, unit) = same[0];
            let from: Vec<usize> = self.ranks().map(|rank| self.input(rank, input).start).collect();
            let to: Vec<usize> =
                same.iter().map(|&(_, rank, unit)| self.output(rank, unit).start).collect();
            let mut elements = Vec::with_capacity(nranks as usize);
            for i in 0..self.output(first, unit).len() {
                elements.clear();
                let given = inputs.iter().zip(&from);
                elements.extend(
                    given.map(|(input, from)| exact::bits_at(dtype, input.as_ref(), from + i)),
                );
                let exact = exact::reduce(dtype, op, &elements);
                for (&(_, rank, _), to) in same.iter().zip(&to) {
                    visit(rank, to + i, exact);
                }
            }
        }
    }
}
