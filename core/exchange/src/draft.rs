//! A schedule under construction: streams, their ops, and the tables that the ops share.

use super::memory::Memories;
use super::program::Header;
use super::report::span;
use super::terms::Mode;
use roundelay_core::diagnostics::{Code, Diagnostic};
use roundelay_core::ids::{LaneId, OpId, RankId, RegionId, ScratchId, SpanId};
use roundelay_core::schedule::demands::Demands;
use roundelay_core::schedule::interner::Interner;
use roundelay_core::schedule::{
    Channel, Op, OpKind, Operand, Region, Schedule, Scratch, SignalKind, Stream,
};
use roundelay_core::syntax::Source;

/// A schedule under construction.
pub(super) struct Draft {
    streams: Vec<Stream>,
    ops: Vec<Op>,
    operands: Vec<Operand>,
    regions: Interner<Region>,
    channels: Interner<Channel>,
    lanes: Interner<Vec<i64>>,
    scratch: Vec<Scratch>,
}

impl Draft {
    pub(super) fn new(scratch: Vec<Scratch>) -> Self {
        let mut lanes = Interner::default();
        lanes.intern(Vec::new());
        Self {
            streams: Vec::new(),
            ops: Vec::new(),
            operands: Vec::new(),
            regions: Interner::default(),
            channels: Interner::default(),
            lanes,
            scratch,
        }
    }

    /// Declares a scratch buffer.
    pub(super) fn declare(&mut self, scratch: Scratch) -> ScratchId {
        self.scratch.push(scratch);
        ScratchId(self.scratch.len() as u32 - 1)
    }

    /// Begins a stream.
    pub(super) fn begin(&mut self, rank: RankId, index: u32) {
        let first = OpId(self.ops.len() as u32);
        self.streams.push(Stream { rank, index, first, len: 0 });
    }

    fn push(&mut self, op: Op) {
        self.ops.push(op);
        if let Some(stream) = self.streams.last_mut() {
            stream.len += 1;
        }
    }

    /// Adds a move.
    pub(super) fn data(
        &mut self,
        at: SpanId,
        srcs: &[(RankId, Region)],
        dsts: &[(RankId, Region)],
        switch: bool,
    ) {
        let arg = self.operands.len() as u32;
        for (rank, region) in srcs.iter().chain(dsts) {
            let region = RegionId(self.regions.intern(*region));
            self.operands.push(Operand { rank: *rank, region });
        }
        let (srcs, dsts) = (srcs.len() as u8, dsts.len() as u8);
        let op = Op::new(OpKind::Move, at, arg);
        self.push(Op { srcs, dsts, chain: srcs > 2, switch, ..op });
    }

    /// Adds a post or a wait on a channel.
    pub(super) fn signal(&mut self, at: SpanId, kind: OpKind, channel: Channel) {
        let arg = self.channels.intern(channel);
        self.push(Op::new(kind, at, arg));
    }

    /// Adds a post or a wait of a signal in a lane, from rank to rank or between two streams of a rank.
    pub(super) fn word(
        &mut self,
        at: SpanId,
        kind: OpKind,
        (from, to): (RankId, RankId),
        (signal, lane): (SignalKind, Vec<i64>),
    ) {
        let lane = LaneId(self.lanes.intern(lane));
        self.signal(at, kind, Channel { from, to, kind: signal, lane });
    }

    /// Adds the signal of a stream's fork or join.
    pub(super) fn child(
        &mut self,
        at: SpanId,
        kind: OpKind,
        rank: RankId,
        signal: SignalKind,
        stream: u32,
    ) {
        let lane = LaneId(stream);
        self.signal(at, kind, Channel { from: rank, to: rank, kind: signal, lane });
    }

    /// Adds the main stream of a rank. In each round it copies the input to its place, forks the streams of the blocks,
    /// joins them, and copies the output.
    pub(super) fn main(
        &mut self,
        memories: &Memories,
        rank: RankId,
        at: SpanId,
        (numbers, rounds): (&[u32], u32),
    ) {
        let (entry, exit) = (memories.entry(rank), memories.exit(rank));
        let streams = numbers.last().copied().unwrap_or(0);
        self.begin(rank, 0);
        for round in 0..rounds {
            let all = round * streams + 1..=(round + 1) * streams;
            if let Some([from, to]) = entry {
                self.data(at, &[(rank, from)], &[(rank, to)], false);
            }
            for stream in all.clone() {
                self.child(at, OpKind::Post, rank, SignalKind::Fork, stream);
            }
            for stream in all {
                self.child(at, OpKind::Wait, rank, SignalKind::Join, stream);
            }
            if let Some([from, to]) = exit {
                self.data(at, &[(rank, from)], &[(rank, to)], false);
            }
        }
    }

    /// Returns the schedule of a program that was read from `source`, called in a mode.
    pub(super) fn finish<H>(
        self,
        source: &Source,
        header: &Header<H>,
        memories: &Memories,
        mode: Mode,
    ) -> Schedule {
        let name = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
        Schedule {
            algorithm: match &*header.name {
                "" => "program".to_owned(),
                named => named.chars().map(name).collect(),
            },
            collective: memories.collective(),
            nranks: header.nranks,
            root: RankId(0),
            out_of_place: mode == Mode::OutOfPlace,
            multiple: memories.multiple(),
            elements: None,
            scratch: self.scratch,
            streams: self.streams,
            ops: self.ops,
            operands: self.operands,
            regions: self.regions.items,
            channels: self.channels.items,
            lanes: self.lanes.items,
            locations: source.places().to_vec(),
            origins: Vec::new(),
            file: source.name().into(),
            demands: Demands::default(),
        }
    }
}

/// The most ops of a schedule.
pub(super) const OPS: u64 = 1 << 24;
/// The most chunks, or parts of chunks, in the buffers of all ranks.
pub(super) const PLACES: u64 = 1 << 24;

/// Returns the error of a program that is too large for a proof.
pub(super) fn too_large(whole: SpanId, what: String) -> Vec<Diagnostic> {
    let title = what + ", more than a proof can hold";
    vec![Diagnostic::new(Code::StepLimit, span(whole), title)]
}

/// Returns the streams of a rank's blocks, counted from 1 without gaps; an empty block has no stream.
pub(super) fn streams(empty: impl Iterator<Item = bool>) -> Vec<u32> {
    let mut next = 0;
    let number = |empty: bool| {
        next += u32::from(!empty);
        next
    };
    empty.map(number).collect()
}
