//! The buffers of all ranks, made once for a size and used by every algorithm and by the limit.

use std::ops::Range;

use roundelay::Collective;
use roundelay_core::ids::RankId;
use roundelay_kernels::reference::{Reference, fill};

/// What a result holds before the checked run.
const UNTOUCHED: u8 = 0xA5;
/// Cache lines from the beginning of a rank's page to its buffer, times the rank: without, the buffers of all ranks
/// would fall into the same sets of a cache.
const STAGGER: usize = 64;
const PAGE: usize = 4096;

/// A buffer as it is measured.
pub(super) struct Aligned {
    bytes: Vec<u8>,
    range: Range<usize>,
}

impl Aligned {
    fn new(len: usize, content: u8, nth: u32) -> Self {
        let bytes = vec![content; if len == 0 { 0 } else { len + 2 * PAGE }];
        let start = if len == 0 {
            0
        } else {
            bytes.as_ptr().align_offset(PAGE) + nth as usize * STAGGER % PAGE
        };
        Self { bytes, range: start..start + len }
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[self.range.clone()]
    }
}

impl AsRef<[u8]> for Aligned {
    fn as_ref(&self) -> &[u8] {
        &self.bytes[self.range.clone()]
    }
}

/// The buffers that everything is measured on: inputs, and room for the results of either form.
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
            input.bytes_mut().copy_from_slice(&fill(dtype, op, 1, rank.0, len / dtype.size()));
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

    /// Inputs, and outputs out of place.
    pub(super) fn apart(&mut self) -> (Vec<&[u8]>, Vec<&mut [u8]>) {
        let nranks = self.reference.nranks;
        let lens: Vec<usize> = (0..nranks).map(|rank| self.output(RankId(rank))).collect();
        let inputs = self.inputs.iter().map(AsRef::as_ref).collect();
        let outputs = self.rooms.iter_mut().zip(lens);
        (inputs, outputs.map(|(room, len)| &mut room.bytes_mut()[..len]).collect())
    }

    /// The one buffer of each rank in place.
    pub(super) fn shared(&mut self) -> Vec<&mut [u8]> {
        self.rooms.iter_mut().map(Aligned::bytes_mut).collect()
    }

    /// Where input and output begin in the buffer of a rank, in place.
    fn starts(&self, rank: RankId) -> (usize, usize) {
        let Reference { collective, root, count, dtype, .. } = self.reference;
        let unit = count * dtype.size();
        let (input, output) = collective.alias(rank, root).starts();
        (input as usize * unit, output as usize * unit)
    }

    /// Makes sure that nothing of an earlier result is taken for a new one.
    pub(super) fn clear(&mut self) {
        self.rooms.iter_mut().for_each(|room| room.bytes_mut().fill(UNTOUCHED));
    }

    /// Puts the inputs where they lie in place.
    pub(super) fn enter(&mut self) {
        self.clear();
        for rank in (0..self.reference.nranks).map(RankId) {
            let (start, _) = self.starts(rank);
            let input = self.inputs[rank.index()].as_ref();
            self.rooms[rank.index()].bytes_mut()[start..][..input.len()].copy_from_slice(input);
        }
    }

    /// Elements that are wrong in the results, which lie as in place or at the beginning.
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

/// Bytes of the inputs and rooms of all ranks.
pub(super) fn needed(
    collective: Collective,
    nranks: u32,
    root: RankId,
    count: u64,
    dtype_size: usize,
) -> u128 {
    let units = |rank| {
        let [input, output] = sizes(collective, RankId(rank), nranks, root);
        (input + input.max(output)) as u128
    };
    (0..nranks).map(units).sum::<u128>() * u128::from(count) * dtype_size as u128
}
