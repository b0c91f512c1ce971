//! The schedule: flat op lists, one per (rank, stream). This module is the whole IR.
//!
//! Three ops. `Move` folds up to eight sources and writes the result to one or more destinations; a copy
//! is the fold of one source, `reduce(src, dst)` is the fold of `[dst, src]` into `dst`. A move rounds its result once,
//! unless it is a chain. `Post` and
//! `Wait` are a release and an acquire on a counter that only rises: the k-th post on a channel meets
//! the k-th wait. No part of the IR knows about engines; loops are not kept.

pub mod demands;
pub mod hash;
pub mod interner;
pub mod legality;
pub mod lengths;
pub mod load;
pub mod needs;
pub(crate) mod origins;
pub mod switch;
pub mod text;
pub mod traffic;

use std::sync::Arc;

use crate::collective::Collective;
use crate::diagnostics::{Code, Finding};
use crate::dtype::DType;
use crate::ids::{ChannelId, LaneId, OpId, RankId, RegionId, ScratchId, SpanId, StreamId};
use crate::rational::Rat;
use crate::source::Location;
use demands::Demands;

/// The ops of an algorithm at one number of ranks: the intermediate representation between a program and the engines.
///
/// A schedule holds for every count: regions are in units of the count, and [`Self::extent`] gives their elements.
/// Streams, ops, operands, regions, channels and lanes are tables that refer to each other by index. A
/// [`Proved`](crate::verify::Proved) holds a schedule with its proof.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// The name of the algorithm.
    pub algorithm: String,
    /// The collective that it implements.
    pub collective: Collective,
    /// The number of ranks.
    pub nranks: u32,
    /// The root of a rooted collective; rank 0 otherwise.
    pub root: RankId,
    /// Whether the author declared that this algorithm has no in-place form.
    pub out_of_place: bool,
    /// The number of which every count of a run is a multiple; the proof covers only such counts. It is 1 for all
    /// counts. Regions that lie on multiples of `1/multiple` are cut alike, wherever they lie.
    pub multiple: u64,
    /// Scratch buffers; every rank has all of them.
    pub scratch: Vec<Scratch>,
    /// Streams, sorted by rank, main stream first.
    pub streams: Vec<Stream>,
    /// All ops; the ops of each stream are contiguous.
    pub ops: Vec<Op>,
    /// Side table of `Move` operands: sources first, then destinations.
    pub operands: Vec<Operand>,
    /// Interned regions.
    pub regions: Vec<Region>,
    /// Interned signal counters.
    pub channels: Vec<Channel>,
    /// Interned lanes; entry 0 is the lane outside every `parallel`.
    pub lanes: Vec<Vec<i64>>,
    /// The places of the source statements that ops point at. They are not part of a schedule's identity.
    pub locations: Vec<Location>,
    /// The statement sets of ops that stand for several statements, as optimizer passes make them: their ids follow
    /// those of the locations. The first statement of a set is the one to name where there is room for one. The sets
    /// are not part of a schedule's identity.
    pub origins: Vec<Box<[SpanId]>>,
    /// The file of the locations; empty if unknown. It is not part of a schedule's identity.
    pub file: Arc<str>,
    /// The lengths of the buffers, where a unit is one element and blocks have a count each: see [`crate::uneven`].
    pub elements: Option<Arc<BufferLengths>>,
    /// The demands of the author beyond being right: budgets, links, order. They are not part of a schedule's identity.
    pub demands: Demands,
}

/// The lengths of the buffers of a schedule of elements, whose blocks have a count each: see [`crate::uneven`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BufferLengths {
    /// The elements of each rank's input.
    pub input: Vec<u64>,
    /// The elements of each rank's output.
    pub output: Vec<u64>,
    /// Where input and output of each rank lie in its one buffer in place.
    pub in_place: Vec<(u64, u64)>,
}

impl BufferLengths {
    /// Returns the elements of the longest buffer.
    pub fn largest(&self) -> u64 {
        self.input.iter().chain(&self.output).copied().max().unwrap_or(0)
    }
}

/// A sequence of ops of one rank. A rank has a main stream, and one for each lane of each `parallel`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stream {
    /// The rank of the stream.
    pub rank: RankId,
    /// The number of the stream at its rank; 0 is the main stream.
    pub index: u32,
    /// The first op.
    pub first: OpId,
    /// The number of ops.
    pub len: u32,
}

/// One op of a stream: a move, a post or a wait. The meaning of `arg` depends on `kind`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Op {
    /// The kind: a move, a post or a wait.
    pub kind: OpKind,
    /// The number of sources of a move, 1..=[`MOVE_LIMIT`]; of a move by a switch, 1..=[`SWITCH_LIMIT`].
    pub srcs: u8,
    /// The number of destinations of a move, 1..=[`MOVE_LIMIT`]; of a move by a switch, 1..=[`SWITCH_LIMIT`].
    pub dsts: u8,
    /// Whether this move completes its region, so that `avg` divides here. The verifier sets it.
    pub finish: bool,
    /// Whether a fold of three sources or more rounds after each source but the first, as moves of two sources would one
    /// after the other. Any other move computes f16, bf16 and fp8 in f32, and rounds once, when it writes.
    pub chain: bool,
    /// Whether a switch of the network makes the move: it folds one region of several ranks in an order that is open, or
    /// writes one region of several ranks. The order may differ between the elements of one run, and between runs. Only
    /// such a move has more than eight operands on a side.
    pub switch: bool,
    /// The statement of the source that the op stands for, or a set of [`Schedule::origins`].
    pub at: SpanId,
    /// The index of the first operand of a move, or of the channel of a post or wait.
    pub arg: u32,
}

impl Op {
    /// Returns an op without operands: a post or a wait on the channel of number `arg`, or the rest of a move.
    pub const fn new(kind: OpKind, at: SpanId, arg: u32) -> Self {
        Self { kind, srcs: 0, dsts: 0, finish: false, chain: false, switch: false, at, arg }
    }

    /// The number of operands of a move; 0 of a post or a wait.
    pub fn operands(&self) -> usize {
        usize::from(self.srcs) + usize::from(self.dsts)
    }
}

/// The three kinds of op.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OpKind {
    /// `dsts = fold(srcs)`: `acc = srcs[0]; for s in srcs[1..] { acc = s op acc }`. See [`Op::chain`] for rounding.
    Move,
    /// Raises a channel's counter (release).
    Post,
    /// Waits for the channel's next value (acquire).
    Wait,
}

/// An operand of a move: a region of one rank's buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Operand {
    /// The rank of the buffer.
    pub rank: RankId,
    /// The region of that buffer.
    pub region: RegionId,
}

/// A rational interval of a buffer, in units of the count.
///
/// For `count` elements a unit a region begins at element `slot * slot_len + floor(lo * count) - floor(base * count)`
/// and has `floor(hi * count) - floor(lo * count)` elements. `base` and `slot` are 0 in input and output. In a scratch
/// slot, `base` is the position in the source buffer where the data of the slot began: so a slot is cut at the same
/// elements as the data it carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Region {
    /// The buffer: input, output, or one of the scratch buffers.
    pub buffer: Buffer,
    /// The slot of a scratch buffer; 0 in input and output.
    pub slot: u32,
    /// Coordinate of the slot's first element.
    pub base: Rat,
    /// The coordinate at which the region begins.
    pub lo: Rat,
    /// The coordinate at which the region ends.
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
    /// The author's name for the buffer.
    pub name: String,
    /// The number of slots.
    pub slots: u32,
    /// The width of a slot in units of the count.
    pub width: Rat,
    /// Whether elements narrower than f32 are kept as f32 here, so that partial sums do not round.
    pub wide: bool,
}

/// The most sources, and the most destinations, of a move that a rank makes.
pub const MOVE_LIMIT: u8 = 8;

/// The most ranks whose data a switch moves at once: the most sources, and the most destinations, of its move.
pub const SWITCH_LIMIT: u8 = u8::MAX;

/// The most ranks that a schedule has.
pub const RANK_LIMIT: u32 = 1 << 16;

/// A signal counter. Both ends keep a count of their own, which only rises.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Channel {
    /// The rank that posts.
    pub from: RankId,
    /// The rank that waits.
    pub to: RankId,
    /// The kind of signal between the two ranks.
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
    /// The signal from the receiver to the sender that a slot of the fifo between them is free: a credit.
    Head,
    /// The signal from the sender to the receiver that a slot holds data.
    Tail,
    /// Parent stream to child stream at the head of a `parallel`.
    Fork,
    /// Child stream to parent stream at the end of a `parallel`.
    Join,
    /// From one stream of a rank to another while both run; the lane is the pair of their numbers.
    Local,
}

impl SignalKind {
    /// All kinds, in the order of their numbers.
    pub const ALL: [Self; 7] =
        [Self::Ack, Self::Data, Self::Head, Self::Tail, Self::Fork, Self::Join, Self::Local];

    /// The number of kinds that go from rank to rank: they are the first of all kinds.
    pub const OF_PAIRS: usize = 4;

    /// The number of kinds that go between a stream and its child: they follow the kinds between ranks.
    pub const OF_CHILDREN: usize = 2;

    /// Whether the kind goes from rank to rank; if not, from stream to stream of one rank.
    pub const fn of_pairs(self) -> bool {
        !matches!(self, Self::Fork | Self::Join | Self::Local)
    }

    /// Whether the kind has a lane; if not, it goes between a stream and its child, whose number stands for the lane.
    pub const fn has_lane(self) -> bool {
        !matches!(self, Self::Fork | Self::Join)
    }
}

impl Schedule {
    /// Returns the op with the number `id`.
    pub fn op(&self, id: OpId) -> &Op {
        &self.ops[id.index()]
    }

    /// Returns the sources of a move; `op` must be one.
    pub fn srcs(&self, op: &Op) -> &[Operand] {
        let first = op.arg as usize;
        &self.operands[first..first + op.srcs as usize]
    }

    /// Returns the destinations of a move; `op` must be one.
    pub fn dsts(&self, op: &Op) -> &[Operand] {
        let first = op.arg as usize + op.srcs as usize;
        &self.operands[first..first + op.dsts as usize]
    }

    /// Returns all operands of a move, sources first; `op` must be one.
    pub fn operands_of(&self, op: &Op) -> &[Operand] {
        &self.operands[op.arg as usize..][..op.operands()]
    }

    /// Whether an operand lies in scratch that keeps narrow floats as f32.
    pub fn is_wide(&self, operand: Operand) -> bool {
        self.is_wide_buffer(self.region(operand).buffer)
    }

    /// Whether a buffer is scratch that keeps narrow floats as f32.
    pub fn is_wide_buffer(&self, buffer: Buffer) -> bool {
        matches!(buffer, Buffer::Scratch(id) if self.scratch[id.index()].wide)
    }

    /// Returns the bytes of an element of a region: scratch may keep narrow floats as f32.
    pub fn element_bytes(&self, region: &Region, dtype: DType) -> u64 {
        if self.is_wide_buffer(region.buffer) && dtype.is_narrow_float() {
            size_of::<f32>() as u64
        } else {
            dtype.size() as u64
        }
    }

    /// Whether a move of three sources or more rounds after each source.
    pub fn has_chains(&self) -> bool {
        self.ops.iter().any(|op| op.chain)
    }

    /// Whether a switch of the network makes a move.
    pub fn has_switch(&self) -> bool {
        self.ops.iter().any(|op| op.switch)
    }

    /// Returns the finding, E0704, of a schedule whose sums are wider than its elements, for a runtime that rounds each sum
    /// of two elements to their type. A fold by a switch, whose order is open, may round so if no demand forbids it: each of
    /// its roundings counts as two.
    pub fn rounds_late(&self) -> Option<Box<Finding>> {
        let wide = self.scratch.iter().find(|scratch| scratch.wide);
        let most = self.demands.roundings.map_or(u32::MAX, |(most, _)| most);
        let may_round = |op: &Op| op.switch && 2 * (u32::from(op.srcs) - 1) <= most;
        let once = |op: &&Op| op.kind == OpKind::Move && op.srcs > 2 && !op.chain;
        let late = self.ops.iter().find(|op| once(op) && !may_round(op));
        let (at, why) = match (wide, late) {
            (Some(wide), _) => {
                (SpanId(0), format!("scratch `{}` keeps narrow floats as f32", wide.name))
            }
            (None, late) => (late?.at, format!("a sum of {} rounds once", late?.srcs)),
        };
        let title = format!("{why}, and the runtime rounds after each reduce");
        let finding = Finding::new(Code::NotExportable, at, title);
        let help = "write one `reduce` for each source, and scratch without `as f32`";
        Some(Box::new(finding.help(help)))
    }

    /// Returns the reason, where there is one, why an executor cannot give the schedule's results in types narrower than
    /// f32: its operands are all of the call's type, and all its moves round in one way.
    pub fn needs_wide(&self) -> Option<String> {
        if let Some(wide) = self.scratch.iter().find(|scratch| scratch.wide) {
            return Some(format!("it keeps partial sums as f32, in scratch `{}`", wide.name));
        }
        let once = self.ops.iter().any(|op| op.kind == OpKind::Move && op.srcs > 2 && !op.chain);
        let both = once && self.has_chains();
        both.then(|| "some of its moves round once, and others after each source".to_owned())
    }

    /// Returns the channel of a post or wait; `op` must be one.
    pub fn channel(&self, op: &Op) -> &Channel {
        &self.channels[op.arg as usize]
    }

    /// Returns the id of the channel of a post or wait.
    pub fn channel_id(op: &Op) -> ChannelId {
        ChannelId(op.arg)
    }

    /// Returns the region of an operand.
    pub fn region(&self, operand: Operand) -> &Region {
        &self.regions[operand.region.index()]
    }

    /// Returns the stream that `op` belongs to.
    pub fn stream_of(&self, op: OpId) -> StreamId {
        // Streams are contiguous and in order of their first op; empty ones share a boundary.
        let after = self.streams.partition_point(|s| s.first.0 <= op.0);
        let at = self.streams[..after].iter().rposition(|s| op.0 < s.first.0 + s.len);
        StreamId(at.expect("every op belongs to a stream") as u32)
    }

    /// Returns the main stream of each rank.
    pub fn main_streams(&self) -> Vec<StreamId> {
        let mut main = vec![StreamId(0); self.nranks as usize];
        for (id, stream) in self.streams.iter().enumerate().filter(|(_, s)| s.index == 0) {
            main[stream.rank.index()] = StreamId(id as u32);
        }
        main
    }

    /// Returns the length of `buffer` at `rank` in units of the count; for scratch the width of one slot.
    pub fn units(&self, buffer: Buffer, rank: RankId) -> Rat {
        let whole = |units: u32| Rat::whole(u64::from(units));
        if let Some(lengths) = &self.elements {
            match buffer {
                Buffer::Input => return Rat::whole(lengths.input[rank.index()]),
                Buffer::Output => return Rat::whole(lengths.output[rank.index()]),
                Buffer::Scratch(_) => {}
            }
        }
        match buffer {
            Buffer::Input => whole(self.collective.input_units(rank, self.nranks, self.root)),
            Buffer::Output => whole(self.collective.output_units(rank, self.nranks, self.root)),
            Buffer::Scratch(id) => self.scratch[id.index()].width,
        }
    }

    /// Returns the reason why the schedule is not for calls of `count` elements a unit: its counts are multiples of a
    /// number.
    pub fn refuses(&self, count: u64) -> Option<String> {
        let multiple = self.multiple;
        if multiple > 0 && count.is_multiple_of(multiple) {
            return None;
        }
        let why =
            self.demands.multiple.as_ref().map_or_else(String::new, |why| format!(" ({why})"));
        Some(format!("a count of {count}, where every count is a multiple of {multiple}{why}"))
    }

    /// Returns the length of `buffer` at `rank` in elements, for `count` elements a unit; for scratch of all slots
    /// together.
    pub fn elements(&self, buffer: Buffer, rank: RankId, count: u64) -> u64 {
        match buffer {
            Buffer::Scratch(id) => self.scratch[id.index()].elements(count),
            _ => self.units(buffer, rank).element(count),
        }
    }

    /// Returns the first elements of the input and of the output of `rank` in its one buffer in place, for `count` elements
    /// a unit.
    pub fn in_place_starts(&self, rank: RankId, count: u64) -> (u64, u64) {
        match &self.elements {
            Some(lengths) => lengths.in_place[rank.index()],
            None => {
                let (input, output) = self.collective.alias(rank, self.root).starts();
                (u64::from(input) * count, u64::from(output) * count)
            }
        }
    }

    /// Returns the first element of a region within its buffer, and the number of its elements, for `count` elements a
    /// unit.
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

    /// Returns the name of a buffer, as the author writes it.
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

    /// Returns the place of a statement, the first where it stands for several; all zeros if it is not known.
    pub fn location(&self, at: SpanId) -> Location {
        let at = self.statements(&at)[0];
        self.locations.get(at.index()).copied().unwrap_or_default()
    }

    /// Returns the statements that an op's `at` stands for: `at` itself, or several.
    pub fn statements<'s>(&'s self, at: &'s SpanId) -> &'s [SpanId] {
        let several = at.index().checked_sub(self.locations.len());
        match several.and_then(|at| self.origins.get(at)) {
            Some(several) if !several.is_empty() => several,
            _ => std::slice::from_ref(at),
        }
    }

    /// Returns the statements that an op's `at` stands for as words, such as `ring.coll:12, 14 and 20`; empty if they
    /// are not known.
    pub fn place(&self, at: SpanId) -> String {
        let lines: Vec<String> = self.lines(at).iter().map(u32::to_string).collect();
        let lines = match &lines[..] {
            [] => return String::new(),
            [one] => one.clone(),
            [some @ .., last] => format!("{} and {last}", some.join(", ")),
        };
        match &*self.file {
            "" if lines.contains(' ') => format!("lines {lines}"),
            "" => format!("line {lines}"),
            file => format!("{file}:{lines}"),
        }
    }

    /// Returns the lines of all statements that an op's `at` stands for, in order; none if they are not known.
    pub fn lines(&self, at: SpanId) -> Vec<u32> {
        let line = |at: &SpanId| Some(self.locations.get(at.index())?.line);
        let mut lines: Vec<u32> = self.statements(&at).iter().filter_map(line).collect();
        lines.retain(|line| *line != 0);
        lines.sort_unstable();
        lines.dedup();
        lines
    }
}

impl Scratch {
    /// Returns the length of one slot in elements, for `count` elements a unit.
    pub fn slot_elements(&self, count: u64) -> u64 {
        self.width.element_ceil(count)
    }

    /// Returns the length of the whole buffer in elements, for `count` elements a unit.
    pub fn elements(&self, count: u64) -> u64 {
        self.slot_elements(count).saturating_mul(u64::from(self.slots))
    }
}
