//! Joining: moves of a stream between two of its signals are one move where none depends on another and their regions
//! lie side by side in every operand, in any order of the author's loop.
//!
//! A schedule has one op for each statement and iteration. So NHR's slices are pulled one by one, although the slices
//! that a rank pulls from one peer in one step travel as one message. No rank can see the order of moves between two
//! signals of their stream: a rank that depends on one of them waits for the signal behind them all. The result has
//! the author's signals, and every element is reduced in the author's order.

mod footprint;

use std::iter;

use rustc_hash::FxHashMap;

use crate::ids::{OpId, RankId, RegionId};
use crate::rational::Rat;
use crate::schedule::interner::Interner;
use crate::schedule::origins::Origins;
use crate::schedule::traffic::Messages;
use crate::schedule::{Buffer, Op, OpKind, Operand, Region, Schedule, Stream};
use footprint::Touched;

/// Returns the schedule with moves joined whose regions lie side by side. Demands are about the author's schedule,
/// and stay as they are.
pub fn join(schedule: &Schedule) -> Schedule {
    let writer = JoinWriter {
        schedule,
        ops: Vec::with_capacity(schedule.ops.len()),
        operands: Vec::with_capacity(schedule.operands.len()),
        regions: Interner::default(),
        origins: Origins::of(schedule),
    };
    let mut joiner = Joiner { schedule, to: writer };
    let mut streams = schedule.streams.clone();
    for stream in &mut streams {
        let written = |joiner: &Joiner<'_, JoinWriter<'_>>| joiner.to.ops.len() as u32;
        let first = written(&joiner);
        joiner.stream(stream);
        (stream.first, stream.len) = (OpId(first), written(&joiner) - first);
    }
    let JoinWriter { ops, operands, regions, origins, .. } = joiner.to;
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

/// Returns the messages of the schedule with moves joined, and their pieces, without that schedule.
pub fn messages(schedule: &Schedule) -> Messages {
    // Moves that are joined are of one message.
    let Messages { messages, .. } = schedule.messages();
    let mut joiner = Joiner { schedule, to: PieceCount { schedule, by: RankId(0), pieces: 0 } };
    for stream in &schedule.streams {
        joiner.to.by = stream.rank;
        joiner.stream(stream);
    }
    Messages { messages, pieces: joiner.to.pieces }
}

/// The consumer of the ops of a joined stream.
trait Joined {
    /// Takes a signal.
    fn signal(&mut self, signal: &Op);

    /// Takes moves that are one: `first` and `rest` in the order of their data, of which `at` stands first in the stream.
    fn moves<'m>(&mut self, first: &'m Op, rest: impl Iterator<Item = &'m Op> + Clone, at: &'m Op);
}

/// A count of the pieces of the messages of a joined schedule.
struct PieceCount<'s> {
    schedule: &'s Schedule,
    /// The rank of the stream.
    by: RankId,
    pieces: u64,
}

impl Joined for PieceCount<'_> {
    fn signal(&mut self, _: &Op) {}

    fn moves<'m>(&mut self, first: &'m Op, _: impl Iterator<Item = &'m Op> + Clone, _: &'m Op) {
        // Each of the moves has operands of the same ranks.
        self.pieces += self.schedule.crossing(self.by, first).count() as u64;
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

impl Joined for JoinWriter<'_> {
    fn signal(&mut self, signal: &Op) {
        self.ops.push(*signal);
    }

    fn moves<'m>(&mut self, first: &'m Op, rest: impl Iterator<Item = &'m Op> + Clone, op: &'m Op) {
        let schedule = self.schedule;
        let (last, at) = match rest.clone().last() {
            Some(last) => {
                let run = iter::once(first).chain(rest);
                (last, self.origins.joined(schedule, op, run))
            }
            None => (first, op.at),
        };
        self.ops.push(Op { arg: self.operands.len() as u32, at, ..*op });
        let ends = schedule.operands_of(first).iter().zip(schedule.operands_of(last));
        for (a, b) in ends {
            let (begin, end) = (schedule.region(*a), schedule.region(*b));
            let region = RegionId(self.regions.intern(Region { hi: end.hi, ..*begin }));
            self.operands.push(Operand { rank: a.rank, region });
        }
    }
}

/// The search for moves that lie side by side.
struct Joiner<'s, T> {
    schedule: &'s Schedule,
    to: T,
}

impl<T: Joined> Joiner<'_, T> {
    fn stream(&mut self, stream: &Stream) {
        let ops = &self.schedule.ops[stream.first.index()..][..stream.len as usize];
        let is_move = |op: &Op| op.kind == OpKind::Move;
        let mut touched = Touched::default();
        for run in ops.chunk_by(|a, b| is_move(a) && is_move(b)) {
            match run {
                [op] if is_move(op) => self.to.moves(op, iter::empty(), op),
                [signal] => self.to.signal(signal),
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
        (moved.srcs, moved.chain, moved.switch) == (after.srcs, after.chain, after.switch)
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
        if let [moved] = moves {
            return self.to.moves(moved, iter::empty(), moved);
        }
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
        let mut runs: Vec<(usize, usize)> = (0..moves.len())
            .filter(|at| !is_next[*at])
            .map(|first| {
                let run = iter::successors(Some(first), |at| next[*at]);
                (run.min().unwrap_or(first), first)
            })
            .collect();
        runs.sort_unstable();
        for (earliest, first) in runs {
            let rest = iter::successors(next[first], |at| next[*at]).map(|at| &moves[at]);
            self.to.moves(&moves[first], rest, &moves[earliest]);
        }
    }
}
