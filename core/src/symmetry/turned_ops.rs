//! The ops of any rank: those of rank 0, turned.

use rustc_hash::FxHashMap;

use super::Representative;
use super::space::{CellRange, Space, number};
use crate::ids::{OpId, RankId, RegionId};
use crate::rational::Rat;
use crate::schedule::{Channel, Op, OpKind, Operand, Region, Schedule};

/// The most parts into which a turn may cut a move.
const PARTS: usize = 1 << 20;

/// Takes moves to other ranks, and numbers their regions.
pub(crate) struct MoveTurner<'a> {
    space: &'a mut Space,
    known: FxHashMap<Region, RegionId>,
}

impl<'a> MoveTurner<'a> {
    /// Begins with the regions of a schedule.
    pub(crate) fn new(space: &'a mut Space, of: &Schedule) -> Self {
        let known = (0..).map(RegionId).zip(&of.regions).map(|(id, region)| (*region, id));
        Self { space, known: known.collect() }
    }

    /// Returns the regions to which a turn takes those of one move or message: for each part into which the turn cuts
    /// it, one for each region. New regions are added to the schedule. `None` where there are too many parts, or where
    /// boundaries have no numbers.
    pub(crate) fn turn(
        &mut self,
        of: &mut Schedule,
        ids: &[RegionId],
        by: u32,
    ) -> Option<Vec<Vec<RegionId>>> {
        if by == 0 {
            return Some(vec![ids.to_vec()]);
        }
        let operand = |id: &RegionId| Operand { rank: RankId(0), region: *id };
        let pieces: Vec<CellRange> =
            ids.iter().map(|id| self.space.piece(of, operand(id))).collect();
        let parts = self.space.parts(&pieces, by, PARTS)?;
        let mut all = Vec::with_capacity(parts.len());
        for (firsts, len) in parts {
            let mut turned = Vec::with_capacity(ids.len());
            for (id, first) in ids.iter().zip(firsts) {
                let region = self.space.region_at(of, operand(id), by, first, len)?;
                turned.push(*self.known.entry(region).or_insert_with(|| {
                    of.regions.push(region);
                    self.space.add_region(*id);
                    RegionId(of.regions.len() as u32 - 1)
                }));
            }
            all.push(turned);
        }
        Some(all)
    }
}

impl Space {
    /// Returns cells as a region of the rank to which a turn takes rank 0, for data of an operand of rank 0.
    fn region_at(
        &self,
        own: &Schedule,
        operand: Operand,
        by: u32,
        first: u64,
        len: u64,
    ) -> Option<Region> {
        let region = *own.region(operand);
        let at = |cells: u64| Rat::new(cells, self.grid);
        let Some(slot) = self.slot(&region) else {
            return Some(Region { lo: at(first)?, hi: at(first + len)?, ..region });
        };
        let base = self.base(own, operand, by);
        let number = first.checked_div(slot.len).unwrap_or(0);
        let lo = base + first - number * slot.len;
        let slot = u32::try_from(number).ok()?;
        Some(Region { slot, base: at(base)?, lo: at(lo)?, hi: at(lo + len)?, ..region })
    }

    /// Extends the space by the scratch that a form of the schedule has beside the author's; `likes` has the region that
    /// the data in a new slot comes from. The error is the reason why there is no such space.
    pub(crate) fn extended(
        &self,
        own: &Schedule,
        form: &Schedule,
        likes: &[(Region, Region)],
    ) -> Result<Self, String> {
        let mut space = self.clone();
        let authors = own.scratch.len();
        for scratch in &form.scratch[authors..] {
            space.add_buffer(scratch)?;
        }
        let author = |region: &Region| (number(region.buffer), region.slot, region.base);
        let mut moves: FxHashMap<_, bool> = FxHashMap::default();
        for (region, base) in own.regions.iter().zip(self.moving_bases()) {
            *moves.entry(author(region)).or_default() |= *base;
        }
        for (slot, like) in likes {
            let inside = number(like.buffer) < 2 && self.turns_in_units(number(like.buffer));
            let of = inside || moves.get(&author(like)).copied().unwrap_or(false);
            *moves.entry(author(slot)).or_default() |= of;
            space.take_wheels(number(slot.buffer), number(like.buffer))?;
        }
        let of = |region: &Region| moves.get(&author(region)).copied().unwrap_or(false);
        space.set_bases(form.regions.iter().map(of).collect());
        Ok(space)
    }
}

impl Representative {
    /// Returns the ops of a rank in a schedule without the other ranks: those of rank 0, turned. `None` where the turn
    /// cuts moves into too many parts.
    pub fn of_rank(&self, rank: RankId) -> Option<Schedule> {
        self.turned(rank).map(|(schedule, _)| schedule)
    }

    /// [`Self::of_rank`], with the first of the ops that each op of rank 0 became, and behind them the number of ops.
    pub(crate) fn turned(&self, rank: RankId) -> Option<(Schedule, Vec<OpId>)> {
        let mut own = self.own.clone();
        let mut space = self.space.clone();
        let mut turner = MoveTurner::new(&mut space, &own);
        let turned = |of: RankId| RankId(self.turns.turn(of.0, rank.0));
        let (mut ops, mut operands) = (Vec::with_capacity(own.ops.len()), Vec::new());
        let mut first = Vec::with_capacity(own.ops.len() + 1);
        for at in 0..own.ops.len() {
            first.push(OpId(ops.len() as u32));
            let op = own.ops[at];
            if op.kind != OpKind::Move {
                ops.push(op);
                continue;
            }
            let of = own.operands_of(&op).to_vec();
            let ids: Vec<RegionId> = of.iter().map(|operand| operand.region).collect();
            for regions in turner.turn(&mut own, &ids, rank.0)? {
                ops.push(Op { arg: operands.len() as u32, ..op });
                let owners = of.iter().map(|operand| turned(operand.rank));
                let parts = owners.zip(regions);
                operands.extend(parts.map(|(rank, region)| Operand { rank, region }));
            }
        }
        first.push(OpId(ops.len() as u32));
        (own.ops, own.operands) = (ops, operands);
        for channel in &mut own.channels {
            *channel = Channel { from: turned(channel.from), to: turned(channel.to), ..*channel };
        }
        for stream in &mut own.streams {
            let behind = first[(stream.first.0 + stream.len) as usize];
            stream.first = first[stream.first.index()];
            (stream.rank, stream.len) = (turned(stream.rank), behind.0 - stream.first.0);
        }
        Some((own, first))
    }
}
