//! The execution of instructions.

use super::fault::FaultKind;
use super::image::lanes;
use super::warp::{Source, State};
use super::{Failed, Machine};
use crate::arithmetic::evaluate;
use crate::memory::{LANES, generic, rank_of_shared, shared_of, space_of};
use crate::program::{Arithmetic, ArithmeticOp, Call, Instruction, LaneMask, Operation, Special};

impl Machine<'_> {
    /// Executes the instruction at which a group stands. Returns whether the groups of the warp, or their states, are
    /// others now.
    pub(super) fn execute(
        &mut self,
        warp: usize,
        group: usize,
        instruction: &Instruction,
    ) -> Result<bool, Failed> {
        let at = &self.warps[warp].groups[group];
        let (all, place, frame) = (at.lanes, at.place, at.frame);
        let base = self.image.frames[frame].registers;
        let mask = self.warps[warp].guarded(base, all, instruction.guard);
        self.counters_of(warp).instructions += 1;
        self.counters_of(warp).lane_instructions += u64::from(mask.count_ones());
        let operation = &instruction.operation;
        let parts = matches!(
            operation,
            Operation::Call(_)
                | Operation::Return
                | Operation::Exit
                | Operation::Barrier(_)
                | Operation::Shuffle(_)
                | Operation::Vote(_)
                | Operation::Collect(_)
                | Operation::WarpSync { .. }
                | Operation::WaitForLaunches
                | Operation::ClusterWait { .. }
        );
        if self.warps[warp].may_miss() {
            self.refuse_missing(warp, (base, all, mask), instruction)?;
        }
        let branches = matches!(operation, Operation::Branch { .. });
        if mask != 0 && mask != all && (parts || branches) {
            self.will_meet(warp, group, place);
        }
        if mask == 0 || parts && mask != all {
            self.warps[warp].split(group, all & !mask, place + 1);
            if mask == 0 {
                return Ok(false);
            }
        }
        match operation {
            Operation::Branch { target, .. } => {
                self.counters_of(warp).control += 1;
                let target = self.image.frames[frame].first + target;
                self.warps[warp].groups[group].place = place + 1;
                self.warps[warp].split(group, mask, target);
                return Ok(mask != all);
            }
            Operation::Call(call) => {
                self.call(warp, group, call);
                return Ok(mask != all);
            }
            Operation::Return | Operation::Exit => {
                self.counters_of(warp).control += 1;
                let calls = &self.warps[warp].groups[group].calls;
                if let (Operation::Return, false) = (operation, calls.is_empty()) {
                    self.end_call(warp, group);
                    return Ok(true);
                }
                self.end(warp, group)?;
                return Ok(true);
            }
            Operation::Barrier(barrier) => return self.barrier(warp, group, barrier),
            Operation::Shuffle(_)
            | Operation::Vote(_)
            | Operation::Collect(_)
            | Operation::WarpSync { .. } => {
                return self.exchange(warp, group);
            }
            Operation::WaitForLaunches => {
                if self.wait_for_launches(warp, group) {
                    return Ok(true);
                }
            }
            Operation::ClusterArrive { releases } => {
                self.arrive_in_cluster(warp, mask, *releases);
            }
            Operation::ClusterWait { acquires } => {
                if self.wait_in_cluster(warp, group, *acquires) {
                    return Ok(true);
                }
            }
            Operation::Multicast { op, access, from, to } => {
                self.multicast(warp, (base, mask, place), (*op, access), from, to)?;
            }
            Operation::LaunchDependents => self.launch_dependents(warp),
            Operation::Nothing | Operation::Pause => {}
            Operation::ActiveMask { to } => {
                self.warps[warp].set_all(base, *to, mask, &[mask.into(); LANES as usize]);
            }
            Operation::Assert { texts, line } => {
                return Err((self.assertion(warp, (mask, frame), *texts, *line), mask));
            }
            Operation::Trap => return Err((FaultKind::Trap, mask)),
            Operation::Load { access, to } => self.load(warp, (base, mask, place), access, to)?,
            Operation::Store { access, from } => {
                self.store(warp, (base, mask, place), access, from)?;
            }
            Operation::Reduce { access, op, from, returns, to } => {
                let atomic = (*op, *from, *returns, *to);
                self.reduce(warp, (base, mask, place), access, atomic)?;
            }
            Operation::Fence(fence) => self.fence(warp, mask, *fence),
            Operation::FenceAliases => self.fence_aliases(warp, mask),
            _ => {
                let at = &self.warps[warp];
                let may_miss = at.may_miss();
                let missing =
                    if may_miss { at.missing_results(base, operation) } else { Vec::new() };
                self.compute(warp, (base, mask, frame), operation);
                for (slot, missing) in missing {
                    for lane in lanes(mask) {
                        self.warps[warp].set_missing(base, slot, lane, missing[lane as usize]);
                    }
                }
            }
        }
        self.warps[warp].groups[group].place = place + 1;
        Ok(false)
    }

    /// Executes an instruction that only reads and writes registers.
    fn compute(
        &mut self,
        number: usize,
        (base, mask, frame): (u32, u32, usize),
        operation: &Operation,
    ) {
        self.counters_of(number).arithmetic += 1;
        let rank = self.rank(number);
        let warp = &mut self.warps[number];
        match operation {
            Operation::Arithmetic(arithmetic) => {
                let Arithmetic { op, to, from, negated } = arithmetic;
                let sources =
                    [0, 1, 2, 3].map(|nth| warp.source(base, from[nth], negated >> nth & 1 == 1));
                let results = evaluate_lanes(*op, &sources, mask);
                warp.set_all(base, *to, mask, &results);
            }
            Operation::Move { to, from } => {
                let values = warp.values(base, *from);
                warp.set_all(base, *to, mask, &values);
            }
            Operation::AddressOf { to, symbol } => {
                let variables = self.launches[rank].variables;
                let address = self.image.address(frame, *symbol, variables);
                warp.set_all(base, *to, mask, &[address; LANES as usize]);
            }
            Operation::ToGeneric { to, from, space } => {
                let values = warp.values(base, *from).map(|at| at.wrapping_add(generic(*space)));
                warp.set_all(base, *to, mask, &values);
            }
            Operation::FromGeneric { to, from, space } => {
                let values = warp.values(base, *from).map(|at| at.wrapping_sub(generic(*space)));
                warp.set_all(base, *to, mask, &values);
            }
            Operation::Unpack { to, from, bits } => {
                let values = warp.values(base, *from);
                let low = u64::MAX >> (64 - bits);
                for (piece, slot) in (0..).zip(to) {
                    let Some(slot) = slot else { continue };
                    warp.set_all(
                        base,
                        *slot,
                        mask,
                        &values.map(|value| value >> (piece * bits) & low),
                    );
                }
            }
            Operation::Join { to, from, bits } => {
                let low = u64::MAX >> (64 - bits);
                let mut values = [0; LANES as usize];
                for (piece, &source) in (0..).zip(from) {
                    let part = warp.values(base, source);
                    let both = values.iter_mut().zip(part);
                    both.for_each(|(value, part)| *value |= (part & low) << (piece * bits));
                }
                warp.set_all(base, *to, mask, &values);
            }
            Operation::MapShared { to, from, rank } => {
                let ranks = warp.values(base, *rank);
                let mut values = warp.values(base, *from);
                for (value, rank) in values.iter_mut().zip(ranks) {
                    *value = shared_of(*value, rank as u32);
                }
                warp.set_all(base, *to, mask, &values);
            }
            Operation::RankOfShared { to, from } => {
                let own = self.blocks[warp.block].in_rank % self.launches[rank].cluster[0];
                let values = warp.values(base, *from);
                let values = values.map(|at| rank_of_shared(at).unwrap_or(own).into());
                warp.set_all(base, *to, mask, &values);
            }
            Operation::IsSpace { to, from, space } => {
                let is = |at: u64| u64::from(space_of(at).0 == *space);
                let values = warp.values(base, *from).map(is);
                warp.set_all(base, *to, mask, &values);
            }
            Operation::Special { to, register } => {
                let mut values = [0; LANES as usize];
                for lane in lanes(mask) {
                    values[lane as usize] = self.special(number, lane, *register);
                }
                self.warps[number].set_all(base, *to, mask, &values);
            }
            _ => {}
        }
    }

    fn special(&self, warp: usize, lane: u32, register: Special) -> u64 {
        let block = &self.blocks[self.warps[warp].block];
        let launch = &self.launches[block.rank as usize];
        let axis = |index: u32, [x, y, _]: [u32; 3], axis: u8| match axis {
            0 => index % x,
            1 => index / x % y,
            _ => index / x / y,
        };
        let time = self.limits.start_ns.wrapping_add(self.turns.wrapping_mul(self.limits.turn_ns));
        let cluster = launch.cluster;
        let ctaid = |a: u8| axis(block.in_rank, launch.grid, a);
        let in_cluster = |a: u8| ctaid(a) % cluster[a as usize];
        match register {
            Special::Tid(a) => {
                axis(self.warps[warp].in_block * LANES + lane, launch.block, a).into()
            }
            Special::Ntid(a) => launch.block[a as usize].into(),
            Special::Ctaid(a) => ctaid(a).into(),
            Special::Nctaid(a) => launch.grid[a as usize].into(),
            Special::LaneId => lane.into(),
            Special::GlobalTimer => time,
            Special::TimerLow => time & u64::from(u32::MAX),
            Special::TimerHigh => time >> 32,
            Special::WarpId => self.warps[warp].in_block.into(),
            Special::WarpCount => block.warps.len() as u64,
            Special::GridId => block.rank.into(),
            Special::ClusterId(a) => (ctaid(a) / cluster[a as usize]).into(),
            Special::ClusterCount(a) => (launch.grid[a as usize] / cluster[a as usize]).into(),
            Special::InCluster(a) => in_cluster(a).into(),
            Special::ClusterShape(a) => cluster[a as usize].into(),
            Special::ClusterRank => in_cluster(0).into(),
            Special::ClusterSize => cluster[0].into(),
            Special::LaneMask(mask) => {
                let own = 1u32 << lane;
                let below = own - 1;
                let bits = match mask {
                    LaneMask::Equal => own,
                    LaneMask::Less => below,
                    LaneMask::LessOrEqual => below | own,
                    LaneMask::Greater => !(below | own),
                    LaneMask::GreaterOrEqual => !below,
                };
                bits.into()
            }
        }
    }

    /// Notes where the lanes of a group meet again that an instruction takes apart.
    fn will_meet(&mut self, warp: usize, group: usize, place: u32) {
        let Some(&junction) = self.junctions.get(place as usize) else { return };
        let at = &self.warps[warp].groups[group];
        let outside = at.calls.last().map(|(_, call)| (call + 1, at.calls.len() - 1));
        let here = junction.map(|place| (place, at.calls.len()));
        if let Some((place, calls)) = here.or(outside) {
            self.warps[warp].take_apart_until(group, place, calls);
        }
    }

    fn call(&mut self, warp: usize, group: usize, call: &Call) {
        self.counters_of(warp).control += 1;
        let first = self.warps[warp].first;
        let group = &mut self.warps[warp].groups[group];
        let called = self.image.called(group.frame, call.function);
        let (from, to) = (&self.image.frames[group.frame], &self.image.frames[called]);
        for thread in lanes(group.lanes).map(|lane| first + lane) {
            self.memory.clear_local(thread, to.local, to.function.local_bytes.into());
            self.memory.clear_param(thread, to.param, to.function.parameter_bytes.into());
            for (parameter, &argument) in to.function.parameters.iter().zip(&call.arguments) {
                let source = from.param + u64::from(argument);
                let target = to.param + u64::from(parameter.offset);
                self.memory.copy_param(thread, source, target, parameter.bytes.into());
            }
        }
        group.calls.push((group.frame, group.place));
        (group.frame, group.place) = (called, to.first);
    }

    fn end_call(&mut self, warp: usize, group: usize) {
        let first = self.warps[warp].first;
        let group = &mut self.warps[warp].groups[group];
        let Some((caller, place)) = group.calls.pop() else { return };
        let (from, to) = (&self.image.frames[group.frame], &self.image.frames[caller]);
        if let Operation::Call(call) = &self.image.code[place as usize].operation {
            for thread in lanes(group.lanes).map(|lane| first + lane) {
                for (returned, &result) in from.function.returns.iter().zip(&call.returns) {
                    let source = from.param + u64::from(returned.offset);
                    let target = to.param + u64::from(result);
                    self.memory.copy_param(thread, source, target, returned.bytes.into());
                }
            }
        }
        (group.frame, group.place) = (caller, place + 1);
    }

    /// The error of an assertion that fails, by the parameters of the call of its function.
    fn assertion(
        &self,
        warp: usize,
        (mask, frame): (u32, usize),
        texts: [u32; 3],
        line: u32,
    ) -> FaultKind {
        let thread = self.warps[warp].first + mask.trailing_zeros();
        let param = self.image.frames[frame].param;
        let value = |offset: u32, size| self.memory.param(thread, param + u64::from(offset), size);
        let rank = self.rank(warp) as u32;
        let [condition, file, function] =
            texts.map(|offset| self.memory.text(rank, value(offset, 8)));
        FaultKind::Assert { condition, place: (file, value(line, 4) as u32), function }
    }

    /// Ends the threads of a group.
    fn end(&mut self, warp: usize, group: usize) -> Result<(), Failed> {
        let ended = self.warps[warp].groups.remove(group).lanes;
        let block = self.warps[warp].block;
        self.warps[warp].live &= !ended;
        self.progress();
        if self.warps[warp].live == 0 {
            self.complete_barriers(block);
            self.complete_cluster(self.blocks[block].cluster);
            self.end_warp(warp);
            return Ok(());
        }
        for waiting in &self.warps[warp].groups {
            if let State::Lanes(mask) = waiting.state
                && mask & ended != 0
            {
                return Err((FaultKind::Lanes { mask, missing: mask & ended }, waiting.lanes));
            }
        }
        self.complete_barriers(block);
        self.complete_cluster(self.blocks[block].cluster);
        Ok(())
    }
}

/// Returns the result of an operation in each lane of `mask`.
fn evaluate_lanes(op: ArithmeticOp, sources: &[Source<'_>; 4], mask: u32) -> [u64; LANES as usize] {
    use ArithmeticOp::{Add, Logic, Mad, MulWide, Setp, Shl, Shr};
    // A loop for each of the most frequent operations, which decides once what all lanes do.
    match op {
        Add(ty) => in_lanes(sources, mask, |from| evaluate(Add(ty), from)),
        Mad(ty) => in_lanes(sources, mask, |from| evaluate(Mad(ty), from)),
        MulWide(ty) => in_lanes(sources, mask, |from| evaluate(MulWide(ty), from)),
        Shl(ty) => in_lanes(sources, mask, |from| evaluate(Shl(ty), from)),
        Shr(ty) => in_lanes(sources, mask, |from| evaluate(Shr(ty), from)),
        Logic(logic, ty) => in_lanes(sources, mask, |from| evaluate(Logic(logic, ty), from)),
        Setp { .. } => in_lanes(sources, mask, |from| evaluate(op, from)),
        _ => in_lanes(sources, mask, |from| evaluate(op, from)),
    }
}

fn in_lanes(
    sources: &[Source<'_>; 4],
    mask: u32,
    result: impl Fn([u64; 4]) -> u64,
) -> [u64; LANES as usize] {
    let [a, b, c, d] = sources;
    let mut results = [0; LANES as usize];
    for (lane, to) in results.iter_mut().enumerate() {
        if mask >> lane & 1 == 1 {
            *to = result([a.at(lane), b.at(lane), c.at(lane), d.at(lane)]);
        }
    }
    results
}
