//! The memory that the moves of a batch read and write.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use crate::collective::Alias;
use crate::ids::RankId;
use crate::rational::Rat;
use crate::schedule::{Buffer, Op, Region, Schedule};

/// Memory whose cells have coordinates: a buffer of a rank, a slot of its scratch, or, where a call is in place, the
/// one buffer that holds its input and output.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum TouchedMemory {
    Apart(Buffer, u32),
    InPlace,
}

/// The cells that were read and written so far, of each memory of each rank.
#[derive(Default)]
pub(super) struct Touched {
    of: FxHashMap<(RankId, TouchedMemory), Cells>,
    /// Whether a move touches an input. If none does, accesses of outputs in place add nothing.
    inputs: bool,
}

#[derive(Default)]
struct Cells {
    /// The coordinate of a slot's first element. A slot that is used with two such coordinates is rounded in two
    /// ways.
    base: Option<Rat>,
    bases_differ: bool,
    read: Intervals,
    written: Intervals,
}

impl Touched {
    /// Forgets all accesses.
    pub(super) fn clear(&mut self) {
        self.of.clear();
    }

    /// Forgets all accesses, and prepares for `moves`, which come next.
    pub(super) fn begin(&mut self, schedule: &Schedule, moves: &[Op]) {
        self.clear();
        let mut operands = moves.iter().flat_map(|moved| schedule.operands_of(moved));
        self.inputs = operands.any(|operand| schedule.region(*operand).buffer == Buffer::Input);
    }

    /// Whether the move and an earlier one touch the same memory, out of place or in place, and one of them writes
    /// it.
    pub(super) fn conflicts(&self, schedule: &Schedule, moved: &Op) -> bool {
        accesses(schedule, moved, self.inputs).any(|access| {
            let Some(cells) = self.of.get(&(access.rank, access.memory)) else { return false };
            let either = access.writes || !cells.written.is_empty();
            if either && (cells.bases_differ || cells.base != Some(access.base)) {
                return true;
            }
            let overlap = |with: &Intervals| with.overlap(access.lo, access.hi);
            overlap(&cells.written) || access.writes && overlap(&cells.read)
        })
    }

    pub(super) fn insert(&mut self, schedule: &Schedule, moved: &Op) {
        for access in accesses(schedule, moved, self.inputs) {
            let cells = self.of.entry((access.rank, access.memory)).or_default();
            cells.bases_differ |= *cells.base.get_or_insert(access.base) != access.base;
            let touched = if access.writes { &mut cells.written } else { &mut cells.read };
            touched.insert(access.lo, access.hi);
        }
    }
}

/// One operand of a move in one memory.
struct Access {
    rank: RankId,
    memory: TouchedMemory,
    writes: bool,
    base: Rat,
    lo: Rat,
    hi: Rat,
}

fn accesses<'a>(
    schedule: &'a Schedule,
    moved: &'a Op,
    inputs: bool,
) -> impl Iterator<Item = Access> + 'a {
    schedule.operands_of(moved).iter().enumerate().flat_map(move |(at, operand)| {
        let (rank, region) = (operand.rank, schedule.region(*operand));
        let access = Access {
            rank,
            memory: TouchedMemory::Apart(region.buffer, region.slot),
            writes: at >= usize::from(moved.srcs),
            base: region.base,
            lo: region.lo,
            hi: region.hi,
        };
        let shared = inputs.then(|| in_place(schedule, rank, region)).flatten();
        let shared = shared.map(|(lo, hi)| Access {
            memory: TouchedMemory::InPlace,
            base: Rat::ZERO,
            lo,
            hi,
            ..access
        });
        [access].into_iter().chain(shared)
    })
}

/// Returns the bounds of a region in the one buffer that input and output share in place, if they share one.
fn in_place(schedule: &Schedule, rank: RankId, region: &Region) -> Option<(Rat, Rat)> {
    let alias = schedule.collective.alias(rank, schedule.root);
    if alias == Alias::Apart || schedule.out_of_place {
        return None;
    }
    let (input, output) = alias.starts();
    let start = match region.buffer {
        Buffer::Input => input,
        Buffer::Output => output,
        Buffer::Scratch(_) => return None,
    };
    // Where a bound is beyond 64 bits, the access counts as one of the whole buffer.
    let at = |point: Rat| point.plus(Rat::whole(start.into()));
    let all = (Rat::ZERO, Rat::whole(u64::MAX));
    Some(at(region.lo).zip(at(region.hi)).unwrap_or(all))
}

/// Disjoint intervals, by their begins.
#[derive(Default)]
struct Intervals(BTreeMap<Rat, Rat>);

impl Intervals {
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn overlap(&self, lo: Rat, hi: Rat) -> bool {
        lo < hi && self.0.range(..hi).next_back().is_some_and(|(_, end)| *end > lo)
    }

    fn insert(&mut self, mut lo: Rat, mut hi: Rat) {
        if lo == hi {
            return;
        }
        while let Some((&begin, &end)) = self.0.range(..=hi).next_back() {
            if end < lo {
                break;
            }
            self.0.remove(&begin);
            (lo, hi) = (lo.min(begin), hi.max(end));
        }
        self.0.insert(lo, hi);
    }
}
