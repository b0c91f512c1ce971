//! Warps, and the groups of lanes that stand at the same instruction.

use crate::memory::{LANES, Thread};
use crate::program::{Guard, Operand, Slot};

use super::image::lanes;

/// The bytes of a register without a value in each lane, the low byte at bit 0.
pub(super) type Missing = [u8; LANES as usize];

/// The state of a group of lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// It can go on.
    Ready,
    /// It waits for the ends of the launches before its own.
    Launches,
    /// It waits at the barrier of its cluster.
    Cluster,
    /// It waits at the barrier of its block with this number.
    Barrier(u64),
    /// It waits for the other lanes of this mask.
    Lanes(u32),
}

/// A place at which lanes wait for each other that a branch took apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Junction {
    /// The instruction.
    pub(crate) place: u32,
    /// The number of calls around it.
    pub(crate) calls: usize,
    /// The lanes that the branch took apart.
    pub(crate) lanes: u32,
}

/// Lanes that stand at the same instruction, after the same calls.
#[derive(Clone, Debug)]
pub(crate) struct LaneGroup {
    /// The lanes.
    pub(crate) lanes: u32,
    /// The instruction.
    pub(crate) place: u32,
    /// The frame of the function.
    pub(crate) frame: usize,
    /// The frames of the calls, each with its instruction.
    pub(crate) calls: Vec<(usize, u32)>,
    /// The state.
    pub(crate) state: State,
    /// The places at which its lanes wait for others, the next one last.
    pub(crate) junctions: Vec<Junction>,
}

/// A source of the lanes of a warp.
#[derive(Clone, Copy, Debug)]
pub(super) struct Source<'a> {
    /// The value in each lane of a register; a number has none, and is zero in all lanes.
    pub(super) lanes: Option<&'a [u64; LANES as usize]>,
    /// A value that is combined with that of each lane by exclusive or.
    pub(super) value: u64,
}

impl Source<'_> {
    /// The value in a lane.
    pub(super) fn at(&self, lane: usize) -> u64 {
        self.lanes.map_or(0, |lanes| lanes[lane]) ^ self.value
    }
}

/// A warp.
#[derive(Debug)]
pub(crate) struct Warp {
    /// The number of its first thread.
    pub(crate) first: Thread,
    /// The number of its block among all blocks of all ranks.
    pub(crate) block: usize,
    /// The number of the warp in its block.
    pub(crate) in_block: u32,
    /// The lanes that have not ended.
    pub(crate) live: u32,
    /// The groups of its lanes.
    pub(crate) groups: Vec<LaneGroup>,
    /// The number of turns that it has had.
    pub(crate) turns: u32,
    /// The line of the page for which it does an op: an instruction of the thread that handed it the op.
    pub(crate) line: Option<u32>,
    /// The value of each register in each lane; none before its launch begins, and after its end.
    registers: Vec<[u64; LANES as usize]>,
    /// The bytes of each register without a value; empty as long as no register has had one.
    missing: Vec<Missing>,
}

impl Warp {
    /// A warp that is in no block yet.
    pub(crate) fn new(first: Thread) -> Self {
        Self {
            first,
            block: 0,
            in_block: 0,
            live: 0,
            groups: Vec::new(),
            turns: 0,
            line: None,
            registers: Vec::new(),
            missing: Vec::new(),
        }
    }

    /// Begins as a warp of a block, at the start of a kernel.
    pub(crate) fn begin(
        &mut self,
        (block, in_block): (usize, u32),
        threads: u32,
        (frame, place): (usize, u32),
        registers: u32,
    ) {
        let (calls, junctions) = (Vec::new(), Vec::new());
        let state = State::Ready;
        let group = LaneGroup { lanes: threads, place, frame, calls, state, junctions };
        *self = Self {
            block,
            in_block,
            live: threads,
            groups: vec![group],
            registers: vec![[0; LANES as usize]; registers as usize],
            ..Self::new(self.first)
        };
    }

    /// Gives the registers back, after the end of all lanes.
    pub(crate) fn end(&mut self) {
        (self.registers, self.missing) = (Vec::new(), Vec::new());
    }

    /// Whether a group can go on.
    pub(crate) fn is_ready(&self) -> bool {
        self.groups.iter().any(|group| group.state == State::Ready)
    }

    /// The value of an operand in a lane, for a function whose registers begin at `base`.
    pub(crate) fn value(&self, base: u32, operand: Operand, lane: u32) -> u64 {
        match operand {
            Operand::Slot(slot) => self.registers[(base + slot) as usize][lane as usize],
            Operand::Value(value) => value,
        }
    }

    /// The values of an operand in all lanes.
    pub(crate) fn values(&self, base: u32, operand: Operand) -> [u64; LANES as usize] {
        match operand {
            Operand::Slot(slot) => self.registers[(base + slot) as usize],
            Operand::Value(value) => [value; LANES as usize],
        }
    }

    /// An operand as the source of an arithmetic instruction; a truth value may be negated.
    pub(super) fn source(&self, base: u32, operand: Operand, negated: bool) -> Source<'_> {
        let (lanes, value) = match operand {
            Operand::Slot(slot) => (Some(&self.registers[(base + slot) as usize]), 0),
            Operand::Value(value) => (None, value),
        };
        Source { lanes, value: value ^ u64::from(negated) }
    }

    /// Sets a register of a lane.
    pub(crate) fn set(&mut self, base: u32, slot: Slot, lane: u32, value: u64) {
        self.registers[(base + slot) as usize][lane as usize] = value;
        if let Some(missing) = self.missing.get_mut((base + slot) as usize) {
            missing[lane as usize] = 0;
        }
    }

    /// Sets a register of several lanes.
    pub(crate) fn set_all(
        &mut self,
        base: u32,
        slot: Slot,
        mask: u32,
        values: &[u64; LANES as usize],
    ) {
        let register = &mut self.registers[(base + slot) as usize];
        if mask == u32::MAX {
            *register = *values;
        } else {
            lanes(mask).for_each(|lane| register[lane as usize] = values[lane as usize]);
        }
        if let Some(missing) = self.missing.get_mut((base + slot) as usize) {
            lanes(mask).for_each(|lane| missing[lane as usize] = 0);
        }
    }

    /// Whether a register may have bytes without a value.
    pub(crate) fn may_miss(&self) -> bool {
        !self.missing.is_empty()
    }

    /// The bytes of an operand without a value, in all lanes.
    pub(crate) fn missing(&self, base: u32, operand: Operand) -> Missing {
        let Operand::Slot(slot) = operand else { return [0; LANES as usize] };
        self.missing.get((base + slot) as usize).copied().unwrap_or([0; LANES as usize])
    }

    /// Sets the bytes of a register without a value, in a lane.
    pub(crate) fn set_missing(&mut self, base: u32, slot: Slot, lane: u32, bytes: u8) {
        if bytes != 0 && self.missing.is_empty() {
            self.missing = vec![[0; LANES as usize]; self.registers.len()];
        }
        if let Some(missing) = self.missing.get_mut((base + slot) as usize) {
            missing[lane as usize] = bytes;
        }
    }

    /// The lanes of a group that execute a guarded instruction.
    pub(crate) fn guarded(&self, base: u32, mask: u32, guard: Option<Guard>) -> u32 {
        let Some(Guard { slot, negated }) = guard else { return mask };
        let values = &self.registers[(base + slot) as usize];
        let bit = |lane: u32| u32::from((values[lane as usize] != 0) != negated) << lane;
        mask & (0..LANES).map(bit).fold(0, |all, bit| all | bit)
    }

    /// Chooses the group that goes on: the one with the most calls, and of these the one at the first instruction, so that
    /// groups come together; but another one in some of the turns, because it may wait for that one. Groups that
    /// are patient wait for each other at their junctions.
    pub(crate) fn pick(&self, patient: bool) -> Option<usize> {
        if self.groups.len() == 1 {
            return self.is_ready().then_some(0);
        }
        let ready = || (0..self.groups.len()).filter(|&g| self.groups[g].state == State::Ready);
        if patient {
            return (0..self.groups.len())
                .find(|&g| self.groups[g].state == State::Ready && !self.groups[g].is_held());
        }
        if self.turns.is_multiple_of(8) {
            let count = ready().count().max(1);
            return ready().nth((self.turns / 8) as usize % count);
        }
        ready().min_by_key(|&g| {
            let group = &self.groups[g];
            (usize::MAX - group.calls.len(), group.place)
        })
    }

    /// Takes lanes out of a group into a group of their own, which stands at `place`; nothing where it has no other lanes.
    pub(crate) fn split(&mut self, group: usize, mask: u32, place: u32) {
        let old = &mut self.groups[group];
        if mask == 0 || mask == old.lanes {
            if mask != 0 {
                old.place = place;
            }
            return;
        }
        old.lanes &= !mask;
        let new = LaneGroup { lanes: mask, place, state: State::Ready, ..old.clone() };
        self.groups.push(new);
    }

    /// Joins a group with another ready one that stands where it stands. False: there is none.
    pub(crate) fn join(&mut self, group: usize) -> bool {
        let here = &self.groups[group];
        if here.state != State::Ready || here.lanes == 0 {
            return false;
        }
        let same = |other: &LaneGroup| {
            other.place == here.place
                && other.state == State::Ready
                && other.calls == here.calls
                && other.junctions == here.junctions
        };
        let Some(other) = (0..self.groups.len()).find(|&g| g != group && same(&self.groups[g]))
        else {
            return false;
        };
        self.groups[group].lanes |= self.groups[other].lanes;
        self.groups.remove(other);
        true
    }
}
