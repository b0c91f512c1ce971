//! A schedule whose switch moves data, as one in which the ranks move it: for engines, and for networks whose switch does
//! not reduce.
//!
//! The order in which a switch folds is open, so any order serves. Each fold begins with the rank that moves, and takes the
//! other ranks in an order that is drawn from a seed, so that a program that relies on one order shows it. A fold of more sources than a move has keeps its
//! partial sum as f32, so its result is rounded once, as that of a switch.

use super::{Buffer, MOVE_LIMIT, Op, OpKind, Operand, Region, Schedule, Scratch, Stream};
use crate::dtype::{DType, ReduceOp};
use crate::ids::{OpId, RegionId, ScratchId};
use crate::random::SplitMix64;
use crate::rational::Rat;

/// The most operands on a side of a move that a rank makes.
const MOST: usize = MOVE_LIMIT as usize;

/// The seed of the orders in which [`as_moves`] folds.
const SEED: u64 = 0x0073_7769_7463_6800;

/// Returns the reason why a switch does not fold elements by an op as Roundelay does; `None` where it does. The source is PTX's
/// table of `multimem.ld_reduce`.
pub fn reason_against(element: DType, op: ReduceOp) -> Option<&'static str> {
    use ReduceOp::{Avg, Band, Bor, Bxor, Land, Lor, Lxor, Max, Min, Prod, Sum};
    match op {
        Prod | Land | Lor | Lxor => Some("it has no such op"),
        Sum | Avg | Min | Max if element.size() == 1 => {
            Some("it has no elements of 8 bits, but for `band`, `bor` and `bxor`")
        }
        Avg if element.is_narrow_float() => {
            Some("it rounds a sum to 16 bits before that is divided")
        }
        Min | Max if element.is_float() => Some("its min and max of floats leave out NaNs"),
        Sum | Avg | Min | Max | Band | Bor | Bxor => None,
    }
}

/// Returns the schedule with moves by the ranks in place of those by a switch, in orders that a fixed seed draws.
pub fn as_moves(of: &Schedule) -> Schedule {
    as_moves_by(of, SEED)
}

/// Returns the schedule with moves by the ranks in place of those by a switch, in orders that `seed` draws.
pub fn as_moves_by(of: &Schedule, seed: u64) -> Schedule {
    let mut made = of.clone();
    made.streams.clear();
    made.ops.clear();
    made.operands.clear();
    let mut writer = Writer { of, made, random: SplitMix64(seed), partials: None };
    for stream in &of.streams {
        let first = writer.made.ops.len();
        for op in &of.ops[stream.first.index()..][..stream.len as usize] {
            writer.op(*stream, op);
        }
        let len = (writer.made.ops.len() - first) as u32;
        writer.made.streams.push(Stream { first: OpId(first as u32), len, ..*stream });
    }
    writer.made
}

struct Writer<'s> {
    of: &'s Schedule,
    made: Schedule,
    random: SplitMix64,
    /// The scratch of partial sums, a slot for each stream of a rank; declared for the first that needs it.
    partials: Option<ScratchId>,
}

impl Writer<'_> {
    fn op(&mut self, stream: Stream, op: &Op) {
        if op.kind != OpKind::Move {
            self.made.ops.push(*op);
            return;
        }
        let (srcs, dsts) = (self.of.srcs(op), self.of.dsts(op));
        if !op.switch {
            self.push(op, srcs, dsts);
            return;
        }
        let mut srcs = srcs.to_vec();
        // The first source of a fold that writes it is the value that is added to, which lies with the rank that moves.
        let own = srcs.iter().position(|src| src.rank == stream.rank).unwrap_or(0);
        srcs.swap(0, own);
        for last in (2..srcs.len()).rev() {
            srcs.swap(last, 1 + self.random.below(last));
        }
        // Each rank begins behind itself, so that not all write to one rank at once.
        let behind = dsts.partition_point(|dst| dst.rank <= stream.rank);
        let mut dsts = [&dsts[behind..], &dsts[..behind]].concat();
        if let [src] = srcs[..] {
            dsts.retain(|dst| *dst != src);
        } else if srcs.len() > MOST || dsts.len() > MOST {
            srcs = vec![self.sum(stream, op, &srcs)];
        }
        for dsts in dsts.chunks(MOST) {
            self.push(op, &srcs, dsts);
        }
    }

    /// Folds the sources into a partial sum, and returns its place.
    fn sum(&mut self, stream: Stream, op: &Op, srcs: &[Operand]) -> Operand {
        let Region { lo, hi, .. } = *self.of.region(srcs[0]);
        let buffer = Buffer::Scratch(self.partials());
        let region = Region { buffer, slot: stream.index, base: lo, lo, hi };
        let known = self.made.regions.iter().rposition(|known| *known == region);
        let region = known.unwrap_or_else(|| {
            self.made.regions.push(region);
            self.made.regions.len() - 1
        });
        let partial = Operand { rank: stream.rank, region: RegionId(region as u32) };
        let (first, others) = srcs.split_at(srcs.len().min(MOST));
        self.push(op, first, &[partial]);
        for srcs in others.chunks(MOST - 1) {
            self.push(op, &[&[partial], srcs].concat(), &[partial]);
        }
        partial
    }

    /// Declares the scratch of partial sums, if it is not declared yet.
    fn partials(&mut self) -> ScratchId {
        if let Some(known) = self.partials {
            return known;
        }
        let moves = self.of.ops.iter().filter(|op| op.switch).map(|op| self.of.srcs(op)[0]);
        let widths = moves.filter_map(|src| {
            let Region { lo, hi, .. } = *self.of.region(src);
            hi.minus(lo)
        });
        let width = widths.max().unwrap_or(Rat::ZERO);
        let slots = self.of.streams.iter().map(|stream| stream.index + 1).max().unwrap_or(1);
        let mut name = "partial".to_owned();
        while self.of.scratch.iter().any(|scratch| scratch.name == name) {
            name.push('_');
        }
        let id = ScratchId(self.made.scratch.len() as u32);
        self.made.scratch.push(Scratch { name, slots, width, wide: true });
        *self.partials.insert(id)
    }

    fn push(&mut self, op: &Op, srcs: &[Operand], dsts: &[Operand]) {
        let (of, to) = (srcs.len() as u8, dsts.len() as u8);
        let arg = self.made.operands.len() as u32;
        self.made.operands.extend(srcs.iter().chain(dsts));
        self.made.ops.push(Op { srcs: of, dsts: to, switch: false, arg, ..*op });
    }
}
