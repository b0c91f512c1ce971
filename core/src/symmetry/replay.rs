//! The replay of rank 0: every access of any rank to the memory of rank 0 is the image of an access of rank 0 to the
//! memory of the rank that it is turned from.

use rustc_hash::FxHashMap;

use super::Representative;
use super::order::{Before, Event};
use super::space::{CellRange, Space, number};
use super::told;
use super::values::{Shapes, Value};
use crate::diagnostics::Finding;
use crate::ids::{OpId, RankId, StreamId};
use crate::schedule::{Buffer, OpKind, Operand, Schedule};
use crate::stages;
use crate::verify::completions::Completions;
use crate::verify::layout::BufferMode;
use crate::verify::memory::{CALLER, CellMemory, NOBODY, Past};
use crate::verify::{Access, Order};

/// The findings kept per mode.
const ENOUGH: usize = 256;

/// The main stream of rank 0.
pub(super) const MAIN: StreamId = StreamId(0);

/// The memory of rank 0 in one mode.
pub(super) struct ModeState {
    mode: BufferMode,
    /// The first cell of each buffer.
    pub(super) first: Vec<u64>,
    pub(super) memory: CellMemory,
    pub(super) values: Vec<Value>,
    /// The position at which the data of a slot begins, for slots of scratch.
    origins: FxHashMap<(usize, u32), u64>,
    pub(super) findings: Vec<Finding>,
    pub(super) completions: Completions,
}

impl ModeState {
    /// Returns the values in a buffer of rank 0.
    pub(super) fn buffer(&self, space: &Space, buffer: usize) -> &[Value] {
        &self.values[self.first[buffer] as usize..][..space.sizes[buffer] as usize]
    }
}

/// The reason why a replay cannot go on.
pub(super) struct Stuck {
    pub(super) at: OpId,
    pub(super) why: &'static str,
}

/// The state of a replay.
pub(super) struct Player<'a> {
    of: &'a Representative,
    pub(super) order: &'a Order,
    pub(super) before: Before<'a>,
    pub(super) shapes: Shapes,
    pub(super) states: Vec<ModeState>,
    /// The accesses to the memory of rank 0, each with the rank that makes it.
    pub(super) accesses: Vec<Event>,
    pub(super) run: u32,
    /// The first read, in place, of an input that its rank's output has overwritten.
    pub(super) one_mode: Option<OpId>,
    pub(super) depth: u32,
}

/// An access to the memory of rank 0 and the events before it.
struct Accessor<'a> {
    before: &'a Before<'a>,
    accesses: &'a [Event],
    event: Event,
}

impl Past for Accessor<'_> {
    fn after(&self, event: u32) -> bool {
        // Most readers of a cell have no order among themselves, which only a long search would show.
        self.before.is_near(self.accesses[event as usize], self.event)
    }

    fn after_write(&self, write: u32) -> bool {
        match write {
            NOBODY => true,
            CALLER => self.before.begun(MAIN, 0, self.event),
            event => self.before.holds(self.accesses[event as usize], self.event),
        }
    }

    fn races(&self, reads: &[u32], write: u32) -> Option<(u32, bool)> {
        let comes = |read: &u32| self.before.holds(self.accesses[*read as usize], self.event);
        let read = reads.iter().find(|read| !comes(read)).map(|read| (*read, true));
        read.or_else(|| (!self.after_write(write)).then_some((write, false)))
    }
}

/// Returns the value to which a turn takes a value.
fn turned(space: &Space, value: Value, by: u32) -> Value {
    if by == 0 || !value.is_value() {
        return value;
    }
    let cell = space.cell(0, value.cell.into(), by) as u32;
    Value { by: space.turns.turned(value.by, by), cell, ..value }
}

impl<'a> Player<'a> {
    pub(super) fn new(of: &'a Representative, order: &'a Order, modes: &[BufferMode]) -> Self {
        let states = modes.iter().map(|mode| {
            let (first, size) = of.space.layout(&of.own, *mode);
            ModeState {
                mode: *mode,
                first,
                memory: CellMemory::new(size as u32),
                values: vec![Value::NONE; size as usize],
                origins: FxHashMap::default(),
                findings: Vec::new(),
                completions: Completions::default(),
            }
        });
        Self {
            of,
            order,
            before: Before::new(&of.own, &of.turns, order),
            shapes: Shapes::new(&of.turns),
            states: states.collect(),
            accesses: Vec::new(),
            run: 0,
            one_mode: None,
            depth: 0,
        }
    }

    pub(super) fn own(&self) -> &'a Schedule {
        &self.of.own
    }

    pub(super) fn space(&self) -> &'a Space {
        &self.of.space
    }

    /// Replays the run, and a second one where other ranks touch scratch.
    pub(super) fn play(&mut self) -> Result<(), Stuck> {
        let order = self.order;
        let runs = 1 + usize::from(order.shares_scratch(self.own()));
        (0..self.states.len()).for_each(|mode| self.enter(mode));
        let mut last: Vec<[Option<OpId>; 2]> = vec![[None; 2]; self.own().channels.len()];
        for (done, &at) in order.sequence.iter().enumerate() {
            stages::done(done, runs * order.sequence.len());
            let op = self.own().op(at);
            match op.kind {
                OpKind::Move => {
                    for mode in 0..self.states.len() {
                        self.play_move(mode, at)?;
                    }
                }
                kind => {
                    self.alone(&mut last[op.arg as usize][usize::from(kind == OpKind::Wait)], at);
                }
            }
            self.sure(at)?;
        }
        for mode in 0..self.states.len() {
            self.exit(mode);
        }
        if runs > 1 && self.states[0].findings.is_empty() {
            self.second_run()?;
        }
        self.sure(OpId(0))?;
        for mode in 0..self.states.len() {
            self.outputs(mode);
        }
        Ok(())
    }

    pub(super) fn sure(&self, at: OpId) -> Result<(), Stuck> {
        let why = "the order of its events takes too long to find";
        if self.before.full.get() { Err(Stuck { at, why }) } else { Ok(()) }
    }

    pub(super) fn found(&mut self, mode: usize, finding: Finding) {
        let findings = &mut self.states[mode].findings;
        if findings.len() < ENOUGH {
            findings.push(finding);
        }
    }

    /// Checks that all streams that use one end of a channel are ordered among themselves.
    fn alone(&mut self, last: &mut Option<OpId>, at: OpId) {
        let Some(earlier) = last.replace(at) else { return };
        let event = |op| Event { op, rank: 0, run: 0 };
        if !self.before.holds(event(earlier), event(at)) {
            self.found(0, told::shared_signal(self.own(), earlier, at));
        }
    }

    /// Enters the caller, who has written input and output.
    fn enter(&mut self, mode: usize) {
        let space = self.space();
        let state = &mut self.states[mode];
        for buffer in [1, 0] {
            let (first, size) = (state.first[buffer], space.sizes[buffer]);
            state.memory.enter(first as u32..(first + size) as u32);
            if buffer == 0 {
                let values = &mut state.values[first as usize..][..size as usize];
                for (cell, value) in (0..).zip(values) {
                    *value = Value::leaf(0, cell);
                }
            }
        }
    }

    /// Returns the cells of an operand, and the turn that takes its owner to rank 0.
    fn piece(&self, operand: Operand) -> (CellRange, u32) {
        let space = self.space();
        (space.piece(self.own(), operand), space.turns.back(operand.rank.0))
    }

    /// Returns the owner of an operand, the memory there that holds it, and its first cell in this memory.
    fn place(&self, mode: usize, operand: Operand) -> (RankId, usize, u64) {
        let (own, (piece, _)) = (self.own(), self.piece(operand));
        let shared = piece.buffer < 2 && self.states[mode].mode == BufferMode::InPlace;
        let (input, output) = if shared {
            own.collective.alias(operand.rank, own.root).starts()
        } else {
            return (operand.rank, piece.buffer, piece.first);
        };
        let units = if piece.buffer == 0 { input } else { output };
        (operand.rank, 0, u64::from(units) * self.space().grid + piece.first)
    }

    fn play_move(&mut self, mode: usize, at: OpId) -> Result<(), Stuck> {
        let own = self.own();
        let op = own.op(at);
        let (srcs, dsts) = (own.srcs(op), own.dsts(op));
        if self.states[mode].mode == BufferMode::InPlace
            && self.one_mode.is_none()
            && srcs.iter().any(|src| self.overwritten(mode, *src))
        {
            self.one_mode = Some(at);
        }
        let (from, to) = (self.place(mode, srcs[0]), self.place(mode, dsts[0]));
        let len = self.piece(srcs[0]).0.len;
        if op.srcs == 1 && op.dsts == 1 && from == to && len > 0 && !op.finish {
            return Ok(());
        }
        let reads_itself = usize::from(op.srcs > 1 && from == to);
        let mut bad = false;
        for src in srcs {
            bad |= self.misplaced(mode, at, *src);
            let at_src = self.place(mode, *src);
            let shifted = dsts.iter().any(|dst| {
                let at_dst = self.place(mode, *dst);
                (at_dst.0, at_dst.1) == (at_src.0, at_src.1)
                    && at_dst.2 != at_src.2
                    && at_dst.2.abs_diff(at_src.2) < len
            });
            if shifted {
                self.found(mode, told::shifted(own, at));
                bad = true;
            }
        }
        for src in &srcs[reads_itself..] {
            bad |= self.access(mode, at, *src, Access::Read);
        }
        let exact = dsts.iter().any(|dst| own.is_wide(*dst));
        let mut results = self.folded(mode, at, !exact)?;
        let unrounded = (exact || op.srcs == 1 && own.is_wide(srcs[0])).then(|| results.clone());
        let narrow = !dsts.iter().all(|dst| own.is_wide(*dst));
        if unrounded.is_some() && narrow {
            for value in &mut results {
                *value = self.shapes.rounded(*value, at);
            }
        }
        for dst in dsts {
            bad |= self.access(mode, at, *dst, Access::Write);
            let values = unrounded.as_ref().filter(|_| own.is_wide(*dst)).unwrap_or(&results);
            self.store(mode, *dst, values, bad);
        }
        let rounds = |nth: usize| {
            op.srcs > 1 || unrounded.as_ref().is_some_and(|all| all[nth] != results[nth])
        };
        if own.collective.reduces() && narrow {
            let complete = |nth: &usize| {
                let value = results[*nth];
                rounds(*nth) && value.is_value() && self.shapes.is_complete(value.node)
            };
            let done = (0..results.len()).filter(complete).count();
            self.states[mode].completions.record(at, done, results.len());
        }
        Ok(())
    }

    /// Returns the values of an operand of rank 0's op.
    fn fetched(&self, mode: usize, operand: Operand) -> Vec<Value> {
        let space = self.space();
        let (piece, back) = self.piece(operand);
        let state = &self.states[mode];
        let owner = operand.rank.0;
        let turned = |value| turned(space, value, owner);
        let first = state.first[piece.buffer];
        if !space.turns_inside(piece) && !space.is_cut(piece) {
            let image = first + space.turned(piece, back).first;
            let values = &state.values[image as usize..][..piece.len as usize];
            return values.iter().copied().map(turned).collect();
        }
        let cells = piece.first..piece.first + piece.len;
        let at = |cell| (first + space.cell(piece.buffer, cell, back)) as usize;
        cells.map(|cell| turned(state.values[at(cell)])).collect()
    }

    /// Writes the results of an op of rank 0 to the memory of the owner of an operand: the images are values of rank 0.
    fn store(&mut self, mode: usize, operand: Operand, values: &[Value], bad: bool) {
        let space = self.space();
        let (piece, back) = self.piece(operand);
        let inside = space.turns_inside(piece) || space.is_cut(piece);
        let state = &mut self.states[mode];
        let first = state.first[piece.buffer];
        let image = first + space.turned(piece, back).first;
        for (number, value) in (0..).zip(values) {
            let to = if inside {
                first + space.cell(piece.buffer, piece.first + number, back)
            } else {
                image + number
            };
            let value = if bad { Value::POISON } else { turned(space, *value, back) };
            state.values[to as usize] = value;
        }
    }

    /// Computes the results of an op, the first source with the others folded into it.
    fn folded(&mut self, mode: usize, at: OpId, rounds: bool) -> Result<Vec<Value>, Stuck> {
        let own = self.own();
        let op = own.op(at);
        let srcs = own.srcs(op);
        let mut results: Vec<Value> = Vec::new();
        for (number, src) in srcs.iter().enumerate() {
            let values = self.fetched(mode, *src);
            let garbage = values.contains(&Value::NONE);
            if number == 0 {
                results = values;
            } else {
                let rounds = if number + 1 < srcs.len() { op.chain } else { rounds };
                for (folded, operand) in results.iter_mut().zip(values) {
                    *folded = if folded.is_value() && operand.is_value() {
                        let why = "it adds elements of different places";
                        let sum = self.shapes.fold(operand, *folded, rounds, at);
                        sum.ok_or(Stuck { at, why })?
                    } else {
                        Value::POISON
                    };
                }
            }
            if garbage {
                self.found(mode, told::uninitialized(own, at, *src));
            }
        }
        for value in results.iter_mut().filter(|value| !value.is_value()) {
            *value = Value::POISON;
        }
        Ok(results)
    }

    /// Whether an input holds something else than its rank's contribution, as it may where it shares memory.
    fn overwritten(&self, mode: usize, src: Operand) -> bool {
        if self.own().region(src).buffer != Buffer::Input {
            return false;
        }
        let (piece, back) = self.piece(src);
        let first = self.states[mode].first[0];
        let values = &self.states[mode].values;
        self.space().images(piece, back).into_iter().any(|image| {
            let cells = image.first..image.first + image.len;
            cells.into_iter().any(|cell| values[(first + cell) as usize] != Value::leaf(0, cell))
        })
    }

    /// Records an access to the cells of an operand; returns whether it races.
    pub(super) fn access(
        &mut self,
        mode: usize,
        at: OpId,
        operand: Operand,
        access: Access,
    ) -> bool {
        let (piece, back) = self.piece(operand);
        let event = Event { op: at, rank: back, run: self.run };
        self.accesses.push(event);
        let mut raced = false;
        for image in self.space().images(piece, back) {
            raced |= self.touched(mode, event, operand, image, access);
        }
        raced
    }

    /// Records an access to a piece of the memory of rank 0; returns whether it races.
    fn touched(
        &mut self,
        mode: usize,
        event: Event,
        operand: Operand,
        image: CellRange,
        access: Access,
    ) -> bool {
        let writes = access == Access::Write;
        let first = self.states[mode].first[image.buffer] + image.first;
        let cells = self.at_stake(mode, operand, first..first + image.len, writes);
        let number = self.accesses.len() as u32 - 1;
        let who = Accessor { before: &self.before, accesses: &self.accesses, event };
        let memory = &mut self.states[mode].memory;
        let races: Vec<(u32, bool)> = if writes {
            memory.write(cells, number, &who).into_iter().map(|(_, other)| other).collect()
        } else {
            let races = memory.read(cells, number, &who);
            races.into_iter().map(|(_, write)| (write, false)).collect()
        };
        let raced = !races.is_empty();
        for (earlier, was_read) in races {
            let other = if was_read { Access::Read } else { Access::Write };
            let finding = if earlier == CALLER {
                told::before_enter(self.own(), event.op, operand, access)
            } else {
                let first = self.accesses[earlier as usize];
                told::race(self.own(), self.space(), (first, other), (event, access), operand)
            };
            self.found(mode, finding);
        }
        raced
    }

    /// Returns the cells at which an access may conflict: the whole slot where it holds data of another place.
    fn at_stake(
        &mut self,
        mode: usize,
        operand: Operand,
        cells: std::ops::Range<u64>,
        writes: bool,
    ) -> std::ops::Range<u32> {
        let plain = cells.start as u32..cells.end as u32;
        let region = self.own().region(operand);
        let space = self.space();
        let Some(slot) = space.slot(region) else { return plain };
        let back = space.turns.back(operand.rank.0);
        let slot = space.turned(slot, back);
        let base = space.base(self.own(), operand, back);
        let state = &mut self.states[mode];
        let key = (number(region.buffer), (slot.first / slot.len.max(1)) as u32);
        let known = state.origins.entry(key).or_insert(base);
        if *known == base {
            return plain;
        }
        let first = state.first[slot.buffer] + slot.first;
        if writes {
            *known = base;
            state.values[first as usize..][..slot.len as usize].fill(Value::NONE);
        }
        first as u32..(first + slot.len) as u32
    }

    /// Whether a read expects data of another place than the slot holds; records a finding if so.
    fn misplaced(&mut self, mode: usize, at: OpId, operand: Operand) -> bool {
        let region = self.own().region(operand);
        let space = self.space();
        let Some(slot) = space.slot(region) else { return false };
        let back = space.turns.back(operand.rank.0);
        let slot = space.turned(slot, back);
        let key = (number(region.buffer), (slot.first / slot.len.max(1)) as u32);
        let base = space.base(self.own(), operand, back);
        let known = self.states[mode].origins.get(&key);
        if known.is_none_or(|known| *known == base) {
            return false;
        }
        self.found(mode, told::slot_length(self.own(), at, operand));
        true
    }
}
