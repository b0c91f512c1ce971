//! The strategies for a rank's part of a call, made of lowered code.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use roundelay_core::dtype::{DType, ReduceOp};
use roundelay_core::ids::RankId;
use roundelay_core::optimize::Optimized;
use roundelay_core::rational::Rat;
use roundelay_core::schedule::{Buffer, Op, OpKind, Schedule};

use super::geometry::{Tiles, cuts, fitting};
use super::pull::Pull;
use super::segment_statements::SegmentStatements;
use super::split::Split;
use crate::Error;
use crate::lowering::{Bases, Code, Move, Operand, PARTIAL, PlannedCall, Segments, lower};
use crate::shared_memory::world::World;
use crate::shared_memory::world::memory::arena::{LINE, ROOM, SIGNALS, SLOT};
use crate::shared_memory::world::ways::Makers;
use crate::sync::MODELLED;

/// Bytes of input, output and scratch of a rank for a tile of a schedule that is not fused.
const STREAM_TILE: usize = if MODELLED { 4 * LINE } else { 1 << 20 };
/// Bytes that a chunk reads and writes: a few ranks share the chunks of a tile.
const CHUNK: usize = if MODELLED { LINE } else { 64 << 10 };

/// The least number of ranks that make a common output together: of two ranks, each reduces the whole as quickly as its
/// half.
const COMMON: u32 = if MODELLED { 2 } else { 3 };

/// The way of a call's data through shared memory.
pub(crate) enum Strategy {
    Pull(Pull),
    Common(Common),
    Split(Split),
    Streams(Streams),
}

/// The code with which all ranks make the common output together.
pub(crate) struct Common {
    pub(crate) data: Segments,
    pub(crate) bases: Bases,
    pub(crate) chunks: Box<[Chunk]>,
    pub(crate) inputs: Box<[u32]>,
    pub(crate) output: u32,
    /// The ranks that must be done with a slot before it is used again: none, as a tile's chunks are all done by then.
    pub(crate) readers: Arc<[usize]>,
}

/// The elements of a segment that one rank makes at once, and the segment's statements, counted from 1.
#[derive(Clone, Debug)]
pub(crate) struct Chunk {
    pub(crate) segment: u32,
    pub(crate) elements: Range<usize>,
    pub(crate) at: u32,
}

/// The code with which all ranks make all outputs from all inputs in shared memory.
pub(crate) struct Direct {
    pub(crate) data: Segments,
    pub(crate) bases: Bases,
    pub(crate) chunks: Box<[Chunk]>,
    /// The numbers of each rank's input and output in the code, with their lengths in bytes.
    pub(crate) buffers: Box<[[(u32, usize); 2]]>,
}

/// A rank's streams, on tiles in shared memory.
pub(crate) struct Streams {
    pub(crate) code: Code,
    pub(crate) running: Arc<Schedule>,
    pub(crate) bases: Bases,
    pub(crate) tasks: Range<u32>,
    /// The counter of each channel: its two ranks, and its number among the signals between them.
    pub(crate) counters: Box<[Counter]>,
    /// The positions of this rank's input and output in its room.
    pub(crate) places: [usize; 2],
}

#[derive(Clone, Copy)]
pub(crate) struct Counter {
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) which: usize,
}

/// Whether the outputs of all ranks are equal, piece by piece; then one place serves for all of them. If a piece goes
/// to more ranks than a move has destinations, several moves in a row copy it from one source.
pub(crate) fn mirrored(schedule: &Schedule) -> bool {
    let moves: Vec<_> = schedule.ops.iter().filter(|op| op.kind == OpKind::Move).collect();
    let same = |a: &&Op, b: &&Op| a.srcs == 1 && schedule.srcs(a) == schedule.srcs(b);
    moves.chunk_by(same).all(|row| {
        // The ranks that get each region of the outputs.
        let mut gets: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for dst in row.iter().flat_map(|op| schedule.dsts(op)) {
            if schedule.region(*dst).buffer == Buffer::Output {
                gets.entry(dst.region.0).or_default().push(dst.rank.0);
            }
        }
        gets.values_mut().all(|ranks| {
            ranks.sort_unstable();
            ranks.iter().copied().eq(0..schedule.nranks)
        })
    })
}

/// Cuts all segments into chunks of about [`CHUNK`] bytes.
fn chunks(data: &Segments, stands: &SegmentStatements) -> Box<[Chunk]> {
    let mut chunks = Vec::new();
    for ((segment, at), id) in data.all.iter().zip(&stands.0).zip(0..) {
        let line_elements = LINE / data.kernel.size();
        let most = (CHUNK / data.traffic(*segment).max(1)).max(segment.elements >> 12);
        let step = most.next_multiple_of(line_elements).max(line_elements);
        for first in (0..segment.elements).step_by(step) {
            let elements = first..segment.elements.min(first + step);
            chunks.push(Chunk { segment: id, elements, at: *at });
        }
    }
    chunks.into()
}

impl Common {
    pub(crate) fn new(code: &Code, schedule: &Schedule, stands: &SegmentStatements) -> Self {
        let ranks = || (0..schedule.nranks).map(RankId);
        let output = code.buffers.index(Buffer::Output, RankId(0));
        // The outputs of all ranks get one place, so each destination is kept once.
        let all = &code.segments;
        let (mut moves, mut operands) = (Vec::new(), Vec::new());
        for m in &all.moves {
            let (srcs, dsts) = all.of(*m).split_at(m.srcs as usize);
            let first = operands.len() as u32;
            operands.extend_from_slice(srcs);
            for dst in dsts {
                let is_output = dst.buffer != PARTIAL && code.buffers.of(dst.buffer).0 == 1;
                let dst = if is_output { Operand { buffer: output, ..*dst } } else { *dst };
                if !operands[first as usize + srcs.len()..].contains(&dst) {
                    operands.push(dst);
                }
            }
            let dsts = (operands.len() - first as usize - srcs.len()) as u8;
            moves.push(Move { first, dsts, ..*m });
        }
        let data = Segments { moves: moves.into(), operands: operands.into(), ..all.clone() };
        let inputs = ranks().map(|rank| code.buffers.index(Buffer::Input, rank)).collect();
        Self {
            chunks: chunks(&data, stands),
            bases: Bases::new(code.buffers.len.len()),
            data,
            inputs,
            output,
            readers: Arc::default(),
        }
    }
}

impl Direct {
    pub(crate) fn new(made: &Optimized, call: &PlannedCall) -> Result<Self, Error> {
        let code = lower(made, call.count, call.dtype, call.op)?;
        let stands = SegmentStatements::new(&code, &made.schedule);
        let size = call.dtype.size();
        let buffer = |buffer, rank| {
            (code.buffers.index(buffer, rank), code.buffers.len(buffer, rank) * size)
        };
        let buffers =
            call.ranks().map(|rank| [Buffer::Input, Buffer::Output].map(|b| buffer(b, rank)));
        Ok(Self {
            buffers: buffers.collect(),
            chunks: chunks(&code.segments, &stands),
            bases: Bases::new(code.buffers.len.len()),
            data: code.segments,
        })
    }
}

impl Streams {
    pub(crate) fn new(
        world: &World,
        made: &Optimized,
        (count, dtype, op): (Option<u64>, DType, ReduceOp),
    ) -> Result<(Self, Tiles), Error> {
        let schedule = made.schedule.clone();
        let size = dtype.size();
        let too_fine = |multiple: u64| {
            let name = &schedule.algorithm;
            let what =
                format!("a tile of {name} for processes has at least {multiple} elements a unit");
            Error::TooLarge { what }
        };
        let (cuts, multiple) = cuts(&schedule).ok_or_else(|| too_fine(u64::MAX))?;
        // Counts whole units, as the width of scratch may be a fraction of a unit.
        let units = |rank: RankId| {
            let scratch = schedule.scratch.iter();
            let width = |wide| if wide { (size_of::<f32>() / size).max(1) as u64 } else { 1 };
            let scratch: u64 = scratch
                .map(|s| (s.width.floor() + 1).saturating_mul(u64::from(s.slots) * width(s.wide)))
                .sum();
            let users = [Buffer::Input, Buffer::Output];
            scratch + users.map(|b| schedule.units(b, rank).floor()).iter().sum::<u64>()
        };
        let ranks = || (0..schedule.nranks).map(RankId);
        let most = ranks().map(units).max().unwrap_or(1);
        let tiles = tiles(&cuts, multiple, count, fitting(STREAM_TILE, most, size));
        let code = lower(made, tiles.count, dtype, op)?;
        let bases = Bases::new(code.buffers.len.len());
        let mut places = [0; 2];
        for rank in ranks() {
            let mut at = 0;
            let room = world.shared.arena.layout.room(rank.index());
            for index in code.buffers.of_rank(rank) {
                let bytes = (code.buffers.len[index as usize] * size).next_multiple_of(LINE);
                if at + bytes > ROOM {
                    return Err(too_fine(multiple));
                }
                let (which, _) = code.buffers.of(index);
                if rank == world.id() && which < 2 {
                    places[which as usize] = room + at;
                }
                bases.set(index, world.shared.arena.address(room + at, bytes));
                at += bytes;
            }
        }
        let streams = &schedule.streams;
        let first = streams.partition_point(|stream| stream.rank < world.id()) as u32;
        let end = streams.partition_point(|stream| stream.rank <= world.id()) as u32;
        let counters = counters(&schedule)?;
        let streams = Self { code, running: schedule, bases, tasks: first..end, counters, places };
        Ok((streams, tiles))
    }
}

/// Returns numbers for the signals between any two ranks: equal numbers in all schedules with equally many signals.
fn counters(schedule: &Schedule) -> Result<Box<[Counter]>, Error> {
    let lane = |at: usize| schedule.lanes.get(at).cloned().unwrap_or_default();
    let mut order: Vec<usize> = (0..schedule.channels.len()).collect();
    order.sort_by_cached_key(|at| {
        let channel = &schedule.channels[*at];
        let lane = if channel.kind.has_lane() {
            lane(channel.lane.index())
        } else {
            vec![i64::from(channel.lane.0)]
        };
        (channel.from, channel.to, channel.kind, lane)
    });
    let mut counters = vec![Counter { from: 0, to: 0, which: 0 }; schedule.channels.len()];
    let mut before: Option<(RankId, RankId, usize)> = None;
    for at in order {
        let channel = &schedule.channels[at];
        let which = match before {
            Some((from, to, which)) if (from, to) == (channel.from, channel.to) => which + 1,
            _ => 0,
        };
        // Signals of a rank to itself need no shared memory.
        if which >= SIGNALS && channel.from != channel.to {
            return Err(Error::BadOption {
                what: format!(
                    "{} has more than {SIGNALS} signals from rank {} to rank {}",
                    schedule.algorithm, channel.from, channel.to
                ),
                fix: "run it at level O2, or with fewer lanes",
            });
        }
        before = Some((channel.from, channel.to, which));
        counters[at] = Counter { from: channel.from.index(), to: channel.to.index(), which };
    }
    Ok(counters.into())
}

/// Returns the tiles of a call: of `count` elements a unit, or of blocks with counts of their own where there is none.
fn tiles(cuts: &[Rat], multiple: u64, count: Option<u64>, most: u64) -> Tiles {
    match count {
        Some(count) => Tiles::new(cuts, multiple, count, most),
        None => Tiles::of_blocks(cuts, multiple, most),
    }
}

/// Returns the strategy of a fused schedule, with tiles of `tile` bytes of an input, or of a common output; `None` if the
/// schedule does not fit the slots, its segments are not independent, or ranks cannot share the work so.
pub(crate) fn fused_strategy(
    made: &Optimized,
    rank: RankId,
    (count, dtype, op): (Option<u64>, DType, ReduceOp),
    (makers, tile): (Makers, usize),
) -> Result<Option<(Strategy, Tiles)>, Error> {
    let schedule = &*made.schedule;
    let Some((cuts, multiple)) = cuts(schedule) else { return Ok(None) };
    let (units, size) = (staged_units(schedule), dtype.size());
    if multiple.saturating_mul(units).saturating_mul(size as u64) > SLOT as u64 {
        return Ok(None);
    }
    let tiles = tiles(&cuts, multiple, count, fitting(tile, units, size));
    let code = lower(made, tiles.count, dtype, op)?;
    if !code.independent {
        return Ok(None);
    }
    let stands = SegmentStatements::new(&code, schedule);
    let strategy = match makers {
        Makers::Share | Makers::ShareInPlace => {
            let in_place = makers == Makers::ShareInPlace;
            Split::new(&code, schedule, (rank, in_place), &stands).map(Strategy::Split)
        }
        Makers::Any if is_made_together(schedule) => {
            Some(Strategy::Common(Common::new(&code, schedule, &stands)))
        }
        Makers::Any => Some(Strategy::Pull(Pull::new(&code, schedule, rank, &stands, tiles.count))),
    };
    Ok(strategy.map(|strategy| (strategy, tiles)))
}

/// Whether all ranks get the same result, which ranks can make together.
pub(crate) fn is_common(schedule: &Schedule) -> bool {
    schedule.collective.reduces() && schedule.nranks > 1 && mirrored(schedule)
}

/// Whether the ranks that come first make the parts of a result that all ranks get.
pub(crate) fn is_made_together(schedule: &Schedule) -> bool {
    is_common(schedule) && schedule.nranks >= COMMON
}

/// Returns the most units of an input, or of a result that all ranks get.
pub(crate) fn staged_units(schedule: &Schedule) -> u64 {
    let most = |buffer| {
        let all = (0..schedule.nranks).map(|rank| schedule.units(buffer, RankId(rank)).floor());
        all.max().unwrap_or(0)
    };
    let inputs = most(Buffer::Input);
    if is_common(schedule) { inputs.max(most(Buffer::Output)) } else { inputs }
}
