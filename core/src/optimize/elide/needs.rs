//! The orders that must stay, whichever signals are dropped: of conflicting accesses, and of the ends of a run.
//!
//! Of the accesses to a cell only neighbors count: a write and the reads of it, and reads and the next write. The
//! other orders follow. Streams order their own ops, so a need is between two streams.

use std::cell::RefCell;

use rustc_hash::FxHashMap;

use crate::ids::{OpId, RankId, StreamId};
use crate::schedule::{Buffer, Op, OpKind, Operand, Schedule};
use crate::verify::Callers;
use crate::verify::clocks::Full;
use crate::verify::in_place::follows;
use crate::verify::layout::{BufferMode, Cells, MemoryLayout, SlotOrigins};
use crate::verify::memory::{CALLER, CellMemory, NOBODY, Past};
use crate::verify::{Access, Order};

/// An order that must stay: `before` comes before `after`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Need {
    /// An op of the first run.
    pub(super) before: OpId,
    /// The later end.
    pub(super) after: After,
    pub(super) kind: NeedKind,
    /// The region that both ends touch.
    pub(super) operand: Operand,
}

/// The later end of a need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum After {
    /// An op of the first run.
    Op(OpId),
    /// An op of the next run.
    Next(OpId),
    /// The end of the rank's main stream in the first run.
    Exit(RankId),
}

/// The kind of a need.
#[derive(Clone, Copy, Debug)]
pub(super) enum NeedKind {
    /// Both ends touch the same cells, and one of them writes.
    Conflict(Access, Access),
    /// The owner of the buffer must enter before the access.
    Enter,
    /// The owner of the buffer must leave after the access.
    Exit(Access),
    /// Both ends are ops at one end of a channel, whose posts and waits are counted.
    Count,
}

/// All needs, in the order of their later ends.
pub(super) struct Needs {
    pub(super) all: Vec<Need>,
    /// Main stream of each rank.
    pub(super) main: Vec<StreamId>,
}

/// Returns the needs; fails with the number of cells that a unit would have, where cells cannot be numbered.
pub(super) fn needs(schedule: &Schedule, order: &Order, callers: Callers) -> Result<Needs, u32> {
    let cells = Cells::new(schedule)?;
    let in_place =
        schedule.collective.has_in_place() && !schedule.out_of_place && !follows(schedule, &cells)?;
    let mut modes = vec![BufferMode::OutOfPlace];
    modes.extend(in_place.then_some(BufferMode::InPlace));
    let mut states = Vec::new();
    for mode in modes {
        let layout = MemoryLayout::new(schedule, &cells, mode).ok_or(cells.per_unit)?;
        states.push(ModeState {
            memory: CellMemory::new(layout.size),
            layout,
            origins: SlotOrigins::default(),
        });
    }
    let main = schedule.main_streams();
    let mut gather = Gather { schedule, order, callers, cells: &cells, main, all: Vec::new() };
    for state in &mut states {
        gather.enter(state);
    }
    let mut last = FxHashMap::default();
    for &at in &order.sequence {
        match schedule.op(at).kind {
            OpKind::Move => gather.moved(&mut states, at, false),
            _ => gather.counted(&mut last, at),
        }
    }
    if callers != Callers::One {
        for state in &mut states {
            gather.exit(state);
        }
        if order.shares_scratch(schedule) {
            let moves = order.sequence.iter().filter(|at| schedule.op(**at).kind == OpKind::Move);
            for &at in moves {
                gather.moved(&mut states[..1], at, true);
            }
        }
    }
    Ok(Needs { all: gather.all, main: gather.main })
}

/// The memory of all ranks in one mode, while the moves are replayed.
struct ModeState {
    layout: MemoryLayout,
    memory: CellMemory,
    origins: SlotOrigins,
}

struct Gather<'s> {
    schedule: &'s Schedule,
    order: &'s Order,
    callers: Callers,
    cells: &'s Cells,
    main: Vec<StreamId>,
    all: Vec<Need>,
}

/// A past that orders every access, and notes the events that an access meets.
struct Meets<'s> {
    order: &'s Order,
    stream: StreamId,
    /// The events met, and whether each is a read.
    met: RefCell<Vec<(u32, bool)>>,
}

impl Past for Meets<'_> {
    fn after(&self, event: u32) -> bool {
        let op = event as usize % self.order.stream_of.len();
        self.order.stream_of[op] == self.stream
    }

    fn after_write(&self, write: u32) -> bool {
        if write != NOBODY {
            self.met.borrow_mut().push((write, false));
        }
        true
    }

    /// The reads came after the write that they read, as a need of theirs asks.
    fn races(&self, reads: &[u32], write: u32) -> Option<(u32, bool)> {
        self.met.borrow_mut().extend(reads.iter().map(|read| (*read, true)));
        if reads.is_empty() {
            self.after_write(write);
        }
        None
    }
}

impl Gather<'_> {
    fn met_by(&self, stream: StreamId) -> Meets<'_> {
        Meets { order: self.order, stream, met: RefCell::new(Vec::new()) }
    }

    /// Marks the callers' writes of their buffers.
    fn enter(&self, state: &mut ModeState) {
        for rank in (0..self.schedule.nranks).map(RankId) {
            for buffer in [Buffer::Output, Buffer::Input] {
                let first = state.layout.buffer(rank, buffer);
                let units = self.schedule.units(buffer, rank).floor() as u32;
                state.memory.enter(first..first + units * self.cells.per_unit);
            }
        }
    }

    /// Adds the needs of a move, in this run or the next.
    fn moved(&mut self, states: &mut [ModeState], at: OpId, next: bool) {
        let begin = self.all.len();
        for state in states {
            self.moved_in(state, at, next);
        }
        let position = |need: &Need| need.before;
        self.all[begin..].sort_by_key(position);
        let mut kept = begin;
        for i in begin..self.all.len() {
            // Of two needs with the same earlier op one is enough; their regions do not matter.
            if kept == begin || self.all[kept - 1].before != self.all[i].before {
                self.all[kept] = self.all[i];
                kept += 1;
            }
        }
        self.all.truncate(kept);
    }

    fn moved_in(&mut self, state: &mut ModeState, at: OpId, next: bool) {
        let schedule = self.schedule;
        let op = schedule.op(at);
        let (srcs, dsts) = (schedule.srcs(op), schedule.dsts(op));
        let place = |o: &Operand| {
            let (first, len) = self.cells.of(*o);
            (state.layout.buffer(o.rank, schedule.region(*o).buffer) + first, len)
        };
        let onto_itself = place(&srcs[0]).1 > 0 && place(&srcs[0]) == place(&dsts[0]);
        if (op.srcs, op.dsts, op.finish) == (1, 1, false) && onto_itself {
            return;
        }
        // A reduce reads and writes its destination: the write is the stronger access.
        let own = usize::from(op.srcs > 1 && onto_itself);
        let reads = srcs.iter().skip(own).map(|o| (o, Access::Read));
        for (operand, access) in reads.chain(dsts.iter().map(|o| (o, Access::Write))) {
            self.accessed(state, at, next, *operand, access);
        }
    }

    fn accessed(
        &mut self,
        state: &mut ModeState,
        at: OpId,
        next: bool,
        operand: Operand,
        access: Access,
    ) {
        let schedule = self.schedule;
        let region = schedule.region(operand);
        // User buffers are ordered by enter and exit.
        if next && !matches!(region.buffer, Buffer::Scratch(_)) {
            return;
        }
        let (first, len) = self.cells.of(operand);
        if len == 0 {
            return;
        }
        let buffer = state.layout.buffer(operand.rank, region.buffer);
        let writes = access == Access::Write;
        let cells = buffer + first..buffer + first + len;
        let slot = self.cells.reshaped_slot(operand.rank, region, buffer);
        let slot = slot.and_then(|slot| slot.at_stake(&mut state.origins, writes));
        let cells = slot.unwrap_or(cells);
        let ops = schedule.ops.len() as u32;
        let event = if next { at.0 + ops } else { at.0 };
        let stream = self.order.stream_of[at.index()];
        let who = self.met_by(stream);
        match access {
            Access::Read => drop(state.memory.read(cells, event, &who)),
            Access::Write => drop(state.memory.write(cells, event, &who)),
        }
        let met = who.met.into_inner();
        let after = if next { After::Next(at) } else { After::Op(at) };
        for (earlier, read) in met {
            let (before, kind) = if earlier == CALLER {
                let main = self.main[operand.rank.index()];
                if self.callers != Callers::Each {
                    continue;
                }
                (schedule.streams[main.index()].first, NeedKind::Enter)
            } else if earlier < ops {
                let first = if read { Access::Read } else { Access::Write };
                (OpId(earlier), NeedKind::Conflict(first, access))
            } else {
                continue; // both are in the next run, where the order is that of this run
            };
            if self.order.stream_of[before.index()] != stream {
                self.all.push(Need { before, after, kind, operand });
            }
        }
    }

    /// Adds the need of a channel's end that belongs to several streams, which take turns.
    fn counted(&mut self, last: &mut FxHashMap<(u32, OpKind), OpId>, at: OpId) {
        let op: &Op = self.schedule.op(at);
        let Some(before) = last.insert((op.arg, op.kind), at) else { return };
        if self.order.stream_of[before.index()] != self.order.stream_of[at.index()] {
            let operand = Operand { rank: RankId(0), region: crate::ids::RegionId(0) };
            let kind = NeedKind::Count;
            self.all.push(Need { before, after: After::Op(at), kind, operand });
        }
    }

    /// Adds the needs of the callers, which take their buffers back.
    fn exit(&mut self, state: &mut ModeState) {
        for rank in (0..self.schedule.nranks).map(RankId) {
            let stream = self.main[rank.index()];
            let begin = self.all.len();
            for buffer in [Buffer::Input, Buffer::Output] {
                let first = state.layout.buffer(rank, buffer);
                let units = self.schedule.units(buffer, rank).floor() as u32;
                let who = self.met_by(stream);
                state.memory.unordered(first..first + units * self.cells.per_unit, &who);
                let mut met = who.met.into_inner();
                met.sort_unstable();
                met.dedup();
                for (event, read) in met {
                    let before = OpId(event);
                    if event == CALLER || self.order.stream_of[before.index()] == stream {
                        continue;
                    }
                    let access = if read { Access::Read } else { Access::Write };
                    let op = self.schedule.op(before);
                    let (srcs, dsts) = (self.schedule.srcs(op), self.schedule.dsts(op));
                    let mut touched = if read { srcs } else { dsts }.iter();
                    let operand = touched.find(|o| {
                        o.rank == rank
                            && !matches!(self.schedule.region(**o).buffer, Buffer::Scratch(_))
                    });
                    let operand = operand.copied().unwrap_or(srcs[0]);
                    let (after, kind) = (After::Exit(rank), NeedKind::Exit(access));
                    self.all.push(Need { before, after, kind, operand });
                }
            }
            // The last access of a stream implies its earlier ones.
            let stream_of = &self.order.stream_of;
            self.all[begin..].sort_by_key(|n| (stream_of[n.before.index()], n.before));
            let mut kept = begin;
            for i in begin..self.all.len() {
                let same = |need: &Need| stream_of[need.before.index()];
                if kept > begin && same(&self.all[kept - 1]) == same(&self.all[i]) {
                    kept -= 1;
                }
                self.all[kept] = self.all[i];
                kept += 1;
            }
            self.all.truncate(kept);
        }
    }
}

/// The reason why there is no smaller set of signals.
pub(super) enum Stop {
    /// The search would take more memory or work than it is worth.
    TooMuch,
    /// The schedule lacks an order that a need asks for: it was not proved.
    Unordered,
}

impl From<Full> for Stop {
    fn from(Full: Full) -> Self {
        Self::TooMuch
    }
}
