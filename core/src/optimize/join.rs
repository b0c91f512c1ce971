//! Joining: moves of a stream between two of its signals are one move where none depends on another and their regions
//! lie side by side in every operand, in whatever order the author's loop had them.
//!
//! A schedule has one op for each statement and iteration. NHR's slices are pulled one by one, and yet what a rank
//! pulls from one peer in one step travels as one message. Nobody sees the order of moves between two signals of their
//! stream: whoever depends on them waits for the signal behind them all. The result has the author's signals, and
//! every element is reduced in the author's order.

mod touched;

use rustc_hash::FxHashMap;

use crate::ids::{OpId, RankId, RegionId};
use crate::rational::Rat;
use crate::schedule::interner::Interner;
use crate::schedule::origins::Origins;
use crate::schedule::{Buffer, Op, OpKind, Operand, Region, Schedule};
use touched::Touched;

/// The schedule with the moves joined that lie side by side. Demands are the author's, about the schedule as it was
/// written, and stay as they are.
pub fn join(schedule: &Schedule) -> Schedule {
    let mut writer = Writer {
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
    let Writer { ops, operands, regions, origins, .. } = writer;
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
        ..*schedule
    }
}

/// A move with its operands looked up: sources first.
struct Move {
    op: Op,
    operands: Vec<(RankId, Region)>,
}

/// Where all operands of a move begin, or end: the number of sources, and a point of each operand's buffer.
type Edge = (u8, Vec<(RankId, Buffer, u32, Rat, Rat)>);

impl Move {
    fn edge(&self, point: impl Fn(&Region) -> Rat) -> Edge {
        let at = |(rank, region): &(RankId, Region)| {
            (*rank, region.buffer, region.slot, region.base, point(region))
        };
        (self.op.srcs, self.operands.iter().map(at).collect())
    }

    fn is_empty(&self) -> bool {
        self.operands.iter().any(|(_, region)| region.lo == region.hi)
    }
}

/// The ops of the joined schedule in the making.
struct Writer<'s> {
    schedule: &'s Schedule,
    ops: Vec<Op>,
    operands: Vec<Operand>,
    regions: Interner<Region>,
    origins: Origins,
}

impl Writer<'_> {
    fn stream(&mut self, ops: &[Op]) {
        let is_move = |op: &Op| op.kind == OpKind::Move;
        for run in ops.chunk_by(|a, b| is_move(a) && is_move(b)) {
            match run {
                [op] if is_move(op) => self.push(&self.look_up(*op)),
                [signal] => self.ops.push(*signal),
                moves => self.run(moves),
            }
        }
    }

    /// Moves between two signals, in batches of which none depends on another.
    fn run(&mut self, moves: &[Op]) {
        let mut touched = Touched::default();
        let mut batch = Vec::new();
        for moved in moves {
            let moved = self.look_up(*moved);
            if touched.conflicts(self.schedule, &moved) {
                self.batch(&batch);
                batch.clear();
                touched = Touched::default();
            }
            touched.insert(self.schedule, &moved);
            batch.push(moved);
        }
        self.batch(&batch);
    }

    fn look_up(&self, op: Op) -> Move {
        let operands = self.schedule.srcs(&op).iter().chain(self.schedule.dsts(&op));
        let operands =
            operands.map(|operand| (operand.rank, *self.schedule.region(*operand))).collect();
        Move { op, operands }
    }

    /// Writes moves of which none depends on another, each run of them that lies side by side as one, where the first
    /// of the run stood.
    fn batch(&mut self, moves: &[Move]) {
        // Destinations do not overlap, so no two moves begin, or end, at one edge.
        let whole = || moves.iter().enumerate().filter(|(_, moved)| !moved.is_empty());
        let begins: FxHashMap<Edge, usize> =
            whole().map(|(at, moved)| (moved.edge(|region| region.lo), at)).collect();
        let mut next = vec![None; moves.len()];
        let mut is_next = vec![false; moves.len()];
        for (at, moved) in whole() {
            if let Some(&after) = begins.get(&moved.edge(|region| region.hi)) {
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
            let ends = moves[first].operands.iter().zip(&moves[last].operands);
            let operands = ends.map(|((rank, a), (_, b))| (*rank, Region { hi: b.hi, ..*a }));
            let run = std::iter::successors(Some(first), |at| next[*at]).map(|at| &moves[at].op);
            let op = moves[earliest].op;
            let at = self.origins.joined(self.schedule, &op, run);
            self.push(&Move { op: Op { at, ..op }, operands: operands.collect() });
        }
    }

    fn push(&mut self, moved: &Move) {
        self.ops.push(Op { arg: self.operands.len() as u32, ..moved.op });
        for (rank, region) in &moved.operands {
            let region = RegionId(self.regions.intern(*region));
            self.operands.push(Operand { rank: *rank, region });
        }
    }
}
