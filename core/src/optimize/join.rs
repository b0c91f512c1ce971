//! Joining: moves of a stream between two of its signals are one move where none depends on another and their regions
//! lie side by side in every operand, in any order of the author's loop.
//!
//! A schedule has one op for each statement and iteration. So NHR's slices are pulled one by one, although the slices
//! that a rank pulls from one peer in one step travel as one message. No rank can see the order of moves between two
//! signals of their stream: a rank that depends on one of them waits for the signal behind them all. The result has
//! the author's signals, and every element is reduced in the author's order.

mod touched;

use rustc_hash::FxHashMap;

use crate::ids::{OpId, RankId, RegionId};
use crate::rational::Rat;
use crate::schedule::interner::Interner;
use crate::schedule::origins::Origins;
use crate::schedule::{Buffer, Op, OpKind, Operand, Region, Schedule};
use touched::Touched;

/// Returns the schedule with moves joined whose regions lie side by side. Demands are about the author's schedule,
/// and stay as they are.
pub fn join(schedule: &Schedule) -> Schedule {
    let mut writer = JoinWriter {
        schedule,
        ops: Vec::with_capacity(schedule.ops.len()),
        operands: Vec::with_capacity(schedule.operands.len()),
        regions: Interner::default(),
        origins: Origins::of(schedule),
    };
    let mut streams = schedule.streams.clone();
    for stream in &mut streams {
        let ops = &schedule.ops[stream.first.index()..][..stream.len as usize];
        stream.first = OpId(writer.ops.len() as u32);
        writer.stream(ops);
        stream.len = writer.ops.len() as u32 - stream.first.0;
    }
    let JoinWriter { ops, operands, regions, origins, .. } = writer;
    Schedule {
        streams,
        ops,
        operands,
        regions: regions.items,
        algorithm: schedule.algorithm.clone(),
        scratch: schedule.scratch.clone(),
        channels: schedule.channels.clone(),
        lanes: schedule.lanes.clone(),
        locations: schedule.locations.clone(),
        origins: origins.table(),
        file: schedule.file.clone(),
        demands: schedule.demands.clone(),
        elements: schedule.elements.clone(),
        ..*schedule
    }
}

/// The point where the first destination of a move begins or ends. Destinations of a batch do not overlap, so no two
/// of its moves begin, or end, at one point.
type Point = (RankId, Buffer, u32, Rat);

/// The ops of the joined schedule that is being written.
struct JoinWriter<'s> {
    schedule: &'s Schedule,
    ops: Vec<Op>,
    operands: Vec<Operand>,
    regions: Interner<Region>,
    origins: Origins,
}

impl JoinWriter<'_> {
    fn stream(&mut self, ops: &[Op]) {
        let is_move = |op: &Op| op.kind == OpKind::Move;
        let mut touched = Touched::default();
        for run in ops.chunk_by(|a, b| is_move(a) && is_move(b)) {
            match run {
                [op] if is_move(op) => self.push(op, op, *op),
                [signal] => self.ops.push(*signal),
                moves => self.run(moves, &mut touched),
            }
        }
    }

    /// Writes moves between two signals, in batches of independent moves.
    fn run(&mut self, moves: &[Op], touched: &mut Touched) {
        touched.begin(self.schedule, moves);
        let mut first = 0;
        for (at, moved) in moves.iter().enumerate() {
            if touched.conflicts(self.schedule, moved) {
                self.batch(&moves[first..at]);
                first = at;
                touched.clear();
            }
            touched.insert(self.schedule, moved);
        }
        self.batch(&moves[first..]);
    }

    /// Whether `after` begins where `moved` ends, in every operand.
    fn adjoins(&self, moved: &Op, after: &Op) -> bool {
        let ends = self.schedule.operands_of(moved).iter().zip(self.schedule.operands_of(after));
        (moved.srcs, moved.chain) == (after.srcs, after.chain)
            && moved.dsts == after.dsts
            && ends.into_iter().all(|(a, b)| {
                let (one, next) = (self.schedule.region(*a), self.schedule.region(*b));
                let place = |region: &Region| (region.buffer, region.slot, region.base);
                a.rank == b.rank && place(one) == place(next) && one.hi == next.lo
            })
    }

    /// Writes a batch of independent moves. A run of moves that lie side by side becomes one move, at the place of
    /// its first.
    fn batch(&mut self, moves: &[Op]) {
        let schedule = self.schedule;
        let point = |moved: &Op, of: fn(&Region) -> Rat| -> Point {
            let dst = schedule.dsts(moved)[0];
            let region = schedule.region(dst);
            (dst.rank, region.buffer, region.slot, of(region))
        };
        let is_empty = |moved: &Op| {
            let mut regions = schedule.operands_of(moved).iter().map(|o| schedule.region(*o));
            regions.any(|region| region.lo == region.hi)
        };
        let whole = || moves.iter().enumerate().filter(|(_, moved)| !is_empty(moved));
        let begins: FxHashMap<Point, usize> =
            whole().map(|(at, moved)| (point(moved, |region| region.lo), at)).collect();
        let mut next = vec![None; moves.len()];
        let mut is_next = vec![false; moves.len()];
        for (at, moved) in whole() {
            if let Some(&after) = begins.get(&point(moved, |region| region.hi))
                && self.adjoins(moved, &moves[after])
            {
                next[at] = Some(after);
                is_next[after] = true;
            }
        }
        let mut runs: Vec<(usize, usize, usize)> = (0..moves.len())
            .filter(|at| !is_next[*at])
            .map(|first| {
                let run = std::iter::successors(Some(first), |at| next[*at]);
                run.fold((first, first, first), |(_, earliest, _), at| {
                    (first, earliest.min(at), at)
                })
            })
            .collect();
        runs.sort_by_key(|(_, earliest, _)| *earliest);
        for (first, earliest, last) in runs {
            let run = std::iter::successors(Some(first), |at| next[*at]).map(|at| &moves[at]);
            let op = moves[earliest];
            let at = self.origins.joined(schedule, &op, run);
            self.push(&moves[first], &moves[last], Op { at, ..op });
        }
    }

    /// Writes `op` over the operands from the begin of `first` to the end of `last`.
    fn push(&mut self, first: &Op, last: &Op, op: Op) {
        self.ops.push(Op { arg: self.operands.len() as u32, ..op });
        let ends = self.schedule.operands_of(first).iter().zip(self.schedule.operands_of(last));
        for (a, b) in ends {
            let (begin, end) = (self.schedule.region(*a), self.schedule.region(*b));
            let region = RegionId(self.regions.intern(Region { hi: end.hi, ..*begin }));
            self.operands.push(Operand { rank: a.rank, region });
        }
    }
}
