//! The replay of all ranks: each has its memory, and clocks order the events of their streams.

use std::iter;
use std::ops::Range;

use super::blame::{self, Trace};
use super::callers::Callers;
use super::clocks::{self, Clocks, Full};
use super::completions::Completions;
use super::history;
use super::layout::{BufferMode, Cells, MemoryLayout, Slot};
use super::memory::{Accessor, Past};
use super::order::Order;
use super::orders::{Orders, Results};
use super::ranks::{FollowedRanks, RankOp};
use super::reduction::{Reduction, reduction};
use super::replay::{ENOUGH, ModeState, Player, Replayed, Stop};
use super::report::Reporter;
use super::signals::Flags;
use super::values::{CellValue, Leaf, ValueId, Values};
use crate::diagnostics::Finding;
use crate::ids::{OpId, RankId, StreamId};
use crate::rational::Rat;
use crate::schedule::{Buffer, Operand, Region, Schedule};

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

/// Replays a schedule with the first clocks that are sure; `one_shot` is whether signals are flags.
pub(super) fn replay(
    of: &Replayed<'_>,
    cells: &Cells,
    modes: &[BufferMode],
    one_shot: bool,
) -> Result<Replay, Box<Finding>> {
    let Replayed { schedule, order, reporter, .. } = *of;
    let too_many = || Box::new(reporter.too_many_streams());
    for clocks in Clocks::quick(schedule) {
        if let Ok(sure) = replay_with(clocks, of, cells, modes, one_shot)? {
            return Ok(sure);
        }
    }
    if !Clocks::fit(schedule, order, clocks::ENTRIES) {
        return Err(too_many());
    }
    let clocks = Clocks::dense(schedule, clocks::ENTRIES).map_err(|Full| too_many())?;
    replay_with(clocks, of, cells, modes, one_shot)?.map_err(|_| too_many())
}

pub(super) fn replay_with(
    clocks: Clocks<'_>,
    of: &Replayed<'_>,
    cells: &Cells,
    modes: &[BufferMode],
    one_shot: bool,
) -> Result<Result<Replay, Stop>, Box<Finding>> {
    let Replayed { schedule, order, callers, .. } = *of;
    let layout = |mode: &BufferMode| MemoryLayout::new(schedule, cells, *mode);
    let layouts: Option<Vec<_>> = modes.iter().map(layout).collect();
    let layouts = layouts.ok_or_else(|| Box::new(Reporter::too_fine(cells.per_unit)))?;
    let ranks = AllRanks {
        schedule,
        order,
        cells,
        clocks,
        main: schedule.main_streams(),
        callers,
        flags: one_shot.then(|| Flags::new(schedule, order)),
    };
    // A reduce has three operands at least.
    let values = Values::new(schedule.nranks, schedule.operands.len() / 3);
    let mut player = Player::new(of, ranks, values, layouts);
    Ok(player.play().map(|()| verdict(player, cells)))
}

/// Returns the results of a replay that came to its end.
fn verdict(player: Player<'_, AllRanks<'_>>, cells: &Cells) -> Replay {
    let Player { of, mut states, values, one_mode, reduces, reduce_depth, .. } = player;
    // Where each rank may choose its mode, all inputs that are read are equal in every mode, and so are all other
    // values.
    let told = if one_mode.is_some() { &states[..] } else { &states[..1] };
    let sound = reduces && told.iter().all(|state| state.findings.is_empty());
    let (reduction, orders) = if sound {
        let commuted = values.commuted();
        let seen = told.iter().map(|ModeState { layout, values, .. }| Results {
            schedule: of.schedule,
            cells,
            layout,
            memory: values,
        });
        let seen: Vec<_> = seen.collect();
        (Some(reduction(&seen, &values, &commuted)), Orders::new(&seen, &commuted))
    } else {
        (None, Orders::default())
    };
    let completions = states.iter_mut().map(|state| std::mem::take(&mut state.completions));
    let finish = Completions::uniform(completions);
    let mut findings = states.into_iter().map(|state| state.findings);
    Replay {
        findings: findings.next().unwrap_or_default(),
        in_place_findings: findings.next().unwrap_or_default(),
        finish,
        reduce_depth,
        reduction,
        orders,
        one_mode,
    }
}

/// All ranks.
pub(super) struct AllRanks<'s> {
    schedule: &'s Schedule,
    order: &'s Order,
    cells: &'s Cells,
    clocks: Clocks<'s>,
    /// The main stream of each rank, its first.
    main: Vec<StreamId>,
    callers: Callers,
    /// The flags, where signals are one-shot flags.
    flags: Option<Flags>,
}

impl AllRanks<'_> {
    fn past_of(&self, stream: StreamId, owner: Option<StreamId>) -> Accessor<'_> {
        Accessor { stream, clocks: &self.clocks, stream_of: &self.order.stream_of, owner }
    }
}

impl FollowedRanks for AllRanks<'_> {
    type Values = Values;
    /// The first cell, and the number of cells.
    type Place = (u32, u32);
    type Images = iter::Once<Range<u32>>;

    const WRONG: usize = ENOUGH;

    fn followed(&self) -> u32 {
        self.schedule.nranks
    }

    fn per_unit(&self) -> u32 {
        self.cells.per_unit
    }

    fn region(&self, cell: u32) -> Region {
        self.cells.region(cell, Buffer::Output)
    }

    fn home(&self, operand: Operand) -> RankId {
        operand.rank
    }

    fn place(&self, layout: &MemoryLayout, _mode: usize, operand: Operand) -> (u32, u32) {
        let (first, len) = self.cells.of(operand);
        (layout.buffer(operand.rank, self.schedule.region(operand).buffer) + first, len)
    }

    fn len((_, len): (u32, u32)) -> u32 {
        len
    }

    fn distance((a, _): (u32, u32), (b, _): (u32, u32)) -> Option<u32> {
        Some(a.abs_diff(b))
    }

    fn images(&self, (first, len): (u32, u32)) -> Self::Images {
        iter::once(first..first + len)
    }

    fn load<'m>(
        &self,
        memory: &'m [ValueId],
        (first, len): (u32, u32),
        _room: &'m mut Vec<ValueId>,
    ) -> &'m [ValueId] {
        &memory[first as usize..][..len as usize]
    }

    fn store(
        &self,
        memory: &mut [ValueId],
        (first, len): (u32, u32),
        values: &[ValueId],
        good: u32,
    ) {
        let cells = &mut memory[first as usize..][..len as usize];
        let good = good as usize;
        cells[..good].copy_from_slice(&values[..good]);
        cells[good..].fill(ValueId::POISON);
    }

    fn slot(&self, layout: &MemoryLayout, operand: Operand) -> Option<Slot> {
        let region = self.schedule.region(operand);
        let first = layout.buffer(operand.rank, region.buffer);
        self.cells.reshaped_slot(operand.rank, region, first)
    }

    fn origin(&self, _operand: Operand, held: Rat) -> Rat {
        held
    }

    fn event(&mut self, at: OpId, _place: (u32, u32)) -> u32 {
        self.clocks.event(at)
    }

    fn past(&self, at: OpId, _event: u32, operand: Operand) -> impl Past {
        let owner = (self.callers == Callers::Each).then(|| self.main[operand.rank.index()]);
        self.past_of(self.order.stream_of[at.index()], owner)
    }

    fn exit(&self, rank: RankId) -> impl Past {
        self.past_of(self.main[rank.index()], None)
    }

    fn earlier(&self, earlier: u32, event: u32) -> (RankOp, bool) {
        let (op, run) = self.clocks.op(earlier);
        let stream = self.order.stream_of[op.index()];
        let rank = self.schedule.streams[stream.index()].rank;
        (RankOp { op, rank }, self.clocks.op(event).1 != run)
    }

    fn touched(&self, event: u32, home: RankId) -> (OpId, RankId) {
        (self.clocks.op(event).0, home)
    }

    fn is_before(&self, earlier: OpId, next: OpId) -> bool {
        let [of, stream] = [earlier, next].map(|op| self.order.stream_of[op.index()]);
        self.clocks.before(self.clocks.event(earlier), of, stream)
    }

    fn post(&mut self, at: OpId, stream: StreamId) {
        self.clocks.post(at, stream);
    }

    fn wait(&mut self, at: OpId, stream: StreamId) -> Result<(), &'static str> {
        let post = self.order.meets[at.index()];
        let from = self.order.stream_of[post.index()];
        let full = |Full| "its streams know too much of each other";
        self.clocks.wait(post, from, stream).map_err(full)
    }

    fn next_run(&mut self) {
        self.clocks.next_run();
    }

    fn raise(&mut self, at: OpId, stream: StreamId) -> Option<(OpId, bool)> {
        let channel = Schedule::channel_id(self.schedule.op(at));
        self.flags.as_mut()?.raise(channel, at, stream, self.order, &self.clocks)
    }

    fn has_flags(&self) -> bool {
        self.flags.is_some()
    }

    fn sure(&self, found: bool) -> Result<(), &'static str> {
        // Clocks with more knowledge might not find it.
        if found && self.clocks.may_miss() { Err("near clocks know too little") } else { Ok(()) }
    }

    fn count(cells: u32) -> u32 {
        cells
    }

    fn history(
        &self,
        values: &mut Values,
        layout: &MemoryLayout,
        cell: u32,
    ) -> Vec<(OpId, ValueId)> {
        history::history(self.schedule, self.order, self.cells, layout, values, cell)
    }

    fn trace(&self, layout: &MemoryLayout, of: (Leaf, u32)) -> Trace {
        blame::trace(self.schedule, self.order, self.cells, layout, of)
    }
}
