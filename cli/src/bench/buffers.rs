//! The buffers of all ranks, made once for a size and used by every algorithm and by the limit.

use roundelay::{Collective, DType, Schedule};
use roundelay_core::ids::RankId;
use roundelay_kernels::reference::{Reference, fill};

use crate::aligned::Aligned;

/// The seed of the inputs.
pub(super) const SEED: u64 = 1;
/// The byte that fills a result before the checked run.
const UNTOUCHED: u8 = 0xA5;
/// The buffers of all measurements: inputs, and room for the results of either form.
pub(super) struct BenchBuffers {
    pub(super) reference: Reference,
    inputs: Vec<Aligned>,
    rooms: Vec<Aligned>,
}

impl BenchBuffers {
    pub(super) fn new(reference: Reference) -> Self {
        let Reference { collective, nranks, root, count, dtype, op } = reference;
        let ranks = || (0..nranks).map(RankId);
        let unit = count * dtype.size();
        let sizes = |rank| sizes(collective, rank, nranks, root).map(|units| units * unit);
        let inputs = ranks().map(|rank| {
            let [len, _] = sizes(rank);
            let mut input = Aligned::new(len, 0, rank.0);
            input.copy_from_slice(&fill(dtype, op, SEED, rank.0, len / dtype.size()));
            input
        });
        let inputs = inputs.collect();
        let rooms = ranks().map(|rank| {
            let len = sizes(rank).into_iter().max().unwrap_or(0);
            Aligned::new(len, UNTOUCHED, nranks + rank.0)
        });
        Self { reference, inputs, rooms: rooms.collect() }
    }

    fn output(&self, rank: RankId) -> usize {
        let Reference { collective, nranks, root, count, dtype, .. } = self.reference;
        sizes(collective, rank, nranks, root)[1] * count * dtype.size()
    }

    /// Returns the inputs, and outputs out of place.
    pub(super) fn apart(&mut self) -> (Vec<&mut [u8]>, Vec<&mut [u8]>) {
        let nranks = self.reference.nranks;
        let lens: Vec<usize> = (0..nranks).map(|rank| self.output(RankId(rank))).collect();
        let inputs = self.inputs.iter_mut().map(|input| &mut **input).collect();
        let outputs = self.rooms.iter_mut().zip(lens);
        (inputs, outputs.map(|(room, len)| &mut room[..len]).collect())
    }

    /// Returns the one buffer of each rank for runs in place.
    pub(super) fn shared(&mut self) -> Vec<&mut [u8]> {
        self.rooms.iter_mut().map(|room| &mut **room).collect()
    }

    /// Returns the starts of input and output in the buffer of a rank, in place.
    fn starts(&self, rank: RankId) -> (usize, usize) {
        let Reference { collective, root, count, dtype, .. } = self.reference;
        let unit = count * dtype.size();
        let (input, output) = collective.alias(rank, root).starts();
        (input as usize * unit, output as usize * unit)
    }

    /// Fills the buffers, so that no byte of an earlier result counts as a new one.
    pub(super) fn clear(&mut self) {
        self.rooms.iter_mut().for_each(|room| room.fill(UNTOUCHED));
    }

    /// Puts the inputs where they lie in place.
    pub(super) fn enter(&mut self) {
        self.clear();
        for rank in (0..self.reference.nranks).map(RankId) {
            let (start, _) = self.starts(rank);
            let input = self.inputs[rank.index()].as_ref();
            self.rooms[rank.index()][start..][..input.len()].copy_from_slice(input);
        }
    }

    /// Returns the places of the results.
    pub(super) fn results(&mut self, in_place: bool) -> Vec<&mut [u8]> {
        let ranks = (0..self.reference.nranks).map(RankId);
        let places: Vec<_> = ranks
            .map(|rank| (if in_place { self.starts(rank).1 } else { 0 }, self.output(rank)))
            .collect();
        let rooms = self.rooms.iter_mut().zip(places);
        rooms.map(|(room, (start, len))| &mut room[start..][..len]).collect()
    }

    /// Returns the number of wrong elements in the results, which lie as in place or at the beginning.
    pub(super) fn wrong(&self, reduce_depth: u32, in_place: bool) -> u64 {
        let ranks = (0..self.reference.nranks).map(RankId);
        let results = ranks.map(|rank| {
            let start = if in_place { self.starts(rank).1 } else { 0 };
            &self.rooms[rank.index()].as_ref()[start..][..self.output(rank)]
        });
        let results: Vec<&[u8]> = results.collect();
        self.reference.count_wrong(&self.inputs, &results, reduce_depth)
    }
}

/// Units of the input and the output of a rank.
fn sizes(collective: Collective, rank: RankId, nranks: u32, root: RankId) -> [usize; 2] {
    [collective.input_units(rank, nranks, root), collective.output_units(rank, nranks, root)]
        .map(|units| units as usize)
}

/// Returns the bytes of the inputs and rooms of all ranks.
pub(super) fn needed(schedule: &Schedule, count: u64, dtype: DType) -> u128 {
    let Schedule { collective, nranks, root, .. } = *schedule;
    let units = |rank| {
        let [input, output] = sizes(collective, RankId(rank), nranks, root);
        (input + input.max(output)) as u128
    };
    (0..nranks).map(units).sum::<u128>() * u128::from(count) * dtype.size() as u128
}
