//! Moves that a switch makes: the sides of each, and the groups of ranks that it reaches.

use roundelay_core::ids::RankId;
use roundelay_core::schedule::{Op, Operand, Schedule};

/// The ranks that each side of a switch's move has, where it has several.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SwitchSides {
    pub(super) from_all: bool,
    pub(super) to_all: bool,
}

impl SwitchSides {
    /// Returns the sides of a move; `None` where ranks make it, as they do with one rank alone.
    pub(super) fn of(op: &Op) -> Option<Self> {
        let sides = Self { from_all: op.srcs > 1, to_all: op.dsts > 1 };
        (op.switch && (sides.from_all || sides.to_all)).then_some(sides)
    }

    /// The number of the sides on the device.
    pub(super) fn number(self) -> u32 {
        u32::from(self.from_all) | u32::from(self.to_all) << 1
    }
}

/// Returns the ranks of each group that a switch reaches, in the order in which the schedule meets them.
pub(super) fn groups(schedule: &Schedule) -> Vec<Vec<RankId>> {
    let mut groups = Vec::new();
    for op in schedule.ops.iter().filter(|op| SwitchSides::of(op).is_some()) {
        let group = group_of(schedule, op);
        if !groups.contains(&group) {
            groups.push(group);
        }
    }
    groups
}

/// Returns the ranks that a switch's move reaches, in ascending order.
pub(super) fn group_of(schedule: &Schedule, op: &Op) -> Vec<RankId> {
    let all = if op.srcs > 1 { schedule.srcs(op) } else { schedule.dsts(op) };
    let mut ranks: Vec<_> = all.iter().map(|Operand { rank, .. }| *rank).collect();
    ranks.sort_unstable();
    ranks
}
