//! One replay of the schedule: values, races, and the ops that complete results. Both modes share the order of events.

use std::ops::Range;

use super::callers::Callers;
use super::completions::Completions;
use super::layout::{MemoryLayout, SlotOrigins};
use super::memory::{CALLER, CellMemory};
use super::order::Order;
use super::ranks::{FollowedRanks, ValueOf};
use super::report::{Access, Reporter};
use super::values::{CellValue, Expressions, FoldWay, Leaf};
use crate::diagnostics::Finding;
use crate::ids::{OpId, RankId, StreamId};
use crate::schedule::{Buffer, Op, OpKind, Operand, Schedule};
use crate::stages;

/// The memory of the followed ranks in one mode during the replay, and the findings in it.
pub(crate) struct ModeState<V> {
    pub(crate) layout: MemoryLayout,
    pub(crate) memory: CellMemory,
    /// The value of each cell.
    pub(crate) values: Vec<V>,
    pub(super) origins: SlotOrigins,
    pub(crate) findings: Vec<Finding>,
    pub(crate) completions: Completions,
}

impl<V: CellValue> ModeState<V> {
    pub(crate) fn new(layout: MemoryLayout) -> Self {
        Self {
            memory: CellMemory::new(layout.size),
            values: vec![V::NONE; layout.size as usize],
            layout,
            origins: SlotOrigins::default(),
            findings: Vec::new(),
            completions: Completions::default(),
        }
    }
}

/// The findings kept per mode; beyond this number, more findings are dropped.
pub(super) const ENOUGH: usize = 4096;

/// The op at which a replay cannot go on, and the reason.
#[derive(Debug)]
pub(crate) struct Stop {
    pub(crate) at: OpId,
    pub(crate) why: &'static str,
}

/// The schedule that is replayed, and the order of its events.
pub(crate) struct Replayed<'s> {
    pub(crate) schedule: &'s Schedule,
    pub(crate) order: &'s Order,
    pub(crate) reporter: &'s Reporter<'s>,
    /// Whether scratch is used again while another rank may still touch it, so that a second run is replayed.
    pub(crate) again: bool,
    /// The callers that bring the ranks in.
    pub(crate) callers: Callers,
}

/// The state of a replay of the memory of `R`.
pub(crate) struct Player<'s, R: FollowedRanks> {
    pub(super) of: &'s Replayed<'s>,
    pub(crate) ranks: R,
    pub(crate) values: R::Values,
    pub(crate) states: Vec<ModeState<ValueOf<R>>>,
    /// Whether there are contributions to be summed.
    pub(super) reduces: bool,
    results: Vec<ValueOf<R>>,
    /// The places of the operands of a move.
    places: Vec<R::Place>,
    /// The first read, in place, of an input that its rank's output has overwritten.
    pub(crate) one_mode: Option<OpId>,
    /// The longest chain of reduces in a result.
    pub(crate) reduce_depth: u32,
    /// Whether there is a finding.
    found: bool,
}

impl<'s, R: FollowedRanks> Player<'s, R> {
    /// Creates a replay in the memory of one layout for each mode.
    pub(crate) fn new(
        of: &'s Replayed<'s>,
        ranks: R,
        values: R::Values,
        layouts: impl IntoIterator<Item = MemoryLayout>,
    ) -> Self {
        Self {
            of,
            ranks,
            values,
            states: layouts.into_iter().map(ModeState::new).collect(),
            reduces: of.schedule.collective.reduces() && of.schedule.nranks > 1,
            results: Vec::new(),
            places: Vec::new(),
            one_mode: None,
            reduce_depth: 0,
            found: false,
        }
    }

    /// Replays the schedule, a second run where the remains of the first matter to it, and compares the results.
    pub(crate) fn play(&mut self) -> Result<(), Stop> {
        for mode in 0..self.states.len() {
            self.enter(mode);
        }
        let Replayed { schedule, order, .. } = *self.of;
        let mut last: Vec<[Option<OpId>; 2]> = vec![[None; 2]; schedule.channels.len()];
        for (done, &at) in order.sequence.iter().enumerate() {
            stages::report(done, self.runs() * order.sequence.len());
            let stream = order.stream_of[at.index()];
            let op = schedule.op(at);
            match op.kind {
                OpKind::Move => {
                    for mode in 0..self.states.len() {
                        self.play_move(mode, at)?;
                    }
                }
                // An end of a channel is checked before a wait hears its post: a stream that is here early must not take
                // another stream's signal.
                OpKind::Post => {
                    self.raise(at, stream);
                    self.alone(&mut last[op.arg as usize][0], at);
                    self.ranks.post(at, stream);
                }
                OpKind::Wait => {
                    self.alone(&mut last[op.arg as usize][1], at);
                    self.ranks.wait(at, stream).map_err(|why| Stop { at, why })?;
                }
            }
            self.sure(at)?;
        }
        // One caller for all ranks takes its buffers back when all ranks have ended, and only then runs them again.
        if self.of.callers != Callers::One {
            for mode in 0..self.states.len() {
                self.exit(mode);
            }
            if self.of.again {
                self.second_run()?;
            }
        }
        self.sure(OpId(0))?;
        for mode in 0..self.states.len() {
            self.outputs(mode);
        }
        Ok(())
    }

    /// The number of runs to replay.
    pub(super) fn runs(&self) -> usize {
        1 + usize::from(self.of.again)
    }

    pub(super) fn sure(&self, at: OpId) -> Result<(), Stop> {
        self.ranks.sure(self.found).map_err(|why| Stop { at, why })
    }

    /// Checks that a one-shot flag has been taken down before it is raised again.
    pub(super) fn raise(&mut self, at: OpId, stream: StreamId) {
        if let Some((earlier, across)) = self.ranks.raise(at, stream) {
            self.found(0, self.of.reporter.lost_signal(earlier, at, across));
        }
    }

    /// Checks that all streams that use one end of a channel are ordered among themselves.
    fn alone(&mut self, last: &mut Option<OpId>, at: OpId) {
        // Where two streams raise one flag, the finding of the lost signal says more.
        if self.ranks.has_flags() {
            return;
        }
        if let Some(earlier) = last.replace(at)
            && !self.ranks.is_before(earlier, at)
        {
            self.found(0, self.of.reporter.shared_signal(earlier, at));
        }
    }

    pub(super) fn found(&mut self, mode: usize, finding: Finding) {
        self.found = true;
        let findings = &mut self.states[mode].findings;
        if findings.len() < ENOUGH {
            findings.push(finding);
        }
    }

    /// Records a finding as often as it counts for `cells` cells.
    pub(super) fn found_in(&mut self, mode: usize, cells: u32, finding: &Finding) {
        for _ in 0..(R::count(cells) as usize).min(ENOUGH) {
            self.found(mode, finding.clone());
        }
    }

    /// Returns the cells of a buffer of a followed rank.
    pub(super) fn buffer(&self, mode: usize, rank: RankId, buffer: Buffer) -> Range<u32> {
        let first = self.states[mode].layout.buffer(rank, buffer);
        let units = self.of.schedule.units(buffer, rank).floor() as u32;
        first..first + units * self.ranks.per_unit()
    }

    /// Enters the callers, who have written their buffers; inputs hold their contributions.
    fn enter(&mut self, mode: usize) {
        for rank in (0..self.ranks.followed()).map(RankId) {
            for buffer in [Buffer::Output, Buffer::Input] {
                let cells = self.buffer(mode, rank, buffer);
                let ModeState { memory, values, .. } = &mut self.states[mode];
                memory.enter(cells.clone());
                if buffer == Buffer::Input {
                    let values = &mut values[cells.start as usize..cells.end as usize];
                    for (cell, value) in (0..).zip(values) {
                        *value = CellValue::leaf(Leaf { rank, cell });
                    }
                }
            }
        }
    }

    pub(super) fn place(&self, mode: usize, operand: Operand) -> R::Place {
        self.ranks.place(&self.states[mode].layout, mode, operand)
    }

    fn play_move(&mut self, mode: usize, at: OpId) -> Result<(), Stop> {
        let schedule = self.of.schedule;
        let op = schedule.op(at);
        let (srcs, dsts) = (schedule.srcs(op), schedule.dsts(op));
        // Checked before the moves that are no ops in place return: the value that they pass on must be the input too.
        if mode > 0
            && self.one_mode.is_none()
            && srcs.iter().any(|src| self.overwritten(mode, *src))
        {
            self.one_mode = Some(at);
        }
        let (first, target) = (self.place(mode, srcs[0]), self.place(mode, dsts[0]));
        let len = R::len(first);
        // An empty piece at the end of a buffer has the first cell of the next buffer, but is no copy onto itself.
        let onto_itself = R::distance(first, target) == Some(0);
        if op.srcs == 1 && op.dsts == 1 && len > 0 && onto_itself && !op.finish {
            return Ok(());
        }
        let mut places = std::mem::take(&mut self.places);
        places.clear();
        places.extend(srcs.iter().chain(dsts).map(|operand| self.place(mode, *operand)));
        let (sources, targets) = places.split_at(srcs.len());
        // A reduce reads its destination and writes it: only the write, the stronger access, is checked.
        let own = usize::from(op.srcs > 1 && onto_itself);
        let is_written = |from: &R::Place| {
            op.switch && targets.iter().any(|to| R::distance(*from, *to) == Some(0))
        };
        let mut bad = false;
        for (src, &from) in srcs.iter().zip(sources) {
            bad |= self.misplaced(mode, at, *src);
            // Out of place, a legal schedule has no such overlap.
            let shifted =
                |to: &R::Place| R::distance(*to, from).is_some_and(|by| 0 < by && by < len);
            if let Some((dst, _)) = dsts.iter().zip(targets).find(|(_, to)| shifted(to)) {
                self.found(mode, self.of.reporter.shifted(at, *src, *dst));
                bad = true;
            }
        }
        let mut results = std::mem::take(&mut self.results);
        results.clear();
        for (src, &from) in srcs.iter().zip(sources).skip(own) {
            if is_written(&from) {
                continue;
            }
            bad |= self.access(mode, at, (*src, from), Access::Read).is_some();
        }
        let wide = |operand: &Operand| schedule.is_wide(*operand);
        let exact = dsts.iter().any(wide);
        self.fold(mode, at, (srcs, sources), !exact, &mut results)?;
        let unrounded = (exact || op.srcs == 1 && wide(&srcs[0])).then(|| results.clone());
        let narrow = !dsts.iter().all(wide);
        if unrounded.is_some() && narrow {
            for value in &mut results {
                *value = self.values.rounded(*value, at);
            }
        }
        for (dst, &to) in dsts.iter().zip(targets) {
            let raced = self.access(mode, at, (*dst, to), Access::Write);
            let good = if bad { 0 } else { raced.unwrap_or(len) };
            bad |= raced.is_some();
            let values = unrounded.as_ref().filter(|_| wide(dst)).unwrap_or(&results);
            self.ranks.store(&mut self.states[mode].values, to, values, good);
        }
        // A sum is divided where it is rounded, as f32 before the rounding: not in wide scratch, but by the copy out of it.
        if self.reduces && narrow {
            match &unrounded {
                Some(before) if op.srcs == 1 => {
                    let same = results.iter_mut().zip(before).filter(|(after, b)| after == b);
                    same.for_each(|(after, _)| *after = CellValue::NONE);
                    self.completes(mode, at, &results);
                }
                _ if op.srcs > 1 => self.completes(mode, at, &results),
                _ => {}
            }
        }
        self.results = results;
        self.places = places;
        Ok(())
    }

    /// Computes the result of a move, operand by operand: the first source, with the others folded into it; `rounds` is
    /// whether the last fold rounds.
    fn fold(
        &mut self,
        mode: usize,
        at: OpId,
        (srcs, places): (&[Operand], &[R::Place]),
        rounds: bool,
        results: &mut Vec<ValueOf<R>>,
    ) -> Result<(), Stop> {
        let Op { chain, switch, .. } = *self.of.schedule.op(at);
        let mut room = Vec::new();
        for (i, (src, place)) in srcs.iter().zip(places).enumerate() {
            let Self { ranks, states, values, .. } = self;
            let operands = ranks.load(&states[mode].values, *place, &mut room);
            let garbage = operands.iter().filter(|value| **value == CellValue::NONE).count();
            if i == 0 {
                results.extend_from_slice(operands);
            } else {
                let rounds = if i + 1 < srcs.len() { chain } else { rounds };
                let way = FoldWay { rounds, open: switch };
                for (folded, operand) in results.iter_mut().zip(operands) {
                    *folded = if folded.is_value() && operand.is_value() {
                        let why = "it adds elements of different places";
                        let sum = values.fold(*operand, *folded, way, at);
                        sum.ok_or(Stop { at, why })?
                    } else {
                        CellValue::POISON
                    };
                }
            }
            if garbage > 0 {
                let finding = self.of.reporter.uninitialized(at, *src);
                self.found_in(mode, garbage as u32, &finding);
            }
        }
        for value in results.iter_mut().filter(|value| !value.is_value()) {
            *value = CellValue::POISON;
        }
        Ok(())
    }

    /// Records whether the reduce completes its destination: the whole, a part, or nothing.
    fn completes(&mut self, mode: usize, at: OpId, results: &[ValueOf<R>]) {
        let Self { values, states, .. } = self;
        let done = results.iter().filter(|v| v.is_value() && values.is_complete(**v)).count();
        states[mode].completions.record(at, done, results.len());
    }

    /// Whether an input holds something else than its rank's contribution, as it may where it shares memory.
    fn overwritten(&self, mode: usize, src: Operand) -> bool {
        if self.of.schedule.region(src).buffer != Buffer::Input {
            return false;
        }
        let ModeState { layout, values, .. } = &self.states[mode];
        let rank = self.ranks.home(src);
        let first = layout.buffer(rank, Buffer::Input);
        let own = |at: u32| CellValue::leaf(Leaf { rank, cell: at - first });
        let mut images = self.ranks.images(self.place(mode, src));
        images.any(|cells| cells.into_iter().any(|at| values[at as usize] != own(at)))
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
        let ModeState { layout, values, origins, .. } = &mut self.states[mode];
        let writes = access == Access::Write;
        let slot = self.ranks.slot(layout, operand);
        let Some(slot) = slot.and_then(|slot| slot.at_stake(origins, writes)) else {
            return cells;
        };
        if writes {
            values[slot.start as usize..slot.end as usize].fill(CellValue::NONE);
        }
        slot
    }

    /// Records an access to an operand of an op; returns the number of cells before the first that races, if one does.
    pub(super) fn access(
        &mut self,
        mode: usize,
        at: OpId,
        (operand, place): (Operand, R::Place),
        access: Access,
    ) -> Option<u32> {
        let event = self.ranks.event(at, place);
        let mut good = None;
        for cells in self.ranks.images(place) {
            let asked = self.at_stake(mode, operand, cells.clone(), access);
            let races = {
                let past = self.ranks.past(at, event, operand);
                let memory = &mut self.states[mode].memory;
                match access {
                    _ if cells.is_empty() => Vec::new(),
                    Access::Read => {
                        let races = memory.read(asked, event, &past);
                        races.into_iter().map(|(cells, write)| (cells, (write, false))).collect()
                    }
                    Access::Write => memory.write(asked, event, &past),
                }
            };
            let Some((first, _)) = races.first() else { continue };
            good = good.or(Some(first.start.saturating_sub(cells.start).min(R::len(place))));
            for (raced, (earlier, was_read)) in races {
                let other = if was_read { Access::Read } else { Access::Write };
                let finding = self.race((at, event), operand, earlier, access, other);
                self.found_in(mode, raced.len().min(cells.len()) as u32, &finding);
            }
        }
        good
    }

    fn race(
        &self,
        (at, event): (OpId, u32),
        operand: Operand,
        earlier: u32,
        access: Access,
        other: Access,
    ) -> Finding {
        if earlier == CALLER {
            return self.of.reporter.before_enter(at, operand, access);
        }
        let (first, across) = self.ranks.earlier(earlier, event);
        self.of.reporter.race((first, other), (at, access), operand, across)
    }

    /// Whether a read expects data of another place than the slot holds; records a finding if so.
    fn misplaced(&mut self, mode: usize, at: OpId, operand: Operand) -> bool {
        let ModeState { layout, origins, .. } = &self.states[mode];
        let Some(slot) = self.ranks.slot(layout, operand) else { return false };
        let held = origins.get(&slot.key).copied();
        let Some(held) = held.filter(|base| *base != slot.base) else { return false };
        let held = self.ranks.origin(operand, held);
        self.found(mode, self.of.reporter.slot_length(at, operand, held));
        true
    }
}
