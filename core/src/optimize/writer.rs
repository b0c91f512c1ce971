//! Writes the moves, operands, regions and partials of fusion, and makes a schedule of them.

use crate::ids::{OpId, RankId, RegionId, ScratchId, SpanId};
use crate::rational::Rat;
use crate::schedule::interner::Interner;
use crate::schedule::origins::Origins;
use crate::schedule::{Buffer, Op, OpKind, Operand, Region, Schedule, Scratch};
use crate::verify::{Callers, Order};

use super::flow::Flow;
use super::statements::{StatementSet, StatementSets};
use super::{Unfit, signals};

/// The most operands of all moves of a fused schedule; with more it takes more memory than it saves.
const OPERANDS: usize = 1 << 25;

/// The ops of the fused schedule that is being written.
pub(super) struct OpWriter<'s> {
    pub(super) schedule: &'s Schedule,
    pub(super) flow: &'s Flow,
    /// The moves of each rank.
    ops: Vec<Vec<Op>>,
    operands: Vec<Operand>,
    regions: Interner<Region>,
    origins: Origins,
    pub(super) sets: StatementSets,
    /// The width of the widest partial, and the largest number of partials, and of wide ones, at once.
    width: Rat,
    slots: [u32; 2],
    /// The statements of each rank's first post and first wait, to which its new signals are attributed.
    spans: Vec<[SpanId; 2]>,
}

/// A slot of the partials, or of those that keep narrow floats as f32.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Partial {
    pub(super) slot: u32,
    pub(super) wide: bool,
}

/// The statements that a move comes from.
#[derive(Clone, Copy, Default)]
pub(super) struct Provenance {
    /// The last fold that the move does, which is named where only one statement can be named.
    pub(super) first: Option<SpanId>,
    pub(super) all: StatementSet,
}

impl<'s> OpWriter<'s> {
    pub(super) fn new(
        schedule: &'s Schedule,
        order: &Order,
        flow: &'s Flow,
        sets: StatementSets,
    ) -> Self {
        let mut spans = vec![[None, None]; schedule.nranks as usize];
        for (at, stream) in order.stream_of.iter().enumerate() {
            let op = schedule.op(OpId(at as u32));
            let rank = schedule.streams[stream.index()].rank;
            if op.kind != OpKind::Move {
                let which = usize::from(op.kind == OpKind::Wait);
                spans[rank.index()][which].get_or_insert(op.at);
            }
        }
        Self {
            schedule,
            flow,
            ops: vec![Vec::new(); schedule.nranks as usize],
            operands: Vec::new(),
            regions: Interner::default(),
            origins: Origins::of(schedule),
            sets,
            width: Rat::ZERO,
            slots: [0; 2],
            spans: spans.into_iter().map(|s| s.map(Option::unwrap_or_default)).collect(),
        }
    }

    /// Returns the operand of a partial: slot `slot` of the owner's scratch, with data that begins at `lo`.
    pub(super) fn partial(&mut self, owner: RankId, partial: Partial, lo: Rat, hi: Rat) -> Operand {
        let Partial { slot, wide } = partial;
        let slots = &mut self.slots[usize::from(wide)];
        *slots = (*slots).max(slot + 1);
        self.width = self.width.max(hi.minus(lo).unwrap_or(Rat::ZERO));
        let buffer = Buffer::Scratch(ScratchId(u32::from(wide)));
        self.operand(owner, Region { buffer, slot, base: lo, lo, hi })
    }

    /// Returns the operand of a stretch of a user buffer.
    pub(super) fn user(&mut self, rank: RankId, buffer: Buffer, lo: Rat, hi: Rat) -> Operand {
        self.operand(rank, Region { buffer, slot: 0, base: Rat::ZERO, lo, hi })
    }

    fn operand(&mut self, rank: RankId, region: Region) -> Operand {
        Operand { rank, region: RegionId(self.regions.intern(region)) }
    }

    pub(super) fn push(
        &mut self,
        owner: RankId,
        (srcs, chain): (&[Operand], bool),
        dsts: &[Operand],
        provenance: Provenance,
    ) -> Result<(), Unfit> {
        if self.operands.len() > OPERANDS {
            return Err(Unfit(format!("fused moves would have more than {OPERANDS} operands")));
        }
        let all = self.sets.get(provenance.all);
        let first = provenance.first.or_else(|| all.first().copied()).unwrap_or_default();
        let at = self.origins.id(first, all.iter().copied());
        let (of, to) = (srcs.len() as u8, dsts.len() as u8);
        let op = Op::new(OpKind::Move, at, self.operands.len() as u32);
        self.ops[owner.index()].push(Op { srcs: of, dsts: to, chain, ..op });
        self.operands.extend_from_slice(srcs);
        self.operands.extend_from_slice(dsts);
        Ok(())
    }

    pub(super) fn finish(self, callers: Callers) -> Schedule {
        let Self { schedule, ops, operands, regions, width, slots, spans, origins, .. } = self;
        let mut fused = Schedule {
            algorithm: schedule.algorithm.clone(),
            scratch: Vec::new(),
            streams: Vec::new(),
            ops: Vec::new(),
            operands,
            regions: regions.items,
            channels: Vec::new(),
            lanes: vec![Vec::new()],
            locations: schedule.locations.clone(),
            origins: origins.table(),
            file: schedule.file.clone(),
            demands: schedule.demands.of_calls(),
            elements: schedule.elements.clone(),
            ..*schedule
        };
        let [narrow, wide] = slots;
        if narrow + wide > 0 {
            let name = "partial".into();
            fused.scratch.push(Scratch { name, slots: narrow, width, wide: false });
        }
        if wide > 0 {
            let name = "wide".into();
            fused.scratch.push(Scratch { name, slots: wide, width, wide: true });
        }
        signals::assemble(&mut fused, ops, callers, &spans);
        fused
    }
}
