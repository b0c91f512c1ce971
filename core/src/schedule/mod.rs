//! The schedule: flat op lists, one per (rank, stream). This page is the whole IR.
//!
//! Three ops. `Move` folds up to eight sources and writes the result to one or more destinations; a copy
//! is the fold of one source, `reduce(src, dst)` is the fold of `[dst, src]` into `dst`. `Post` and
//! `Wait` are a release and an acquire on a counter that only rises: the k-th post on a channel meets
//! the k-th wait. Nothing here knows about engines; loops are not kept.

pub mod area;
pub mod arith;
pub mod builder;
pub mod demands;
pub mod groups;
pub mod hash;
pub mod interpret;
pub mod legality;
pub mod lengths;
pub(crate) mod members;
pub mod needs;
pub mod params;
pub mod rational;
pub(crate) mod record;
pub mod ring;
pub mod rings;
pub mod site;
pub(crate) mod tables;
pub mod text;
pub mod traffic;
pub mod tree;
pub mod value;

use std::sync::Arc;

use crate::collective::Collective;
use crate::ids::{ChannelId, LaneId, OpId, RankId, RegionId, ScratchId, SpanId, StreamId};
use crate::stages;
use crate::topology::Topology;
use demands::Demands;
use params::ParamValue;
use rational::Rat;
pub use tables::Limits;

/// What one rank count of one algorithm does, op by op.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// Name of the algorithm.
    pub algorithm: String,
    /// What it promises.
    pub collective: Collective,
    /// Number of ranks.
    pub nranks: u32,
    /// The root of a rooted collective; rank 0 otherwise.
    pub root: RankId,
    /// The author said that this algorithm has no in-place form.
    pub out_of_place: bool,
    /// Scratch buffers; every rank has all of them.
    pub scratch: Vec<Scratch>,
    /// Streams, sorted by rank, main stream first.
    pub streams: Vec<Stream>,
    /// All ops; each stream's are contiguous.
    pub ops: Vec<Op>,
    /// Side table of `Move` operands: sources first, then destinations.
    pub operands: Vec<Operand>,
    /// Interned regions.
    pub regions: Vec<Region>,
    /// Interned signal counters.
    pub channels: Vec<Channel>,
    /// Interned lanes; entry 0 is the lane outside every `parallel`.
    pub lanes: Vec<Vec<i64>>,
    /// Source statements that ops point at. Not part of a schedule's identity.
    pub locations: Vec<Location>,
    /// The file that the locations are of; empty if unknown. Not part of a schedule's identity.
    pub file: Arc<str>,
    /// What it must keep to beyond being right. Not part of a schedule's identity.
    pub demands: Demands,
}

/// One rank's sequential lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stream {
    /// Whose.
    pub rank: RankId,
    /// 0 is the rank's main stream.
    pub index: u32,
    /// First op.
    pub first: OpId,
    /// Number of ops.
    pub len: u32,
}

/// One op; what `arg` means depends on `kind`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Op {
    /// Move, post or wait.
    pub kind: OpKind,
    /// Number of sources of a move, 1..=8.
    pub srcs: u8,
    /// Number of destinations of a move, 1..=8.
    pub dsts: u8,
    /// This move completes its region: `avg` divides here. Set by the verifier.
    pub finish: bool,
    /// The source statement.
    pub at: SpanId,
    /// Move: first operand. Post and wait: the channel.
    pub arg: u32,
}

/// The three kinds of op.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OpKind {
    /// `dsts = fold(srcs)`: `acc = srcs[0]; for s in srcs[1..] { acc = s op acc }`.
    Move,
    /// Raise a channel's counter (release).
    Post,
    /// Wait for the channel's next value (acquire).
    Wait,
}

/// A region of one rank's buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Operand {
    /// Whose buffer.
    pub rank: RankId,
    /// Which part.
    pub region: RegionId,
}

/// A rational interval of a buffer, in units of the count.
///
/// For `count` elements a unit it begins at element `slot * slot_len + floor(lo * count) - floor(base * count)`
/// and has `floor(hi * count) - floor(lo * count)` elements. `base` and `slot` are 0 in input and output.
/// In a scratch slot, `base` is where the data that the slot holds began in the buffer it came from:
/// so a slot is cut at the same elements as the data it carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Region {
    /// Which buffer.
    pub buffer: Buffer,
    /// Which slot of a scratch buffer.
    pub slot: u32,
    /// Coordinate of the slot's first element.
    pub base: Rat,
    /// First boundary.
    pub lo: Rat,
    /// Last boundary.
    pub hi: Rat,
}

/// A rank's buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Buffer {
    /// The caller's input, read only.
    Input,
    /// The caller's output.
    Output,
    /// Memory private to the plan.
    Scratch(ScratchId),
}

/// A scratch declaration: `slots` slots of `ceil(width * count)` elements each.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Scratch {
    /// The author's name for it.
    pub name: String,
    /// Number of slots.
    pub slots: u32,
    /// Width of a slot in units of the count.
    pub width: Rat,
}

/// Ranks of a schedule.
pub const RANK_LIMIT: u32 = tables::Tables::RANK_LIMIT;

/// A signal counter. Both ends count by themselves; it only rises.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Channel {
    /// Who posts.
    pub from: RankId,
    /// Who waits.
    pub to: RankId,
    /// Which of the pair's signals.
    pub kind: SignalKind,
    /// The lane. For `Fork` and `Join` (`from == to`) the index of the child stream.
    pub lane: LaneId,
}

/// The kinds of signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SignalKind {
    /// `TxAck` to `RxAck`.
    Ack,
    /// `TxDataSignal` to `RxDataSignal`.
    Data,
    /// The receiver's word to the sender that a slot of the fifo between them is free: a credit.
    Head,
    /// The sender's word to the receiver that a slot holds data.
    Tail,
    /// Parent stream to child stream at the head of a `parallel`.
    Fork,
    /// Child stream to parent stream at its end.
    Join,
}

impl SignalKind {
    /// All of them, in the order of their numbers.
    pub const ALL: [Self; 6] =
        [Self::Ack, Self::Data, Self::Head, Self::Tail, Self::Fork, Self::Join];

    /// How many go from rank to rank: these come first.
    pub const OF_PAIRS: usize = 4;

    /// Whether it goes from rank to rank, in a lane; if not, from stream to stream of one rank.
    pub const fn has_lane(self) -> bool {
        !matches!(self, Self::Fork | Self::Join)
    }
}

/// Where a statement stands: lines and columns count from 1, columns in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Location {
    /// First line.
    pub line: u32,
    /// First column.
    pub column: u32,
    /// Last line.
    pub end_line: u32,
    /// Column after the last character.
    pub end_column: u32,
}

impl Schedule {
    /// The op `id`.
    pub fn op(&self, id: OpId) -> &Op {
        &self.ops[id.index()]
    }

    /// Sources of a move.
    pub fn srcs(&self, op: &Op) -> &[Operand] {
        let first = op.arg as usize;
        &self.operands[first..first + op.srcs as usize]
    }

    /// Destinations of a move.
    pub fn dsts(&self, op: &Op) -> &[Operand] {
        let first = op.arg as usize + op.srcs as usize;
        &self.operands[first..first + op.dsts as usize]
    }

    /// The channel of a post or wait.
    pub fn channel(&self, op: &Op) -> &Channel {
        &self.channels[op.arg as usize]
    }

    /// The id of the channel of a post or wait.
    pub fn channel_id(op: &Op) -> ChannelId {
        ChannelId(op.arg)
    }

    /// The region of an operand.
    pub fn region(&self, operand: Operand) -> &Region {
        &self.regions[operand.region.index()]
    }

    /// The stream that `op` belongs to.
    pub fn stream_of(&self, op: OpId) -> StreamId {
        // Streams are contiguous and in order of their first op; empty ones share a boundary.
        let after = self.streams.partition_point(|s| s.first.0 <= op.0);
        let at = self.streams[..after].iter().rposition(|s| op.0 < s.first.0 + s.len);
        StreamId(at.expect("every op belongs to a stream") as u32)
    }

    /// The main stream of each rank.
    pub(crate) fn main_streams(&self) -> Vec<StreamId> {
        let mut main = vec![StreamId(0); self.nranks as usize];
        for (id, stream) in self.streams.iter().enumerate().filter(|(_, s)| s.index == 0) {
            main[stream.rank.index()] = StreamId(id as u32);
        }
        main
    }

    /// Units of `buffer` at `rank`: its length is that times the count. For scratch, of all its slots.
    pub fn units(&self, buffer: Buffer, rank: RankId) -> Rat {
        let whole = |units: u32| Rat::whole(u64::from(units));
        match buffer {
            Buffer::Input => whole(self.collective.input_units(rank, self.nranks, self.root)),
            Buffer::Output => whole(self.collective.output_units(rank, self.nranks, self.root)),
            Buffer::Scratch(id) => self.scratch[id.index()].width,
        }
    }

    /// Elements of `buffer` at `rank` for `count` elements a unit.
    pub fn elements(&self, buffer: Buffer, rank: RankId, count: u64) -> u64 {
        match buffer {
            Buffer::Scratch(id) => self.scratch[id.index()].elements(count),
            _ => self.units(buffer, rank).element(count),
        }
    }

    /// First element and number of elements of a region for `count` elements a unit.
    pub fn extent(&self, region: &Region, count: u64) -> (u64, u64) {
        let lo = region.lo.element(count);
        let len = region.hi.element(count) - lo;
        let slot = match region.buffer {
            Buffer::Scratch(id) => {
                u64::from(region.slot) * self.scratch[id.index()].slot_elements(count)
            }
            _ => 0,
        };
        (slot + lo - region.base.element(count), len)
    }

    /// The name of a buffer, as the author writes it.
    pub fn buffer_name(&self, buffer: Buffer) -> &str {
        match buffer {
            Buffer::Input => "input",
            Buffer::Output => "output",
            Buffer::Scratch(id) => &self.scratch[id.index()].name,
        }
    }

    /// Whether a move carries data from one rank to another.
    pub fn crosses(&self, op: &Op) -> bool {
        let mut ranks = self.srcs(op).iter().chain(self.dsts(op)).map(|operand| operand.rank);
        let first = ranks.next();
        ranks.any(|rank| Some(rank) != first)
    }

    /// The place of a statement, if known.
    pub fn location(&self, at: SpanId) -> Location {
        self.locations.get(at.index()).copied().unwrap_or_default()
    }
}

impl Scratch {
    /// Elements of one slot for `count` elements a unit.
    pub fn slot_elements(&self, count: u64) -> u64 {
        self.width.element_ceil(count)
    }

    /// Elements of the whole buffer for `count` elements a unit.
    pub fn elements(&self, count: u64) -> u64 {
        self.slot_elements(count).saturating_mul(u64::from(self.slots))
    }
}

/// An algorithm that can be laid out for a number of ranks: written by `collective!`, or interpreted.
pub trait Algorithm {
    /// Its name.
    fn name(&self) -> &str;

    /// The collective it implements.
    fn collective(&self) -> Collective;

    /// Whether its author says that it has no in-place form.
    fn out_of_place(&self) -> bool {
        false
    }

    /// The file it stands in, for messages.
    fn file(&self) -> &str;

    /// Its source in canonical form.
    fn source(&self) -> &str;

    /// Where its statements stand, by [`SpanId`].
    fn locations(&self) -> &[Location];

    /// The algorithms that it calls, and those that they call, but for the library's: each in canonical form.
    fn callees(&self) -> &[&str] {
        &[]
    }

    /// The parameters that were given values.
    fn given(&self) -> Vec<(&'static str, ParamValue)> {
        Vec::new()
    }

    /// The topology that it was put on, if it was.
    #[doc(hidden)]
    fn placed_on(&self) -> Option<&Arc<Topology>> {
        None
    }

    /// Lays out one rank's program.
    fn build(&self, builder: &mut builder::Builder<'_>) -> Result<(), builder::Stop>;

    /// The schedule for `nranks` ranks, or all that is wrong with it.
    fn schedule(&self, nranks: u32) -> Result<Schedule, Vec<crate::diagnostics::Finding>> {
        self.schedule_within(nranks, Limits::FULL)
    }

    /// The same within a budget; more work than that is a finding (E0206).
    fn schedule_within(
        &self,
        nranks: u32,
        limits: Limits,
    ) -> Result<Schedule, Vec<crate::diagnostics::Finding>> {
        stages::stage("schedule", || tables::build(self, nranks, limits, None))
    }

    /// The schedule for all ranks of `topology`, on its links: each parameter of type `Topology` that was not given a
    /// value has this one, and the proof demands that all data and signals go where it has a link.
    fn schedule_on(
        &self,
        topology: &Arc<Topology>,
    ) -> Result<Schedule, Vec<crate::diagnostics::Finding>> {
        let (nranks, limits) = (topology.nranks(), Limits::FULL);
        stages::stage("schedule", || tables::build(self, nranks, limits, Some(topology)))
    }
}
