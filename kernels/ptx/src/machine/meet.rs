//! Threads that wait for each other: barriers of a block, and exchanges between the lanes of a warp.

use super::fault::FaultKind;
use super::image::lanes;
use super::warp::State;
use super::{Failed, Machine};
use crate::memory::{LANES, Release, Thread, reduced};
use crate::program::{
    Barrier, CollectMode, Operand, Operation, ReduceOp, Scope, Shuffle, ShuffleMode, Slot, VoteMode,
};

/// A barrier of a block that threads have come to.
#[derive(Debug)]
pub(crate) struct Arrivals {
    /// The number of the barrier.
    pub(crate) id: u64,
    /// The number of threads that are to come; none for all of the block.
    pub(crate) count: Option<u64>,
    /// The lanes of each warp that wait, with its number.
    waiting: Vec<(usize, u32)>,
    /// The lanes of each warp that have come and do not wait.
    passed: Vec<(usize, u32)>,
    /// Their knowledge when they came.
    releases: Vec<Release>,
    /// The truth values of a reduction: all, any, and how many.
    all: bool,
    any: bool,
    true_values: u64,
}

/// The kind of an exchange, which all lanes of it have in common.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Exchange {
    Sync,
    Shuffle(ShuffleMode),
    Vote(VoteMode),
    Collect(CollectMode),
}

impl Machine<'_> {
    /// Lets a group come to a barrier. Returns whether it waits.
    pub(super) fn barrier(
        &mut self,
        warp: usize,
        group: usize,
        barrier: &Barrier,
    ) -> Result<bool, Failed> {
        self.counters_of(warp).barriers += 1;
        let at = &self.warps[warp].groups[group];
        let mask = at.lanes;
        let base = self.image.frames[at.frame].registers;
        let lane = mask.trailing_zeros();
        let value = |operand| self.warps[warp].value(base, operand, lane);
        let (id, count) = (value(barrier.id), barrier.count.map(value));
        let block = self.warps[warp].block;
        let barriers = &mut self.blocks[block].barriers;
        let at = barriers.iter().position(|arrivals| arrivals.id == id).unwrap_or_else(|| {
            barriers.push(Arrivals {
                id,
                count,
                waiting: Vec::new(),
                passed: Vec::new(),
                releases: Vec::new(),
                all: true,
                any: false,
                true_values: 0,
            });
            barriers.len() - 1
        });
        let arrivals = &mut barriers[at];
        let whole = count.is_none_or(|count| count > 0 && count.is_multiple_of(LANES.into()));
        if arrivals.count != count || !whole {
            let before = arrivals.count;
            return Err((FaultKind::BarrierCount { barrier: id, count, before }, mask));
        }
        if let Some((_, _, from, negated)) = barrier.reduction {
            for lane in lanes(mask) {
                let value = (self.warps[warp].value(base, from, lane) != 0) != negated;
                arrivals.all &= value;
                arrivals.any |= value;
                arrivals.true_values += u64::from(value);
            }
        }
        let come = if barrier.waits { &mut arrivals.waiting } else { &mut arrivals.passed };
        match come.iter_mut().find(|(number, _)| *number == warp) {
            Some((_, lanes)) => *lanes |= mask,
            None => come.push((warp, mask)),
        }
        if barrier.waits {
            self.warps[warp].groups[group].state = State::Barrier(id);
        } else {
            for lane in lanes(mask) {
                let thread = self.warps[warp].first + lane;
                let release = self.memory.clocks.release(thread, Scope::Cta);
                arrivals.releases.push(release);
            }
            self.warps[warp].groups[group].place += 1;
        }
        self.complete_barriers(block);
        Ok(true)
    }

    /// Lets the threads of a block go on that wait at a barrier to which all have come.
    pub(super) fn complete_barriers(&mut self, block: usize) {
        let warps = self.blocks[block].warps.clone();
        let mut at = 0;
        while at < self.blocks[block].barriers.len() {
            let arrivals = &self.blocks[block].barriers[at];
            // A warp has come when all its lanes have that have not ended.
            let has_come = |&&warp: &&usize| {
                let of = |list: &[(usize, u32)]| {
                    list.iter().find(|(number, _)| *number == warp).map_or(0, |(_, lanes)| *lanes)
                };
                let come = of(&arrivals.waiting) | of(&arrivals.passed);
                come != 0 && self.warps[warp].live & !come == 0
            };
            let come = warps.iter().filter(has_come).count() as u64 * u64::from(LANES);
            let live = warps.iter().filter(|&&warp| self.warps[warp].live != 0).count() as u64;
            if come >= arrivals.count.unwrap_or(live * u64::from(LANES)) {
                let arrivals = self.blocks[block].barriers.remove(at);
                self.complete(&arrivals);
            } else {
                at += 1;
            }
        }
    }

    fn complete(&mut self, arrivals: &Arrivals) {
        self.progress();
        let threads: Vec<Thread> = arrivals
            .waiting
            .iter()
            .flat_map(|&(warp, mask)| lanes(mask).map(move |lane| (warp, lane)))
            .map(|(warp, lane)| self.warps[warp].first + lane)
            .collect();
        self.memory.clocks.meet(&threads);
        if !arrivals.releases.is_empty() {
            for &thread in &threads {
                self.memory.clocks.acquire(thread, Scope::Cta, &arrivals.releases);
            }
        }
        for &(number, _) in &arrivals.waiting {
            let warp = &mut self.warps[number];
            for group in 0..warp.groups.len() {
                let at = &mut warp.groups[group];
                if at.state != State::Barrier(arrivals.id) {
                    continue;
                }
                at.state = State::Ready;
                let instruction = self.image.code[at.place as usize];
                at.place += 1;
                let (mask, base) = (at.lanes, self.image.frames[at.frame].registers);
                let Operation::Barrier(barrier) = &instruction.operation else { continue };
                if let Some((op, to, ..)) = barrier.reduction {
                    let value = match op {
                        ReduceOp::And => arrivals.all.into(),
                        ReduceOp::Or => arrivals.any.into(),
                        _ => arrivals.true_values,
                    };
                    warp.set_all(base, to, mask, &[value; LANES as usize]);
                }
            }
            (0..warp.groups.len()).rev().for_each(|group| {
                if group < warp.groups.len() {
                    warp.join(group);
                }
            });
        }
    }

    /// Lets a group take part in a shuffle, a vote or a barrier of a warp. Returns whether groups have changed.
    pub(super) fn exchange(&mut self, number: usize, group: usize) -> Result<bool, Failed> {
        self.counters_of(number).warp_exchanges += 1;
        let (kind, masks) = self.exchange_of(number, group);
        let warp = &mut self.warps[number];
        let first = warp.groups[group].lanes.trailing_zeros();
        let mask = masks[first as usize] as u32;
        let agree = lanes(warp.groups[group].lanes).filter(|&l| masks[l as usize] as u32 == mask);
        let agree = agree.fold(0, |all, lane| all | 1 << lane);
        let (all, place) = (warp.groups[group].lanes, warp.groups[group].place);
        if agree != all {
            warp.split(group, all & !agree, place);
        }
        let missing = mask & !warp.live | agree & !mask;
        if missing != 0 {
            return Err((FaultKind::Lanes { mask, missing }, agree));
        }
        warp.groups[group].state = State::Lanes(mask);
        let takes_part = |machine: &Self, group: usize| {
            machine.warps[number].groups[group].state == State::Lanes(mask)
                && machine.exchange_of(number, group).0 == kind
        };
        let groups = (0..self.warps[number].groups.len()).filter(|&g| takes_part(self, g));
        let groups: Vec<usize> = groups.collect();
        let come = groups.iter().fold(0, |all, &g| all | self.warps[number].groups[g].lanes);
        if come != mask {
            return Ok(true);
        }
        self.finish_exchange(number, &groups, kind, mask)?;
        if agree == all && groups.len() == 1 {
            return Ok(false);
        }
        let warp = &mut self.warps[number];
        (0..groups.len()).for_each(|_| {
            if group < warp.groups.len() {
                warp.join(group);
            }
        });
        Ok(true)
    }

    /// The kind of exchange at which a group stands, and the mask of each lane.
    fn exchange_of(&self, warp: usize, group: usize) -> (Exchange, [u64; LANES as usize]) {
        let at = &self.warps[warp].groups[group];
        let base = self.image.frames[at.frame].registers;
        let (kind, mask) = match &self.image.code[at.place as usize].operation {
            Operation::Shuffle(shuffle) => (Exchange::Shuffle(shuffle.mode), shuffle.mask),
            Operation::Vote(vote) => (Exchange::Vote(vote.mode), vote.mask),
            Operation::Collect(collect) => (Exchange::Collect(collect.mode), collect.mask),
            Operation::WarpSync { mask } => (Exchange::Sync, *mask),
            _ => (Exchange::Sync, Operand::Value(0)),
        };
        (kind, self.warps[warp].values(base, mask))
    }

    fn finish_exchange(
        &mut self,
        number: usize,
        groups: &[usize],
        kind: Exchange,
        mask: u32,
    ) -> Result<(), Failed> {
        let first = self.warps[number].first;
        if kind == Exchange::Sync {
            let threads: Vec<Thread> = lanes(mask).map(|lane| first + lane).collect();
            self.memory.clocks.meet(&threads);
        }
        let mut given = [0; LANES as usize];
        let mut missing = [0; LANES as usize];
        let warp = &mut self.warps[number];
        for &group in groups {
            let at = &warp.groups[group];
            let base = self.image.frames[at.frame].registers;
            let (from, negated) = match &self.image.code[at.place as usize].operation {
                Operation::Shuffle(shuffle) => (shuffle.from, false),
                Operation::Vote(vote) => (vote.from, vote.negated),
                Operation::Collect(collect) => (collect.from, false),
                _ => continue,
            };
            for lane in lanes(at.lanes) {
                given[lane as usize] = warp.value(base, from, lane) ^ u64::from(negated);
                missing[lane as usize] = warp.missing(base, from)[lane as usize] & 0xf;
            }
        }
        for &group in groups {
            let at = &mut warp.groups[group];
            at.state = State::Ready;
            let instruction = self.image.code[at.place as usize];
            at.place += 1;
            let (lanes_here, base) = (at.lanes, self.image.frames[at.frame].registers);
            match &instruction.operation {
                Operation::Shuffle(shuffle) => {
                    for lane in lanes(lanes_here) {
                        let distance = warp.value(base, shuffle.lane, lane) as u32;
                        let clamp = warp.value(base, shuffle.clamp, lane) as u32;
                        let (from, valid) = source_of(shuffle.mode, lane, distance, clamp);
                        if mask >> from & 1 == 0 {
                            return Err((FaultKind::Lanes { mask, missing: 1 << from }, 1 << lane));
                        }
                        let value = given[from as usize] & u64::from(u32::MAX);
                        results(warp, base, lane, shuffle, (value, valid));
                        warp.set_missing(base, shuffle.to, lane, missing[from as usize]);
                    }
                }
                Operation::Vote(vote) => {
                    let ballot = lanes(mask).filter(|&lane| given[lane as usize] != 0);
                    let ballot: u32 = ballot.fold(0, |all, lane| all | 1 << lane);
                    let value = match vote.mode {
                        VoteMode::All => (ballot == mask).into(),
                        VoteMode::Any => (ballot != 0).into(),
                        VoteMode::Uni => (ballot == 0 || ballot == mask).into(),
                        VoteMode::Ballot => ballot.into(),
                    };
                    warp.set_all(base, vote.to, lanes_here, &[value; LANES as usize]);
                }
                Operation::Collect(collect) => {
                    for lane in lanes(lanes_here) {
                        let (value, is) = collected(collect.mode, lane, mask, &given);
                        for (slot, value) in [(collect.to, value), (collect.is, is.into())] {
                            if let Some(slot) = slot {
                                warp.set(base, slot, lane, value);
                            }
                        }
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }
}

fn results(
    warp: &mut super::warp::Warp,
    base: u32,
    lane: u32,
    shuffle: &Shuffle,
    (value, valid): (u64, bool),
) {
    let set: [(Option<Slot>, u64); 2] = [(Some(shuffle.to), value), (shuffle.valid, valid.into())];
    for (slot, value) in set {
        if let Some(slot) = slot {
            warp.set(base, slot, lane, value);
        }
    }
}

/// The result of a lane, and the truth value with it.
fn collected(mode: CollectMode, lane: u32, mask: u32, given: &[u64]) -> (u64, bool) {
    let cut = |value: u64, bits: u8| value & (u64::MAX >> (64 - bits));
    let of = |lane: u32| given[lane as usize];
    let with = |bits: u8| {
        let same = lanes(mask).filter(|&other| cut(of(other), bits) == cut(of(lane), bits));
        same.fold(0, |all, lane| all | 1 << lane)
    };
    match mode {
        CollectMode::Any(bits) => (u64::from(with(bits)), true),
        CollectMode::All(bits) => {
            let all = with(bits) == mask;
            (if all { mask.into() } else { 0 }, all)
        }
        CollectMode::Reduce(op, ty) => {
            let values = lanes(mask).map(of);
            let reduce = |one, other| reduced(op, ty, one, [other, 0]).unwrap_or(one);
            (values.reduce(reduce).map_or(0, |value| cut(value, ty.bits() as u8)), true)
        }
        CollectMode::Elect => {
            let first = mask.trailing_zeros();
            (first.into(), first == lane)
        }
    }
}

/// The lane whose value a lane takes in a shuffle, and whether it is in range.
fn source_of(mode: ShuffleMode, lane: u32, distance: u32, clamp: u32) -> (u32, bool) {
    let (bound, segment) = (clamp & 31, clamp >> 8 & 31);
    let distance = distance & 31;
    let most = lane & segment | bound & !segment;
    let least = lane & segment;
    let (from, valid) = match mode {
        ShuffleMode::Up => {
            let from = lane.wrapping_sub(distance);
            (from, from as i32 >= most as i32)
        }
        ShuffleMode::Down => (lane + distance, lane + distance <= most),
        ShuffleMode::Bfly => (lane ^ distance, lane ^ distance <= most),
        ShuffleMode::Idx => {
            let from = least | distance & !segment;
            (from, from <= most)
        }
    };
    (if valid { from } else { lane }, valid)
}
