//! Buffers in chunks. All regions of a schedule begin and end at multiples of one fraction of the count; that fraction
//! is the width of a chunk, and each region is a whole number of chunks.

use std::collections::HashMap;
use std::ops::Range;

use super::super::runtime::COUNT;
use super::{Options, name, unfit};
use crate::terms::Memory;
use roundelay_core::collective::Alias;
use roundelay_core::diagnostics::Finding;
use roundelay_core::ids::{RankId, RegionId};
use roundelay_core::messages::TwoSided;
use roundelay_core::rational::{Rat, lcm};
use roundelay_core::schedule::{Buffer, Region, Schedule};

/// The most chunks of a call.
const CHUNKS: u64 = 1 << 16;

/// Chunks of a memory of one rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) memory: Memory,
    pub(super) first: u32,
    pub(super) count: u32,
}

impl Span {
    /// Returns a part of the span.
    pub(super) fn part(self, (first, count): (u32, u32)) -> Self {
        Self { first: self.first + first, count, ..self }
    }

    /// Whether the two spans have a chunk in common.
    pub(super) fn meets(self, other: Self) -> bool {
        self.memory == other.memory
            && self.first < other.first + other.count
            && other.first < self.first + self.count
    }
}

/// The division of a schedule's buffers into chunks.
pub(super) struct Grid {
    /// The runtime's name of the collective.
    pub(super) coll: &'static str,
    pub(super) nranks: u32,
    /// Chunks of a unit, for one instance.
    pub(super) unit: u32,
    /// Units of input and output.
    pub(super) units: [u32; 2],
    /// The units that the size of a call counts.
    whole: u32,
    pub(super) instances: u32,
    /// Whether the program may be called in place.
    pub(super) in_place: bool,
    /// For each rank the starts of input and output in the buffer that they share in place.
    starts: Vec<(u32, u32)>,
}

impl Grid {
    pub(super) fn new(form: &TwoSided, options: Options) -> Result<Self, Box<Finding>> {
        let schedule = form.schedule();
        let (collective, nranks) = (schedule.collective, schedule.nranks);
        let coll = name(collective, options.runtime)?;
        let whole = collective.max_units(nranks);
        let most = CHUNKS / whole / u64::from(options.instances.max(1));
        let mut unit = schedule.multiple;
        for region in used(form) {
            for at in [region.base, region.lo, region.hi] {
                let common = lcm(unit, at.den());
                unit = common.filter(|unit| *unit <= most).ok_or_else(|| {
                    let title = format!("it needs more than {CHUNKS} chunks");
                    Box::new(unfit(title).note(
                        "all regions are numbers of equal chunks, and the cuts of this algorithm, or its instances, make them many",
                    ).help("cut buffers by numbers that have more in common, or write fewer instances"))
                })?;
            }
        }
        let proof = form.proof();
        let in_place = proof.in_place && proof.one_mode.is_none();
        let starts = (0..nranks).map(|rank| match collective.alias(RankId(rank), schedule.root) {
            Alias::Apart => (0, 0),
            alias => alias.starts(),
        });
        Ok(Self {
            coll,
            nranks,
            unit: unit as u32,
            units: [collective.max_input_units(nranks), collective.max_output_units(nranks)],
            whole: whole as u32,
            instances: options.instances,
            in_place,
            starts: starts.collect(),
        })
    }

    /// Returns the chunks that the data of a call is cut into.
    pub(super) fn chunks(&self) -> u64 {
        u64::from(self.whole) * u64::from(self.unit) * u64::from(self.instances)
    }

    /// Returns the chunks of input and output, for one instance.
    fn sizes(&self) -> [usize; 2] {
        self.units.map(|units| units as usize * self.unit as usize)
    }

    /// Returns the chunks in `units` units, a whole number as [`Self::new`] has checked.
    fn at(&self, units: Rat) -> u32 {
        units.times(self.unit.into()).map_or(0, |at| at.floor() as u32)
    }

    /// Returns the parts in which operands of one length are moved. A part has no more chunks than a step moves; with
    /// several instances it lies within a unit, as each instance has a part of every unit.
    pub(super) fn parts(&self, spans: &[Span]) -> Vec<(u32, u32)> {
        let count = spans[0].count;
        let mut cuts = vec![0, count];
        let users =
            spans.iter().filter(|span| self.instances > 1 && span.memory != Memory::Scratch);
        for span in users {
            let next = self.unit - span.first % self.unit;
            cuts.extend((next..count).step_by(self.unit as usize));
        }
        cuts.sort_unstable();
        cuts.dedup();
        let mut parts = Vec::new();
        for ends in cuts.windows(2) {
            let len = ends[1] - ends[0];
            let steps = len.div_ceil(COUNT);
            let at =
                |step: u32| ends[0] + (u64::from(len) * u64::from(step) / u64::from(steps)) as u32;
            parts.extend((0..steps).map(|step| (at(step), at(step + 1) - at(step))));
        }
        parts
    }

    /// Returns the program's number of the first chunk of a span.
    pub(super) fn place(&self, span: Span, instance: u32, scratch: u32) -> u32 {
        if span.memory == Memory::Scratch {
            return instance * scratch + span.first;
        }
        let (unit, within) = (span.first / self.unit, span.first % self.unit);
        (unit * self.instances + instance) * self.unit + within
    }

    /// Returns the cells of a span: its cells with input and output apart, and its cells in place if these may differ.
    /// `both` is false for an op that does nothing in place.
    pub(super) fn cells(&self, rank: usize, span: Span, both: bool) -> [Range<usize>; 2] {
        let [input, output] = self.sizes();
        let (first, count) = (span.first as usize, span.count as usize);
        let shared = input + output;
        let from = |at: usize| at..at + count;
        let (i, o) = self.starts[rank];
        let unit = self.unit as usize;
        match span.memory {
            Memory::Scratch => [from(shared + input.max(output) + first), 0..0],
            Memory::Input => [
                from(first),
                if both && self.in_place { from(shared + i as usize * unit + first) } else { 0..0 },
            ],
            Memory::Output => [
                from(input + first),
                if both && self.in_place { from(shared + o as usize * unit + first) } else { 0..0 },
            ],
        }
    }
}

/// The scratch of a rank: the first chunk of each used slot.
#[derive(Default)]
pub(super) struct ScratchSlots {
    first: HashMap<(Buffer, u32), u32>,
    taken: u32,
}

impl ScratchSlots {
    /// Returns the span of a region.
    pub(super) fn span(&mut self, schedule: &Schedule, grid: &Grid, region: RegionId) -> Span {
        let Region { buffer, slot, base, lo, hi } = schedule.regions[region.index()];
        let count = grid.at(hi) - grid.at(lo);
        let (memory, begins) = match buffer {
            Buffer::Input => (Memory::Input, 0),
            Buffer::Output => (Memory::Output, 0),
            Buffer::Scratch(id) => {
                let width = schedule.scratch[id.index()].width.times(grid.unit.into());
                let width = width.map_or(0, |width| width.element_ceil(1) as u32);
                let taken = &mut self.taken;
                let begins = *self.first.entry((buffer, slot)).or_insert_with(|| {
                    *taken += width;
                    *taken - width
                });
                (Memory::Scratch, begins)
            }
        };
        Span { memory, first: begins + grid.at(lo) - grid.at(base), count }
    }

    /// Returns `count` chunks of scratch outside of all slots.
    pub(super) fn more(&mut self, count: u32) -> Span {
        self.taken += count;
        Span { memory: Memory::Scratch, first: self.taken - count, count }
    }
}

/// Returns all regions that ranks touch.
fn used(form: &TwoSided) -> impl Iterator<Item = &Region> {
    let schedule = form.schedule();
    let messages = form.messages().iter().flat_map(|message| [message.source, message.target]);
    let operands = schedule.operands.iter().map(|operand| operand.region);
    messages.chain(operands).map(|region| &schedule.regions[region.index()])
}
