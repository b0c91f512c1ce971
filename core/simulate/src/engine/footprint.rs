//! The memory that many moves under way touch, by place, so that a new move need not be compared with all of them.

use std::collections::BTreeSet;

use rustc_hash::FxHashMap;

use super::moves::MoveId;
use roundelay_base::ids::RankId;
use roundelay_base::rational::Rat;
use roundelay_core::schedule::{Buffer, Op, Operand, Schedule};

/// The regions that moves under way touch, of each slot of each buffer.
#[derive(Default)]
pub(super) struct Touched {
    of: FxHashMap<(RankId, Buffer, u32), Slot>,
}

/// The regions of one slot.
#[derive(Default)]
struct Slot {
    /// The coordinate of the first element. Regions of two such coordinates may lie anywhere.
    base: Option<Rat>,
    bases_differ: bool,
    widest: Option<Rat>,
    /// Begin, end, and move.
    regions: BTreeSet<(Rat, Rat, MoveId)>,
}

impl Touched {
    /// Adds the operands of a move.
    pub(super) fn insert(&mut self, schedule: &Schedule, op: &Op, id: MoveId) {
        for operand in schedule.operands_of(op) {
            let region = schedule.region(*operand);
            let slot = self.of.entry((operand.rank, region.buffer, region.slot)).or_default();
            slot.bases_differ |= *slot.base.get_or_insert(region.base) != region.base;
            let width = region.hi.minus(region.lo).unwrap_or(region.hi);
            slot.widest = slot.widest.max(Some(width));
            slot.regions.insert((region.lo, region.hi, id));
        }
    }

    /// Removes the operands of a move.
    pub(super) fn remove(&mut self, schedule: &Schedule, op: &Op, id: MoveId) {
        for operand in schedule.operands_of(op) {
            let region = schedule.region(*operand);
            if let Some(slot) = self.of.get_mut(&(operand.rank, region.buffer, region.slot)) {
                slot.regions.remove(&(region.lo, region.hi, id));
            }
        }
    }

    /// Returns the moves that may touch the memory of an operand, the last first.
    pub(super) fn near(&self, schedule: &Schedule, operand: Operand) -> Vec<MoveId> {
        let region = schedule.region(operand);
        let Some(slot) = self.of.get(&(operand.rank, region.buffer, region.slot)) else {
            return Vec::new();
        };
        let alike = !slot.bases_differ && slot.base == Some(region.base);
        let before = slot.widest.and_then(|widest| region.lo.minus(widest));
        let first = before.filter(|_| alike).unwrap_or(Rat::ZERO);
        let begins = slot.regions.range((first, Rat::ZERO, 0)..);
        let near = begins.take_while(|(lo, ..)| !alike || *lo < region.hi);
        let mut found: Vec<MoveId> = near.map(|(.., id)| *id).collect();
        found.sort_unstable_by(|a, b| b.cmp(a));
        found.dedup();
        found
    }
}
