//! A plain, slow reference of every collective, straight from its definition and independent of any schedule: the right
//! results, the number of wrong elements of an output, and test data.

mod exact;
pub(crate) mod fill;

use roundelay_core::collective::{Collective, Expected};
use roundelay_core::dtype::{DType, ReduceOp};
use roundelay_core::ids::RankId;

use exact::Exact;
pub use fill::fill;

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
    fn ranks(&self) -> impl Iterator<Item = RankId> + use<> {
        (0..self.nranks).map(RankId)
    }

    /// Random inputs of all ranks, as bytes; empty where a rank has none.
    pub fn inputs(&self, seed: u64) -> Vec<Vec<u8>> {
        let units = |rank| self.collective.input_units(rank, self.nranks, self.root) as usize;
        self.ranks()
            .map(|rank| fill(self.dtype, self.op, seed, rank.0, units(rank) * self.count))
            .collect()
    }

    /// The outputs of all ranks, each float correctly rounded; empty where a rank has none.
    pub fn outputs<I: AsRef<[u8]>>(&self, inputs: &[I]) -> Vec<Vec<u8>> {
        let units = |rank| self.collective.output_units(rank, self.nranks, self.root) as usize;
        let size = self.dtype.size();
        let mut outputs: Vec<Vec<u8>> =
            self.ranks().map(|rank| vec![0; units(rank) * self.count * size]).collect();
        self.each_element(inputs, |rank, at, exact| {
            let bits = exact.bits(self.dtype);
            let bytes = if cfg!(target_endian = "big") {
                bits.to_be_bytes()[8 - size..].to_vec()
            } else {
                bits.to_le_bytes()[..size].to_vec()
            };
            outputs[rank.index()][at * size..][..size].copy_from_slice(&bytes);
        });
        outputs
    }

    /// Number of elements of all outputs that are wrong. Copies, integers, min and max must be exact; other floats must
    /// be within the error bound of a reduction tree of depth `depth`
    /// ([`roundelay_core::verify::Proof::reduce_depth`]).
    pub fn count_wrong<I: AsRef<[u8]>>(&self, inputs: &[I], outputs: &[&[u8]], depth: u32) -> u64 {
        // A term of a sum is rounded once on each step to the root; a product collects the relative errors of all its
        // steps, with any tree.
        let steps = if self.op == ReduceOp::Prod { self.nranks - 1 } else { depth };
        let mut wrong = 0;
        self.each_element(inputs, |rank, at, exact| {
            let got = exact::bits_at(self.dtype, outputs[rank.index()], at);
            wrong += u64::from(!exact.admits(self.dtype, self.op, steps, got));
        });
        wrong
    }

    /// Visits every element of every output; a reduction is computed once for all ranks that receive it.
    fn each_element<I: AsRef<[u8]>>(
        &self,
        inputs: &[I],
        mut visit: impl FnMut(RankId, usize, Exact),
    ) {
        let element = |rank: RankId, unit: u32, i: usize| {
            let input = inputs[rank.index()].as_ref();
            exact::bits_at(self.dtype, input, unit as usize * self.count + i)
        };
        let mut wanted: Vec<(u32, RankId, u32)> = Vec::new();
        for rank in self.ranks() {
            for unit in 0..self.collective.output_units(rank, self.nranks, self.root) {
                let at = unit as usize * self.count;
                match self.collective.expected(rank, unit, self.root) {
                    Expected::Reduced { unit: input } => wanted.push((input, rank, unit)),
                    Expected::Copied { rank: from, unit: input } => {
                        for i in 0..self.count {
                            visit(rank, at + i, Exact::Bits(element(from, input, i)));
                        }
                    }
                }
            }
        }
        wanted.sort_unstable();
        for same in wanted.chunk_by(|a, b| a.0 == b.0) {
            let input = same[0].0;
            let mut elements = Vec::with_capacity(self.nranks as usize);
            for i in 0..self.count {
                elements.clear();
                elements.extend(self.ranks().map(|rank| element(rank, input, i)));
                let exact = exact::reduce(self.dtype, self.op, &elements);
                for &(_, rank, unit) in same {
                    visit(rank, unit as usize * self.count + i, exact);
                }
            }
        }
    }
}
