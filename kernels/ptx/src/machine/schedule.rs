//! The order in which warps go on.

use std::time::Instant;

use super::fault::{FaultKind, KernelFault, Where};
use super::image::lanes;
use super::launch::Limits;
use super::stream::InStream;
use super::warp::State;
use super::{Failed, Machine};
use crate::choices::Choice;
use crate::memory::strength;
use crate::program::{Fence, Instruction, MulticastOp, Operation, Ordering, Space};

/// Instructions of a turn at most, so that a loop without a strong access does not keep others from going on.
const TURN: u32 = 20_000;

/// Turns of a warp in a row, without a choice to the contrary.
const IN_A_ROW: u32 = 16;

/// Instructions between two looks at the clock.
const A_LOOK: u64 = 1 << 10;

/// Groups of lanes that a report of waiting threads lists at most.
const REPORTED: usize = 64;

impl Machine<'_> {
    /// Runs all warps to their end.
    pub(super) fn run(&mut self) -> Result<(), Box<KernelFault>> {
        self.count_needs();
        self.begin_launches();
        let count = self.warps.len();
        let mut current = 0;
        let mut in_a_row = 0;
        loop {
            let next = if self.choices.is_path() {
                let ready = (0..count).map(|step| (current + step) % count);
                let ready: Vec<usize> = ready.filter(|&w| self.warps[w].is_ready()).collect();
                let chosen = self.choices.choose(Choice::Threads, || ready.len().max(1));
                ready.get(chosen).copied()
            } else {
                let chosen = self.choices.choose(Choice::Threads, || count);
                let first = current + usize::from(in_a_row >= IN_A_ROW) + chosen;
                let from = (0..count).map(|step| (first + step) % count);
                { from }.find(|&warp| self.warps[warp].is_ready())
            };
            let Some(warp) = next else {
                let ended = self.launches.iter().all(InStream::has_ended);
                return if ended { Ok(()) } else { Err(Box::new(self.stuck())) };
            };
            in_a_row = if warp == current { in_a_row + 1 } else { 0 };
            current = warp;
            self.turns += 1;
            self.idle += 1;
            if self.idle > self.limits.idle_turns * count as u64 {
                return Err(Box::new(self.stuck()));
            }
            if self.turn(warp)? {
                in_a_row = IN_A_ROW;
            }
        }
    }

    /// Runs a warp until a group of its lanes comes to its second strong access, or none can go on. Returns whether the
    /// strong access was a load, perhaps that of a poll.
    fn turn(&mut self, warp: usize) -> Result<bool, Box<KernelFault>> {
        self.warps[warp].turns = self.warps[warp].turns.wrapping_add(1);
        let mut strong = None;
        let mut left = TURN;
        let patient = self.choices.waiting_load().is_some();
        'groups: loop {
            if patient {
                self.warps[warp].come_together();
            }
            let Some(group) = self.warps[warp].pick(patient) else { break };
            loop {
                let place = self.warps[warp].groups[group].place;
                let instruction = self.image.code[place as usize];
                if self.is_strong(instruction) {
                    if strong.is_some() || left == 0 {
                        return Ok(strong == Some(true));
                    }
                    if self.waits(warp, group, instruction) {
                        return Ok(true);
                    }
                    match &instruction.operation {
                        Operation::Load { access, .. } | Operation::Store { access, .. }
                            if self.fills_lines(access) => {}
                        _ => self.take_apart(warp, group),
                    }
                    strong = Some(matches!(instruction.operation, Operation::Load { .. }));
                }
                if left == 0 {
                    return Ok(true);
                }
                left -= 1;
                self.executed += 1;
                self.covered[place as usize] = true;
                if let Some(limit) = self.limit() {
                    let lanes = self.warps[warp].groups[group].lanes;
                    return Err(Box::new(self.fault(warp, place, (limit, lanes))));
                }
                let executed = self.execute(warp, group, instruction);
                let regroup =
                    executed.map_err(|failed| Box::new(self.fault(warp, place, failed)))?;
                let several = self.warps[warp].groups.len() > 1;
                if regroup || several && (self.warps[warp].join(group) || patient) {
                    continue 'groups;
                }
            }
        }
        Ok(strong == Some(true))
    }

    /// The limit that the run has come to.
    fn limit(&self) -> Option<FaultKind> {
        let Limits { instructions, end, .. } = self.limits;
        if self.executed > instructions {
            return Some(FaultKind::Limit(instructions));
        }
        let looks = self.executed.is_multiple_of(A_LOOK);
        let late = looks && end.is_some_and(|end| Instant::now() > end);
        late.then_some(FaultKind::Late(self.executed))
    }

    /// Perhaps lets one lane of a group go on alone.
    fn take_apart(&mut self, warp: usize, group: usize) {
        let at = &self.warps[warp].groups[group];
        let (all, place) = (at.lanes, at.place);
        if all.is_power_of_two() {
            return;
        }
        let chosen = self.choices.choose(Choice::Lanes, || 1 + all.count_ones() as usize);
        if chosen != 0
            && let Some(lane) = lanes(all).nth(chosen - 1)
        {
            self.warps[warp].split(group, all & !(1 << lane), place);
        }
    }

    fn fault(&self, warp: usize, place: u32, (kind, lanes): Failed) -> KernelFault {
        KernelFault { kind, at: Some(self.lanes_at(warp, lanes, place)), before: Vec::new() }
    }

    /// The error of threads of which none can go on.
    fn stuck(&self) -> KernelFault {
        let mut waiting: Vec<(Where, String)> = Vec::new();
        for (number, warp) in self.warps.iter().enumerate() {
            for group in &warp.groups {
                let what = match group.state {
                    State::Ready => "polls".to_owned(),
                    State::Launches => {
                        "waits in `griddepcontrol.wait` for the launches before its own".to_owned()
                    }
                    State::Cluster => "waits at the barrier of its cluster".to_owned(),
                    State::Barrier(id) => self.barrier_in_words(warp.block, id),
                    State::Lanes(mask) => {
                        format!("waits for the lanes of {:#010x}", mask & !group.lanes)
                    }
                };
                waiting.push((self.lanes_at(number, group.lanes, group.place), what));
            }
        }
        waiting.extend(self.not_begun());
        waiting.truncate(REPORTED);
        KernelFault { kind: FaultKind::Stuck(waiting), at: None, before: Vec::new() }
    }

    fn barrier_in_words(&self, block: usize, id: u64) -> String {
        let arrivals = self.blocks[block].barriers.iter().find(|arrivals| arrivals.id == id);
        match arrivals.and_then(|arrivals| arrivals.count) {
            Some(count) => format!("waits at barrier {id} of {count} threads"),
            None => format!("waits at barrier {id} of all threads"),
        }
    }

    /// Whether the order of an instruction among those of other warps may show.
    fn is_strong(&self, instruction: &Instruction) -> bool {
        match &instruction.operation {
            Operation::Load { access, .. } | Operation::Store { access, .. } => {
                let is_shared = matches!(access.space, Space::Global | Space::Generic);
                strength(access).is_some() || self.weak_is_relaxed && is_shared
            }
            Operation::Multicast { op, access, .. } => {
                matches!(op, MulticastOp::Reduce(_)) || strength(access).is_some()
            }
            Operation::Reduce { .. }
            | Operation::LaunchDependents
            | Operation::Pause
            | Operation::ActiveMask { .. } => true,
            Operation::Fence(Fence { ordering, .. }) => *ordering == Ordering::SeqCst,
            _ => false,
        }
    }
}
