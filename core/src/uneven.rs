//! Calls with a count for each block: `AllGatherV`, `ReduceScatterV`, `GatherV`, `ScatterV` and `AllToAllV`.
//!
//! A schedule that is proved for equal counts, and whose moves keep blocks together ([`crate::verify::owners()`]), is turned
//! into a schedule of elements: each move becomes a move for each block that it is about, with the block's length, and
//! a unit of the new schedule is one element. Signals stay as they are. Engines run it as any other.

use std::sync::Arc;

use crate::collective::Alias;
use crate::counts::Counts;
use crate::diagnostics::{Code, Finding};
use crate::ids::{OpId, RankId, RegionId, ScratchId, SpanId};
use crate::rational::Rat;
use crate::schedule::interner::Interner;
use crate::schedule::{
    Buffer, BufferLengths, Op, OpKind, Operand, Region, Schedule, Scratch, Stream,
};
use crate::verify::owners::{self, Owners, owners as owners_of, parts};
use crate::verify::{Proof, Proved, in_order};

/// Finds out whether a proved schedule serves every vector of counts, and the block of each part of its moves.
///
/// # Errors
/// E0319 at the first move that is right for equal counts alone; the errors of [`in_order`].
pub fn blocks(schedule: &Schedule) -> Result<Owners, Vec<Finding>> {
    let order = in_order(schedule)?;
    owners_of(schedule, &order).map_err(|finding| vec![*finding])
}

impl Proved {
    /// Returns the schedule for a vector of counts, whose unit is one element: engines run it with a count of 1. The
    /// proof for equal counts holds for it, as every move keeps blocks together.
    ///
    /// # Errors
    /// E0319 where the schedule is right for equal counts alone; E0432 for counts that are not of its collective and
    /// ranks, or no multiples of the number that its counts are multiples of.
    pub fn for_counts(&self, counts: &Counts) -> Result<Self, Vec<Finding>> {
        let owners = || self.owners().map_err(|finding| vec![*finding]);
        let (schedule, proof) = at(self.schedule(), self.proof(), counts, owners)?;
        Ok(self.of_counts(counts.clone(), schedule, proof))
    }
}

/// Returns the schedule of elements for a vector of counts, with its proof; `owners` finds the block of each part of its
/// moves.
///
/// # Errors
/// E0319 where the schedule is right for equal counts alone, E0432 for counts that do not fit it.
pub(crate) fn at(
    schedule: &Schedule,
    proof: &Proof,
    counts: &Counts,
    owners: impl FnOnce() -> Result<Arc<Owners>, Vec<Finding>>,
) -> Result<(Schedule, Proof), Vec<Finding>> {
    let wrong = |title: String| vec![Finding::new(Code::BadCounts, SpanId(0), title)];
    if (counts.collective(), counts.nranks()) != (schedule.collective, schedule.nranks) {
        let (of, n) = (counts.collective(), counts.nranks());
        return Err(wrong(format!("these counts are of {of} on {n} ranks")));
    }
    if let Some(why) = counts.all().iter().find_map(|count| schedule.refuses(*count)) {
        return Err(wrong(why));
    }
    let owners = owners()?;
    let writer = ElementWriter {
        schedule,
        owners: &owners,
        counts,
        rooms: rooms(schedule, counts),
        starts: Starts::new(schedule, counts),
        regions: Interner::default(),
        operands: Vec::new(),
    };
    Ok(writer.written(proof))
}

/// Whether each move of a fused schedule that has partials is about one block: partials go from move to move, so their
/// moves cannot be parted.
pub(crate) fn keeps_partials(schedule: &Schedule) -> bool {
    schedule.ops.iter().filter(|op| op.kind == OpKind::Move).all(|op| {
        let operands = schedule.operands_of(op);
        let region = schedule.region(operands[0]);
        let partial = |o: &Operand| matches!(schedule.region(*o).buffer, Buffer::Scratch(_));
        parts(region.lo, region.hi).count() < 2 || !operands.iter().any(partial)
    })
}

/// The first element of each unit of each rank's buffers.
struct Starts {
    input: Vec<Vec<u64>>,
    output: Vec<Vec<u64>>,
}

impl Starts {
    fn new(schedule: &Schedule, counts: &Counts) -> Self {
        let of = |buffer: Buffer| {
            let of_rank = |rank: u32| {
                let units = schedule.units(buffer, RankId(rank)).floor();
                let mut next = 0;
                let mut starts = vec![0];
                for unit in 0..units {
                    let block = owners::block(schedule, buffer, RankId(rank), unit);
                    next += counts.all()[block as usize];
                    starts.push(next);
                }
                starts
            };
            (0..schedule.nranks).map(of_rank).collect()
        };
        Self { input: of(Buffer::Input), output: of(Buffer::Output) }
    }

    fn of(&self, buffer: Buffer, rank: RankId) -> &[u64] {
        let all = if buffer == Buffer::Input { &self.input } else { &self.output };
        &all[rank.index()]
    }

    fn lengths(&self, schedule: &Schedule) -> BufferLengths {
        let len = |all: &[Vec<u64>]| -> Vec<u64> {
            all.iter().map(|starts| starts[starts.len() - 1]).collect()
        };
        let in_place = |rank: u32| {
            let rank = RankId(rank);
            match schedule.collective.alias(rank, schedule.root) {
                Alias::Apart => (0, 0),
                Alias::InputInOutput(unit) => (self.of(Buffer::Output, rank)[unit as usize], 0),
                Alias::OutputInInput(unit) => (0, self.of(Buffer::Input, rank)[unit as usize]),
            }
        };
        BufferLengths {
            input: len(&self.input),
            output: len(&self.output),
            in_place: (0..schedule.nranks).map(in_place).collect(),
        }
    }
}

/// The room of a slot of each scratch buffer: of its units, and the number of units.
fn rooms(schedule: &Schedule, counts: &Counts) -> Vec<(u64, u64)> {
    let mut rooms = vec![(0, 1); schedule.scratch.len()];
    for region in &schedule.regions {
        if let Buffer::Scratch(id) = region.buffer {
            let units = &mut rooms[id.index()].1;
            *units = (region.hi.element_ceil(1) - region.base.floor()).max(*units);
        }
    }
    for (scratch, room) in schedule.scratch.iter().zip(&mut rooms) {
        // A part of a block that begins within it may have one element more than its fraction of the block.
        let part = scratch.width.element_ceil(counts.largest()).saturating_add(1);
        room.0 = if room.1 == 1 { part.min(counts.largest()) } else { counts.largest() };
    }
    rooms
}

struct ElementWriter<'a> {
    schedule: &'a Schedule,
    owners: &'a Owners,
    counts: &'a Counts,
    rooms: Vec<(u64, u64)>,
    starts: Starts,
    regions: Interner<Region>,
    operands: Vec<Operand>,
}

impl ElementWriter<'_> {
    fn written(mut self, proof: &Proof) -> (Schedule, Proof) {
        let schedule = self.schedule;
        let (mut ops, mut streams, mut finish) = (Vec::new(), Vec::new(), Vec::new());
        let finishes = |op: OpId| proof.finish.binary_search(&op).is_ok();
        for stream in &schedule.streams {
            let first = OpId(ops.len() as u32);
            for at in (stream.first.0..stream.first.0 + stream.len).map(OpId) {
                let op = schedule.op(at);
                if op.kind != OpKind::Move {
                    ops.push(*op);
                    continue;
                }
                for arg in self.moves(at) {
                    if finishes(at) {
                        finish.push(OpId(ops.len() as u32));
                    }
                    ops.push(Op { arg, ..*op });
                }
            }
            streams.push(Stream { first, len: ops.len() as u32 - first.0, ..*stream });
        }
        let room = |(scratch, room): (&Scratch, &(u64, u64))| Scratch {
            width: Rat::whole(room.0.saturating_mul(room.1)),
            ..scratch.clone()
        };
        let scratch = schedule.scratch.iter().zip(&self.rooms).map(room).collect();
        let lengths = self.starts.lengths(schedule);
        let made = Schedule {
            multiple: 1,
            scratch,
            streams,
            ops,
            operands: self.operands,
            regions: self.regions.items,
            elements: Some(Arc::new(lengths)),
            channels: schedule.channels.clone(),
            lanes: schedule.lanes.clone(),
            locations: schedule.locations.clone(),
            origins: schedule.origins.clone(),
            algorithm: schedule.algorithm.clone(),
            demands: schedule.demands.clone(),
            file: schedule.file.clone(),
            ..*schedule
        };
        (made, Proof { finish, ..proof.clone() })
    }

    /// Writes the operands of a move for each of its blocks, and returns the first operand of each.
    fn moves(&mut self, at: OpId) -> Vec<u32> {
        let schedule = self.schedule;
        let operands = schedule.operands_of(schedule.op(at));
        let first = schedule.region(operands[0]);
        let blocks = self.owners.blocks(at);
        let mut args = Vec::with_capacity(blocks.len());
        for (nth, ((begin, end), block)) in parts(first.lo, first.hi).zip(blocks).enumerate() {
            args.push(self.operands.len() as u32);
            let count = self.counts.all()[*block as usize];
            let (lo, hi) = (begin.element(count), end.element(count));
            for operand in operands {
                let region = self.region(*operand, nth as u64, count, lo..hi);
                let region = RegionId(self.regions.intern(region));
                self.operands.push(Operand { region, ..*operand });
            }
        }
        args
    }

    /// Returns a part of an operand as elements of its buffer: those of its block from `within.start` to `within.end`.
    fn region(
        &self,
        operand: Operand,
        nth: u64,
        count: u64,
        within: std::ops::Range<u64>,
    ) -> Region {
        let region = self.schedule.region(operand);
        let unit = region.lo.floor() + nth;
        let start = match region.buffer {
            Buffer::Scratch(ScratchId(id)) => {
                let unit = unit - region.base.floor();
                // In its first unit a slot begins where its data begins within the block.
                let begun = if unit == 0 { region.base.fraction().element(count) } else { 0 };
                let start = unit * self.rooms[id as usize].0;
                let at = |element: u64| Rat::whole(start + element - begun);
                let (lo, hi) = (at(within.start), at(within.end));
                return Region { base: Rat::ZERO, lo, hi, ..*region };
            }
            buffer => self.starts.of(buffer, operand.rank)[unit as usize],
        };
        let at = |element: u64| Rat::whole(start + element);
        Region { lo: at(within.start), hi: at(within.end), ..*region }
    }
}
