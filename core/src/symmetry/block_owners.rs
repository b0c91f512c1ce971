//! A count for each block, from the ops of rank 0: the blocks that slots of other ranks hold are those that rank 0's
//! slots hold, turned.

use super::Representative;
use super::space::{CellRange, Space, Wheel};
use crate::collective::Collective;
use crate::diagnostics::Finding;
use crate::ids::RankId;
use crate::rational::Rat;
use crate::schedule::{Region, Schedule};
use crate::verify::Order;
use crate::verify::owners::{Block, SlotUnit, Slots, followed};

/// Returns whether the proof for equal counts holds for every vector of counts, one for each block: if not, the error is
/// E0319 at the first move of rank 0 that is right for equal counts alone. `None` where a turn cuts units of scratch, so
/// that rank 0 does not tell.
pub(super) fn blocks(of: &Representative, order: &Order) -> Option<Result<(), Box<Finding>>> {
    let slots = Turned { own: &of.own, space: &of.space };
    slots.keep_units().then(|| followed(&of.own, order, &slots).map(|_| ()))
}

/// The slots of rank 0, which stand for those of all ranks.
struct Turned<'a> {
    own: &'a Schedule,
    space: &'a Space,
}

impl Turned<'_> {
    /// Whether turns take each unit of a slot to one unit of a slot.
    fn keep_units(&self) -> bool {
        let grid = self.space.grid;
        self.own.regions.iter().all(|region| {
            let Some(slot) = self.space.slot(region) else { return true };
            let units = region.base.fraction() == Rat::ZERO && slot.len.is_multiple_of(grid);
            let by_units = |wheel: &Wheel| units && wheel.stride.is_multiple_of(grid);
            self.by_slots(slot) || self.space.wheels[slot.buffer].iter().all(by_units)
        })
    }

    /// Whether turns take the slots of a buffer as they are.
    fn by_slots(&self, slot: CellRange) -> bool {
        self.space.wheels[slot.buffer].iter().all(|wheel| wheel.stride.is_multiple_of(slot.len))
    }

    /// Returns a block, turned at each of the ranks that it is named by.
    fn each(&self, block: Block, rank: impl Fn(u32) -> u32) -> Block {
        let n = u64::from(self.own.nranks);
        match self.own.collective {
            Collective::AllToAll => {
                u64::from(rank((block / n) as u32)) * n + u64::from(rank((block % n) as u32))
            }
            _ => rank(block as u32).into(),
        }
    }
}

impl Slots for Turned<'_> {
    fn home(&self, (rank, buffer, slot, unit): SlotUnit) -> (SlotUnit, u32) {
        let (space, back) = (self.space, self.space.turns.back(rank.0));
        let region = Region { buffer, slot, base: Rat::ZERO, lo: Rat::ZERO, hi: Rat::ZERO };
        let all = space.slot(&region).expect("the buffer is scratch");
        let (slot, unit) = if self.by_slots(all) {
            (space.turned(all, back).first / all.len, unit)
        } else {
            let image = space.cell(all.buffer, all.first + unit * space.grid, back);
            (image / all.len, image % all.len / space.grid)
        };
        ((RankId(0), buffer, slot as u32, unit), rank.0)
    }

    fn turned(&self, block: Block, by: u32) -> Block {
        self.each(block, |rank| self.space.turns.turn(rank, by))
    }

    fn turned_back(&self, block: Block, by: u32) -> Block {
        self.each(block, |rank| self.space.turns.turn_between(by, rank))
    }
}
