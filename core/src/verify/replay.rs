//! One replay of the schedule: values, races, and the ops that complete results. Both modes share the clocks.

use std::ops::Range;

use super::clocks::{self, Clocks, Full};
use super::completions::Completions;
use super::layout::{BufferMode, Cells, MemoryLayout, SlotOrigins};
use super::memory::{Accessor, CALLER, CellMemory};
use super::order::Order;
use super::orders::Orders;
use super::reduction::Reduction;
use super::report::{Access, Reporter};
use super::signals::{Flags, Signals};
use super::values::{Leaf, ValueId, Values};
use crate::diagnostics::Finding;
use crate::ids::{OpId, RankId, StreamId};
use crate::schedule::{Buffer, OpKind, Operand, Schedule};
use crate::stages;
use crate::verify::Callers;

/// The results of a replay.
pub(super) struct Replay {
    pub(super) findings: Vec<Finding>,
    pub(super) in_place_findings: Vec<Finding>,
    pub(super) finish: Option<Vec<OpId>>,
    pub(super) reduce_depth: u32,
    pub(super) reduction: Option<Reduction>,
    pub(super) orders: Orders,
    pub(super) one_mode: Option<OpId>,
}

/// The memory of all ranks in one mode during the replay, and the findings in it.
pub(super) struct ModeState {
    pub(super) layout: MemoryLayout,
    pub(super) memory: CellMemory,
    pub(super) origins: SlotOrigins,
    pub(super) findings: Vec<Finding>,
    pub(super) completions: Completions,
}

/// The findings kept per mode; beyond this number, more findings are dropped.
pub(super) const ENOUGH: usize = 4096;

pub(super) struct Player<'s> {
    pub(super) schedule: &'s Schedule,
    pub(super) order: &'s Order,
    pub(super) reporter: &'s Reporter<'s>,
    pub(super) cells: &'s Cells,
    pub(super) clocks: Clocks<'s>,
    pub(super) values: Values,
    /// The main stream of each rank, its first.
    pub(super) main: Vec<StreamId>,
    pub(super) states: Vec<ModeState>,
    /// Whether there are contributions to be summed.
    pub(super) reduces: bool,
    pub(super) results: Vec<ValueId>,
    /// The first read, in place, of an input that its rank's output has overwritten.
    pub(super) one_mode: Option<OpId>,
    /// The callers that bring the ranks in.
    callers: Callers,
    /// The number of runs to replay: a second run where the remains of the first matter to it.
    pub(super) runs: usize,
    /// The flags, where signals are one-shot flags.
    flags: Option<Flags>,
    /// Whether there is a finding that clocks with more knowledge might not find.
    unsure: bool,
}

/// The reason why a replay ends early.
pub(super) enum Stop {
    Full,
    Unsure,
}

impl From<Full> for Stop {
    fn from(Full: Full) -> Self {
        Self::Full
    }
}

/// The schedule that is replayed, with all that every replay of it needs.
pub(super) struct Replayed<'s> {
    pub(super) schedule: &'s Schedule,
    pub(super) order: &'s Order,
    pub(super) cells: &'s Cells,
    pub(super) reporter: &'s Reporter<'s>,
    pub(super) modes: &'s [BufferMode],
    pub(super) signals: Signals,
    pub(super) callers: Callers,
}

pub(super) fn replay(of: &Replayed<'_>) -> Result<Replay, Box<Finding>> {
    let Replayed { schedule, order, reporter, .. } = *of;
    let too_many = || Box::new(reporter.too_many_streams());
    for clocks in Clocks::quick(schedule) {
        if let Ok(sure) = replay_with(clocks, of)? {
            return Ok(sure);
        }
    }
    if !Clocks::fit(schedule, order, clocks::ENTRIES) {
        return Err(too_many());
    }
    let clocks = Clocks::dense(schedule, clocks::ENTRIES).map_err(|Full| too_many())?;
    replay_with(clocks, of)?.map_err(|_| too_many())
}

pub(super) fn replay_with<'s>(
    clocks: Clocks<'s>,
    of: &Replayed<'s>,
) -> Result<Result<Replay, Stop>, Box<Finding>> {
    let Replayed { schedule, order, cells, reporter, modes, signals, callers } = *of;
    let too_fine = |per_unit| Box::new(Reporter::too_fine(per_unit));
    let mut states = Vec::new();
    for mode in modes {
        let layout =
            MemoryLayout::new(schedule, cells, *mode).ok_or_else(|| too_fine(cells.per_unit))?;
        let memory = CellMemory::new(layout.size);
        states.push(ModeState {
            layout,
            memory,
            origins: SlotOrigins::default(),
            findings: Vec::new(),
            completions: Completions::default(),
        });
    }
    // A reduce has three operands at least.
    let values = Values::new(schedule.nranks, schedule.operands.len() / 3);
    let mut player = Player {
        schedule,
        order,
        reporter,
        cells,
        clocks,
        values,
        main: schedule.main_streams(),
        states,
        reduces: schedule.collective.reduces() && schedule.nranks > 1,
        results: Vec::new(),
        one_mode: None,
        callers,
        runs: 1 + usize::from(signals.one_shot || order.shares_scratch(schedule)),
        flags: signals.one_shot.then(|| Flags::new(schedule, order)),
        unsure: false,
    };
    Ok(player.play().map(|()| player.verdict()))
}

impl Player<'_> {
    fn play(&mut self) -> Result<(), Stop> {
        for mode in 0..self.states.len() {
            self.enter(mode);
        }
        let order = self.order;
        let mut last: Vec<[Option<OpId>; 2]> = vec![[None; 2]; self.schedule.channels.len()];
        for (done, &at) in order.sequence.iter().enumerate() {
            stages::done(done, self.runs * order.sequence.len());
            let stream = order.stream_of[at.index()];
            let op = *self.schedule.op(at);
            match op.kind {
                OpKind::Move => {
                    for mode in 0..self.states.len() {
                        self.play_move(mode, at);
                    }
                }
                OpKind::Post => {
                    self.raise(at, stream);
                    self.alone(&mut last[op.arg as usize][0], at, stream);
                    self.clocks.post(at, stream);
                }
                OpKind::Wait => {
                    let post = order.meets[at.index()];
                    // Checked before it hears the post: a stream that is here early must not take another stream's
                    // signal.
                    self.alone(&mut last[op.arg as usize][1], at, stream);
                    self.clocks.wait(post, order.stream_of[post.index()], stream)?;
                }
            }
            self.sure()?;
        }
        // One caller for all ranks takes its buffers back when all ranks have ended, and only then runs them again.
        if self.callers != Callers::One {
            for mode in 0..self.states.len() {
                self.exit(mode);
            }
            if self.runs > 1 {
                self.second_run()?;
            }
        }
        self.sure()?;
        Ok(())
    }

    pub(super) fn sure(&self) -> Result<(), Stop> {
        if self.unsure { Err(Stop::Unsure) } else { Ok(()) }
    }

    /// Checks that a one-shot flag has been taken down before it is raised again.
    pub(super) fn raise(&mut self, at: OpId, stream: StreamId) {
        let Some(flags) = &mut self.flags else { return };
        let channel = Schedule::channel_id(self.schedule.op(at));
        if let Some((earlier, across)) = flags.raise(channel, at, stream, self.order, &self.clocks)
        {
            let finding = self.reporter.lost_signal(earlier, at, across);
            self.found(0, finding);
        }
    }

    /// Checks that all streams that use one end of a channel are ordered among themselves.
    fn alone(&mut self, last: &mut Option<OpId>, at: OpId, stream: StreamId) {
        // Where two streams raise one flag, the finding of the lost signal says more.
        if self.flags.is_some() {
            return;
        }
        let earlier = last.replace(at);
        if let Some(earlier) = earlier {
            let of = self.order.stream_of[earlier.index()];
            if !self.clocks.before(self.clocks.event(earlier), of, stream) {
                let finding = self.reporter.shared_signal(earlier, at);
                self.found(0, finding);
            }
        }
    }

    pub(super) fn found(&mut self, mode: usize, finding: Finding) {
        self.unsure |= self.clocks.may_miss();
        let findings = &mut self.states[mode].findings;
        if findings.len() < ENOUGH {
            findings.push(finding);
        }
    }

    /// Enters the callers, who have written their buffers; inputs hold their contributions.
    fn enter(&mut self, mode: usize) {
        let Self { schedule, cells, .. } = self;
        let ModeState { layout, memory, .. } = &mut self.states[mode];
        for rank in (0..schedule.nranks).map(RankId) {
            for buffer in [Buffer::Output, Buffer::Input] {
                let first = layout.buffer(rank, buffer);
                let len = schedule.units(buffer, rank).floor() as u32 * cells.per_unit;
                memory.enter(first..first + len);
                if buffer == Buffer::Input {
                    let values = &mut memory.values[first as usize..][..len as usize];
                    for (cell, value) in values.iter_mut().enumerate() {
                        *value = Values::leaf(Leaf { rank, cell: cell as u32 });
                    }
                }
            }
        }
    }

    fn play_move(&mut self, mode: usize, at: OpId) {
        let schedule = self.schedule;
        let op = schedule.op(at);
        let (srcs, dsts) = (schedule.srcs(op), schedule.dsts(op));
        let place = |o: &Operand| {
            let (first, len) = self.cells.of(*o);
            (self.states[mode].layout.buffer(o.rank, schedule.region(*o).buffer) + first, len)
        };
        // Checked before the moves that are no ops in place return: the value that they pass on must be the input too.
        if mode > 0
            && self.one_mode.is_none()
            && srcs.iter().any(|src| self.overwritten(mode, *src))
        {
            self.one_mode = Some(at);
        }
        let (first, len) = place(&srcs[0]);
        // An empty piece at the end of a buffer has the first cell of the next buffer, but is no copy onto itself.
        let onto_itself = len > 0 && first == place(&dsts[0]).0;
        if op.srcs == 1 && op.dsts == 1 && onto_itself && !op.finish {
            return;
        }
        let sources: [u32; 8] = std::array::from_fn(|i| srcs.get(i).map_or(0, |s| place(s).0));
        let targets: [u32; 8] = std::array::from_fn(|i| dsts.get(i).map_or(0, |d| place(d).0));
        // A reduce reads its destination and writes it: only the write, the stronger access, is checked.
        let own = usize::from(op.srcs > 1 && first == targets[0]);
        let mut bad = false;
        for (src, from) in srcs.iter().zip(sources) {
            bad |= self.misplaced(mode, at, *src);
            // Out of place, a legal schedule has no such overlap.
            let shifted = |to: &u32| *to != from && to.abs_diff(from) < len;
            if let Some((dst, _)) = dsts.iter().zip(targets).find(|(_, to)| shifted(to)) {
                let finding = self.reporter.shifted(at, *src, *dst);
                self.found(mode, finding);
                bad = true;
            }
        }
        let mut results = std::mem::take(&mut self.results);
        results.clear();
        for (src, first) in srcs.iter().zip(sources).skip(own) {
            bad |= self.access(mode, at, *src, first..first + len, Access::Read).is_some();
        }
        let wide = |operand: &Operand| schedule.is_wide(*operand);
        let exact = dsts.iter().any(wide);
        self.fold(mode, at, (srcs, &sources), (len, !exact), &mut results);
        let unrounded = (exact || op.srcs == 1 && wide(&srcs[0])).then(|| results.clone());
        let narrow = !dsts.iter().all(wide);
        if unrounded.is_some() && narrow {
            for value in &mut results {
                *value = self.values.rounded(*value, at);
            }
        }
        for (dst, first) in dsts.iter().zip(targets) {
            let raced = self.access(mode, at, *dst, first..first + len, Access::Write);
            let good = if bad { 0 } else { raced.unwrap_or(len) } as usize;
            bad |= raced.is_some();
            let values = unrounded.as_ref().filter(|_| wide(dst)).unwrap_or(&results);
            let cells = &mut self.states[mode].memory.values[first as usize..][..len as usize];
            cells[..good].copy_from_slice(&values[..good]);
            cells[good..].fill(ValueId::POISON);
        }
        // A sum is divided where it is rounded, as f32 before the rounding: not in wide scratch, but by the copy out of it.
        if self.reduces && narrow {
            match &unrounded {
                Some(before) if op.srcs == 1 => {
                    let same = results.iter_mut().zip(before).filter(|(after, b)| after == b);
                    same.for_each(|(after, _)| *after = ValueId::NONE);
                    self.completes(mode, at, &results);
                }
                _ if op.srcs > 1 => self.completes(mode, at, &results),
                _ => {}
            }
        }
        self.results = results;
    }

    /// Computes the result of a move, operand by operand: the first source, with the others folded into it; `rounds` is
    /// whether the last fold rounds.
    fn fold(
        &mut self,
        mode: usize,
        at: OpId,
        (srcs, firsts): (&[Operand], &[u32]),
        (len, rounds): (u32, bool),
        results: &mut Vec<ValueId>,
    ) {
        let chain = self.schedule.op(at).chain;
        for (i, (src, first)) in srcs.iter().zip(firsts).enumerate() {
            let memory = &self.states[mode].memory;
            let values = &memory.values[*first as usize..][..len as usize];
            let garbage = values.iter().filter(|value| **value == ValueId::NONE).count();
            if i == 0 {
                results.extend_from_slice(values);
            } else {
                let rounds = if i + 1 < srcs.len() { chain } else { rounds };
                for (folded, operand) in results.iter_mut().zip(values) {
                    let sound = folded.is_value() && operand.is_value();
                    *folded = if sound {
                        self.values.fold(*operand, *folded, rounds, at)
                    } else {
                        ValueId::POISON
                    };
                }
            }
            if garbage > 0 {
                let finding = self.reporter.uninitialized(at, *src);
                self.found_in(mode, garbage as u32, &finding);
            }
        }
        for value in results.iter_mut().filter(|value| !value.is_value()) {
            *value = ValueId::POISON;
        }
    }

    /// Whether an input holds something else than its rank's contribution, as it may where it shares memory.
    fn overwritten(&self, mode: usize, src: Operand) -> bool {
        if self.schedule.region(src).buffer != Buffer::Input {
            return false;
        }
        let ModeState { layout, memory, .. } = &self.states[mode];
        let (begin, len) = self.cells.of(src);
        let first = layout.buffer(src.rank, Buffer::Input) + begin;
        let own = |cell| Values::leaf(Leaf { rank: src.rank, cell });
        let values = &memory.values[first as usize..][..len as usize];
        !values.iter().zip(begin..).all(|(value, cell)| *value == own(cell))
    }

    /// Records a finding once for each of `cells` cells.
    pub(super) fn found_in(&mut self, mode: usize, cells: u32, finding: &Finding) {
        for _ in 0..(cells as usize).min(ENOUGH) {
            self.found(mode, finding.clone());
        }
    }

    /// Returns the cells at which an access may conflict: the whole slot where it holds data of another place, whose
    /// data the access overwrites if it writes.
    fn at_stake(
        &mut self,
        mode: usize,
        operand: Operand,
        cells: Range<u32>,
        access: Access,
    ) -> Range<u32> {
        let region = self.schedule.region(operand);
        let ModeState { layout, memory, origins, .. } = &mut self.states[mode];
        let first = layout.buffer(operand.rank, region.buffer);
        let writes = access == Access::Write;
        let Some(slot) = self.cells.reshapes(origins, (operand.rank, region), first, writes) else {
            return cells;
        };
        if writes {
            memory.values[slot.start as usize..slot.end as usize].fill(ValueId::NONE);
        }
        slot
    }

    /// Records an access to the cells of an op's operand; returns the number of cells before the first that races, if
    /// one does.
    pub(super) fn access(
        &mut self,
        mode: usize,
        at: OpId,
        operand: Operand,
        cells: Range<u32>,
        access: Access,
    ) -> Option<u32> {
        let asked = self.at_stake(mode, operand, cells.clone(), access);
        let event = self.clocks.event(at);
        let stream = self.order.stream_of[at.index()];
        let who = Accessor {
            stream,
            clocks: &self.clocks,
            stream_of: &self.order.stream_of,
            owner: (self.callers == Callers::Each).then(|| self.main[operand.rank.index()]),
        };
        let memory = &mut self.states[mode].memory;
        let races = match access {
            _ if cells.is_empty() => Vec::new(),
            Access::Read => {
                let races = memory.read(asked, event, &who);
                races.into_iter().map(|(cells, write)| (cells, (write, false))).collect()
            }
            Access::Write => memory.write(asked, event, &who),
        };
        let first = races.first()?.0.start;
        for (raced, (earlier, was_read)) in races {
            let other = if was_read { Access::Read } else { Access::Write };
            let finding = self.race(at, operand, earlier, access, other);
            self.found_in(mode, raced.len().min(cells.len()) as u32, &finding);
        }
        Some(first.saturating_sub(cells.start))
    }

    fn race(
        &self,
        at: OpId,
        operand: Operand,
        earlier: u32,
        access: Access,
        other: Access,
    ) -> Finding {
        if earlier == CALLER {
            self.reporter.before_enter(at, operand, access)
        } else {
            let (first, run) = self.clocks.op(earlier);
            let across = self.clocks.op(self.clocks.event(at)).1 != run;
            self.reporter.race((first, other), (at, access), operand, across)
        }
    }

    /// Whether a read expects data of another place than the slot holds; records a finding if so.
    fn misplaced(&mut self, mode: usize, at: OpId, operand: Operand) -> bool {
        let region = self.schedule.region(operand);
        let origins = &self.states[mode].origins;
        let origin = origins.get(&(operand.rank, region.buffer, region.slot)).copied();
        let Some(origin) = origin.filter(|base| *base != region.base) else { return false };
        let finding = self.reporter.slot_length(at, operand, origin);
        self.found(mode, finding);
        true
    }
}
