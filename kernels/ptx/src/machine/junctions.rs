//! The places at which lanes that a branch took apart come together again, as they do on a GPU: the first instruction that
//! all ways from the branch to the end of the function have in common.

use super::warp::{Junction, LaneGroup, State, Warp};
use crate::program::{Function, Operation};

/// The first common instruction behind each instruction of a function; none where there is only the function's end. A trap
/// is no end.
pub(crate) fn junctions(function: &Function) -> Vec<Option<u32>> {
    let end = function.instructions.len();
    let mut before = vec![Vec::new(); end + 1];
    let mut after = vec![Vec::new(); end + 1];
    for (at, instruction) in function.instructions.iter().enumerate() {
        let (target, goes_on) = match instruction.operation {
            Operation::Branch { target, .. } => (Some(target as usize), false),
            Operation::Return | Operation::Exit => (Some(end), false),
            Operation::Trap | Operation::Assert { .. } => (None, false),
            _ => (None, true),
        };
        let next = (goes_on || instruction.guard.is_some()).then_some((at + 1).min(end));
        for to in target.into_iter().chain(next) {
            after[at].push(to);
            before[to].push(at);
        }
    }
    // From the end backwards, each instruction behind those to which it goes on, but for loops.
    let (mut order, mut number) = (Vec::new(), vec![usize::MAX; end + 1]);
    let mut seen = vec![false; end + 1];
    let mut way = vec![(end, 0)];
    seen[end] = true;
    while let Some((at, nth)) = way.pop() {
        match before[at].get(nth) {
            Some(&from) => {
                way.push((at, nth + 1));
                if !std::mem::replace(&mut seen[from], true) {
                    way.push((from, 0));
                }
            }
            None => {
                number[at] = order.len();
                order.push(at);
            }
        }
    }
    let mut common = vec![None; end + 1];
    common[end] = Some(end);
    let mut changed = true;
    while std::mem::take(&mut changed) {
        for &at in order.iter().rev().skip(1) {
            let known = after[at].iter().copied().filter(|to| common[*to].is_some());
            let meet = |mut one: usize, mut other: usize| {
                while one != other {
                    let lower = if number[one] < number[other] { &mut one } else { &mut other };
                    *lower = common[*lower].unwrap_or(end);
                }
                one
            };
            let first = known.reduce(meet);
            changed |= first != common[at];
            common[at] = first;
        }
    }
    common.truncate(end);
    common.into_iter().map(|to| to.filter(|&to| to < end).map(|to| to as u32)).collect()
}

impl LaneGroup {
    /// Whether the group stands where it waits for other lanes.
    pub(crate) fn is_held(&self) -> bool {
        self.junctions.last().is_some_and(|to| self.stands_at(to))
    }

    fn stands_at(&self, to: &Junction) -> bool {
        self.state == State::Ready && (self.place, self.calls.len()) == (to.place, to.calls)
    }
}

impl Warp {
    /// Lets the lanes of a group be taken apart until they stand at a place.
    pub(crate) fn take_apart_until(&mut self, group: usize, place: u32, calls: usize) {
        let group = &mut self.groups[group];
        let is_same = |to: &Junction| (to.place, to.calls) == (place, calls);
        if !group.junctions.last().is_some_and(is_same) {
            group.junctions.push(Junction { place, calls, lanes: group.lanes });
        }
    }

    /// Joins the groups that wait at one place, and lets them go on if all their lanes are there.
    pub(crate) fn come_together(&mut self) {
        let mut group = 0;
        while group < self.groups.len() {
            if self.join(group) {
                group = 0;
                continue;
            }
            let live = self.live;
            let here = &mut self.groups[group];
            let mut changed = false;
            while let Some(to) = here.junctions.last().copied()
                && here.stands_at(&to)
                && to.lanes & live & !here.lanes == 0
            {
                here.junctions.pop();
                changed = true;
            }
            group = if changed { 0 } else { group + 1 };
        }
    }
}
