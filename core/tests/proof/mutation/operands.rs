//! Moves of the wrong data, to or from the wrong place.

use std::ops::RangeInclusive;

use roundelay_core::ids::{RankId, RegionId};
use roundelay_core::rational::Rat;
use roundelay_core::schedule::{Buffer, Op, OpKind, Operand, Region, Schedule};

use super::each;

pub(super) fn reduce_to_copy(schedule: &Schedule) -> Vec<Schedule> {
    each(
        schedule,
        |op| op.srcs == 2,
        |mutant, at| {
            mutant.ops[at].arg += 1;
            mutant.ops[at].srcs = 1;
        },
    )
}

pub(super) fn copy_to_reduce(schedule: &Schedule) -> Vec<Schedule> {
    each(schedule, |op| (op.srcs, op.dsts) == (1, 1), fold_into)
}

pub(super) fn swap_sources(schedule: &Schedule) -> Vec<Schedule> {
    each(
        schedule,
        |op| op.srcs > 1,
        |mutant, at| {
            let first = mutant.ops[at].arg as usize;
            mutant.operands.swap(first, first + 1);
        },
    )
}

/// Sums of several sources round after each source or once, and scratch keeps narrow floats as f32 or not.
pub(super) fn round_otherwise(schedule: &Schedule) -> Vec<Schedule> {
    let toggle = |mutant: &mut Schedule, at: usize| mutant.ops[at].chain = !mutant.ops[at].chain;
    let mut all = each(schedule, |op| op.kind == OpKind::Move && op.srcs > 2, toggle);
    all.extend((0..schedule.scratch.len()).map(|at| {
        let mut mutant = schedule.clone();
        mutant.scratch[at].wide = !mutant.scratch[at].wide;
        mutant
    }));
    all
}

fn fold_into(schedule: &mut Schedule, at: usize) {
    let op = schedule.ops[at];
    let (src, dst) = (schedule.srcs(&op)[0], schedule.dsts(&op)[0]);
    let op = &mut schedule.ops[at];
    (op.arg, op.srcs) = (schedule.operands.len() as u32, 2);
    schedule.operands.extend([dst, src, dst]);
}

/// Swaps the regions of two consecutive moves of a stream.
pub(super) fn swap_slices(schedule: &Schedule) -> Vec<Schedule> {
    let pairs = schedule.streams.iter().flat_map(|stream| {
        let ops = stream.first.index()..stream.first.index() + stream.len as usize;
        let moves: Vec<_> = ops.filter(|at| schedule.ops[*at].kind == OpKind::Move).collect();
        moves.windows(2).map(|pair| (pair[0], pair[1])).collect::<Vec<_>>()
    });
    let swap = |(a, b): (usize, usize)| {
        let (a, b) = (schedule.ops[a], schedule.ops[b]);
        let operands = a.operands();
        if (a.srcs, a.dsts) != (b.srcs, b.dsts) {
            return None;
        }
        let mut mutant = schedule.clone();
        for k in 0..operands {
            let (a, b) = (a.arg as usize + k, b.arg as usize + k);
            mutant.operands[a].region = schedule.operands[b].region;
            mutant.operands[b].region = schedule.operands[a].region;
        }
        (mutant.operands != schedule.operands).then_some(mutant)
    };
    pairs.filter_map(swap).collect()
}

pub(super) fn shift_one(schedule: &Schedule) -> Vec<Schedule> {
    operands(schedule, |s, op, k| shift(s, op, k..=k))
}

pub(super) fn shift_all(schedule: &Schedule) -> Vec<Schedule> {
    operands(schedule, |s, op, k| k == 0 && shift(s, op, 0..=op.operands() - 1))
}

/// A move forgets the second half of its regions.
pub(super) fn halve_all(schedule: &Schedule) -> Vec<Schedule> {
    operands(schedule, |s, op, k| {
        for k in 0..op.operands() {
            let operand = s.operands[op.arg as usize + k];
            let region = *s.region(operand);
            let Some(hi) = region.lo.boundary(region.hi, 1, 2) else { return false };
            give(s, op, k, Region { hi, ..region });
        }
        k == 0
    })
}

pub(super) fn change_peer(schedule: &Schedule) -> Vec<Schedule> {
    operands(schedule, |s, op, k| {
        let operand = &mut s.operands[op.arg as usize + k];
        operand.rank = RankId((operand.rank.0 + 1) % s.nranks);
        true
    })
}

/// An operand in scratch lies in the next slot.
pub(super) fn change_slot(schedule: &Schedule) -> Vec<Schedule> {
    operands(schedule, |s, op, k| {
        let region = *s.region(s.operands[op.arg as usize + k]);
        let Buffer::Scratch(id) = region.buffer else { return false };
        let slots = s.scratch[id.index()].slots;
        give(s, op, k, Region { slot: (region.slot + 1) % slots, ..region });
        slots > 1
    })
}

/// Swaps the slots of two consecutive pushes of a stream into scratch of one peer.
pub(super) fn swap_slots(schedule: &Schedule) -> Vec<Schedule> {
    let pushed = |rank, at: usize| {
        let op = schedule.ops[at];
        let operands = op.arg as usize..op.arg as usize + op.operands();
        let mut dsts = operands.skip(op.srcs.into()).map(|k| (k, schedule.operands[k]));
        let far = |o: &Operand| matches!(schedule.region(*o).buffer, Buffer::Scratch(_));
        dsts.find(|(_, o)| o.rank != rank && far(o)).map(|(k, o)| (op, k - op.arg as usize, o))
    };
    let pairs = schedule.streams.iter().flat_map(|stream| {
        let ops = stream.first.index()..stream.first.index() + stream.len as usize;
        let moves = ops.filter(|at| schedule.ops[*at].kind == OpKind::Move);
        let pushes: Vec<_> = moves.filter_map(|at| pushed(stream.rank, at)).collect();
        pushes.windows(2).map(|pair| (pair[0], pair[1])).collect::<Vec<_>>()
    });
    let swap = |((a, i, first), (b, k, second)): ((Op, usize, Operand), (Op, usize, Operand))| {
        let (one, two) = (*schedule.region(first), *schedule.region(second));
        let differ = first.rank == second.rank && one.buffer == two.buffer && one.slot != two.slot;
        differ.then(|| {
            let mut mutant = schedule.clone();
            give(&mut mutant, a, i, Region { slot: two.slot, ..one });
            give(&mut mutant, b, k, Region { slot: one.slot, ..two });
            mutant
        })
    };
    pairs.filter_map(swap).collect()
}

/// Operand `k` of `op` gets a region of its own.
fn give(schedule: &mut Schedule, op: Op, k: usize, region: Region) {
    schedule.regions.push(region);
    let id = RegionId(schedule.regions.len() as u32 - 1);
    schedule.operands[op.arg as usize + k].region = id;
}

/// A mutant for each operand of each move for which `change` does something.
fn operands(
    schedule: &Schedule,
    change: impl Fn(&mut Schedule, Op, usize) -> bool,
) -> Vec<Schedule> {
    let moves = schedule.ops.iter().filter(|op| op.kind == OpKind::Move);
    let all = moves.flat_map(|op| (0..op.operands()).map(move |k| (*op, k)));
    all.filter_map(|(op, k)| {
        let mut mutant = schedule.clone();
        change(&mut mutant, op, k).then_some(mutant)
    })
    .collect()
}

/// Moves operands to the next block of equal width, or to the block before; scratch stays unchanged.
fn shift(schedule: &mut Schedule, op: Op, which: RangeInclusive<usize>) -> bool {
    let mut shifted = false;
    for k in which {
        let operand = schedule.operands[op.arg as usize + k];
        let region = *schedule.region(operand);
        if matches!(region.buffer, Buffer::Scratch(_)) {
            continue;
        }
        let Some(next) = neighbor(schedule, operand, region) else { return false };
        give(schedule, op, k, next);
        shifted = true;
    }
    shifted
}

fn neighbor(schedule: &Schedule, operand: Operand, region: Region) -> Option<Region> {
    let width = region.hi.minus(region.lo)?;
    let plus = Rat::new(
        region.hi.num() * width.den() + width.num() * region.hi.den(),
        region.hi.den() * width.den(),
    )?;
    if plus <= schedule.units(region.buffer, operand.rank) {
        return Some(Region { lo: region.hi, hi: plus, ..region });
    }
    Some(Region { lo: region.lo.minus(width)?, hi: region.lo, ..region })
}
