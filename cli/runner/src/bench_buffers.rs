//! The buffers of all ranks, made once for a size and used by every algorithm and by the limit.

use roundelay::{Collective, DType, Schedule};
use roundelay_core::counts::{Block, Counts};
use roundelay_core::ids::RankId;
use roundelay_kernels::reference::{Reference, fill};

use crate::page_buffers::Aligned;

/// The seed of the inputs.
pub const SEED: u64 = 1;
/// The byte that fills a result before the checked run.
const UNTOUCHED: u8 = 0xA5;
/// The buffers of all measurements: inputs, and room for the results of either form.
pub struct BenchBuffers {
    /// The collective, the number of ranks and the data.
    pub reference: Reference,
    counts: Option<Counts>,
    /// Bytes of the input and the output of each rank.
    lens: Vec<[usize; 2]>,
    /// The starts of both in the one buffer of each rank, in place.
    starts: Vec<[usize; 2]>,
    inputs: Vec<Aligned>,
    rooms: Vec<Aligned>,
}

impl BenchBuffers {
    /// Makes the buffers of all ranks; `counts` are those of blocks that have a count each.
    pub fn new(reference: Reference, counts: Option<&Counts>) -> Self {
        let Reference { collective, nranks, root, count, dtype, op } = reference;
        let ranks = || (0..nranks).map(RankId);
        let size = dtype.size();
        let end = |blocks: &[Block]| Block::end(blocks) as usize * size;
        let lens = |rank| match counts {
            Some(counts) => {
                let blocks = counts.of_rank(rank, root);
                [end(blocks.input()), end(blocks.output())]
            }
            None => sizes(collective, rank, nranks, root).map(|units| units * count * size),
        };
        let starts = |rank| {
            let (from, to) = collective.alias(rank, root).starts();
            let before = |unit: u32, range: &dyn Fn(&Counts) -> u64| match counts {
                Some(counts) if unit > 0 => range(counts) as usize * size,
                Some(_) => 0,
                None => unit as usize * count * size,
            };
            let input = before(from, &|counts| counts.output_block(rank, from).start);
            [input, before(to, &|counts| counts.input_block(rank, to).start)]
        };
        let (lens, starts): (Vec<_>, Vec<_>) =
            ranks().map(|rank| (lens(rank), starts(rank))).unzip();
        let inputs = ranks().zip(&lens).map(|(rank, [len, _])| {
            let mut input = Aligned::new(*len, 0, rank.0);
            input.copy_from_slice(&fill(dtype, op, SEED, rank.0, len / size));
            input
        });
        let inputs = inputs.collect();
        let rooms = ranks().zip(&lens).map(|(rank, [input, output])| {
            Aligned::new(*input.max(output), UNTOUCHED, nranks + rank.0)
        });
        let rooms = rooms.collect();
        Self { reference, counts: counts.cloned(), lens, starts, inputs, rooms }
    }

    /// Returns the inputs, and outputs out of place.
    pub fn apart(&mut self) -> (Vec<&mut [u8]>, Vec<&mut [u8]>) {
        let inputs = self.inputs.iter_mut().map(|input| &mut **input).collect();
        let outputs = self.rooms.iter_mut().zip(&self.lens);
        (inputs, outputs.map(|(room, [_, len])| &mut room[..*len]).collect())
    }

    /// Returns the one buffer of each rank for runs in place.
    pub fn in_place(&mut self) -> Vec<&mut [u8]> {
        self.rooms.iter_mut().map(|room| &mut **room).collect()
    }

    /// Fills the buffers, so that no byte of an earlier result counts as a new one.
    pub fn clear(&mut self) {
        self.rooms.iter_mut().for_each(|room| room.fill(UNTOUCHED));
    }

    /// Puts the inputs where they lie in place.
    pub fn enter(&mut self) {
        self.clear();
        let rooms = self.rooms.iter_mut().zip(&self.starts);
        for ((room, [start, _]), input) in rooms.zip(&self.inputs) {
            room[*start..][..input.len()].copy_from_slice(input);
        }
    }

    /// Returns the places of the results.
    pub fn results(&mut self, in_place: bool) -> Vec<&mut [u8]> {
        let places = self.lens.iter().zip(&self.starts);
        let rooms = self.rooms.iter_mut().zip(places);
        let results = rooms.map(|(room, ([_, len], [_, start]))| {
            let start = if in_place { *start } else { 0 };
            &mut room[start..][..*len]
        });
        results.collect()
    }

    /// Returns the number of wrong elements in the results, which lie as in place or at the beginning.
    pub fn wrong(&self, reduce_depth: u32, in_place: bool) -> u64 {
        let places = self.lens.iter().zip(&self.starts);
        let results = self.rooms.iter().zip(places).map(|(room, ([_, len], [_, start]))| {
            let start = if in_place { *start } else { 0 };
            &room.as_ref()[start..][..*len]
        });
        let results: Vec<&[u8]> = results.collect();
        let reference = self.reference.with_counts(self.counts.as_ref());
        reference.count_wrong(&self.inputs, &results, reduce_depth)
    }
}

/// Units of the input and the output of a rank.
fn sizes(collective: Collective, rank: RankId, nranks: u32, root: RankId) -> [usize; 2] {
    [collective.input_units(rank, nranks, root), collective.output_units(rank, nranks, root)]
        .map(|units| units as usize)
}

/// Returns the bytes of the inputs and rooms of all ranks.
pub fn needed_bytes(schedule: &Schedule, count: u64, dtype: DType) -> u128 {
    let Schedule { collective, nranks, root, .. } = *schedule;
    let units = |rank| {
        let [input, output] = sizes(collective, RankId(rank), nranks, root);
        (input + input.max(output)) as u128
    };
    (0..nranks).map(units).sum::<u128>() * u128::from(count) * dtype.size() as u128
}
