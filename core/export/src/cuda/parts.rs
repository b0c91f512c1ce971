//! Streams of several CTAs: the places at which their parts must meet.
//!
//! Each part moves its portion of every move. Two moves of a stream with equal regions are cut alike, so a part finds
//! its own data. If regions only overlap, a part reads the data of another part, or overwrites data that another part
//! has yet to read. All parts post and await signals between ranks, so these order the statements on both sides of
//! them. A chain of signals may also order the parts of one stream, but this is not relied on.

use std::collections::{BTreeMap, BTreeSet};

use crate::loops::ir::NodeId;
use roundelay_core::collective::Alias;
use roundelay_core::ids::{OpId, RankId, ScratchId};
use roundelay_core::rational::Rat;
use roundelay_core::schedule::{Buffer, OpKind, Operand, Schedule};

/// Two moves of a stream between which its parts must meet.
struct Conflict {
    /// The latest earlier move with an access that conflicts.
    first: OpId,
    /// The later move.
    second: OpId,
}

/// Returns the moves of a form after which parts must meet. `nodes` are the statements of the schedule's ops.
pub(super) fn statements(
    schedule: &Schedule,
    nodes: &[NodeId],
    fifos: &BTreeSet<ScratchId>,
) -> BTreeSet<NodeId> {
    let moves = |at: &OpId| schedule.op(*at).kind == OpKind::Move;
    let node = |at: OpId| nodes[at.index()];
    let mut times = BTreeMap::new();
    for at in (0..schedule.ops.len() as u32).map(OpId).filter(moves) {
        *times.entry(node(at)).or_insert(0_u32) += 1;
    }
    let mut meets = BTreeSet::new();
    scan(schedule, fifos, |conflict| match conflict {
        Scanned::Move(at) => meets.contains(&node(at)).then_some(at),
        Scanned::Conflict(Conflict { first, second }) => {
            // The statement that runs least often.
            let between = (first.0..second.0).map(OpId).filter(moves);
            let at = between.min_by_key(|at| times[&node(*at)]);
            let at = at.expect("the first op of a conflict is a move");
            meets.insert(node(at));
            Some(at)
        }
    });
    meets
}

/// Returns the ops before which parts must meet, stream by stream.
pub(super) fn ops(schedule: &Schedule) -> BTreeSet<OpId> {
    let mut meets = BTreeSet::new();
    scan(schedule, &BTreeSet::new(), |conflict| match conflict {
        Scanned::Move(_) => None,
        Scanned::Conflict(Conflict { second, .. }) => {
            meets.insert(second);
            Some(OpId(second.0 - 1))
        }
    });
    meets
}

enum Scanned {
    /// The scan has passed a move.
    Move(OpId),
    /// The next move conflicts with an earlier one, so a meeting is needed before it.
    Conflict(Conflict),
}

/// Scans every stream; `meet` returns the op after which parts have met, if they have.
fn scan(
    schedule: &Schedule,
    fifos: &BTreeSet<ScratchId>,
    mut meet: impl FnMut(Scanned) -> Option<OpId>,
) {
    let views: &[bool] = if schedule.out_of_place || !schedule.collective.has_in_place() {
        &[false]
    } else {
        &[false, true]
    };
    for &in_place in views {
        for stream in &schedule.streams {
            let mut open: Vec<(OpId, Access)> = Vec::new();
            for at in (stream.first.0..stream.first.0 + stream.len).map(OpId) {
                let op = schedule.op(at);
                if op.kind != OpKind::Move {
                    continue;
                }
                let access =
                    |write: bool| move |o: &Operand| Access::of(schedule, *o, write, in_place);
                let now: Vec<Access> = schedule
                    .srcs(op)
                    .iter()
                    .map(access(false))
                    .chain(schedule.dsts(op).iter().map(access(true)))
                    // All parts together release a fifo's slots to all parts.
                    .filter(|access| !matches!(access.buffer, Buffer::Scratch(id) if fifos.contains(&id)))
                    .collect();
                while let Some((first, _)) =
                    open.iter().rev().find(|(_, old)| now.iter().any(|new| old.disturbs(new)))
                {
                    let conflict = Conflict { first: *first, second: at };
                    let met = meet(Scanned::Conflict(conflict)).expect("a conflict is resolved");
                    open.retain(|(op, _)| *op > met);
                }
                open.extend(now.into_iter().map(|access| (at, access)));
                if let Some(met) = meet(Scanned::Move(at)) {
                    open.retain(|(op, _)| *op > met);
                }
            }
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct Access {
    rank: RankId,
    buffer: Buffer,
    slot: u32,
    lo: Rat,
    hi: Rat,
    write: bool,
}

impl Access {
    fn of(schedule: &Schedule, operand: Operand, write: bool, in_place: bool) -> Self {
        let region = schedule.region(operand);
        let Operand { rank, .. } = operand;
        let mut access = Self {
            rank,
            buffer: region.buffer,
            slot: region.slot,
            lo: region.lo,
            hi: region.hi,
            write,
        };
        if in_place {
            let (from, to, units) = match schedule.collective.alias(rank, schedule.root) {
                Alias::Apart => return access,
                Alias::InputInOutput(units) => (Buffer::Input, Buffer::Output, units),
                Alias::OutputInInput(units) => (Buffer::Output, Buffer::Input, units),
            };
            if access.buffer == from {
                let shifted = |x: Rat| x.plus(Rat::whole(units.into())).unwrap_or(x);
                access =
                    Self { buffer: to, lo: shifted(access.lo), hi: shifted(access.hi), ..access };
            }
        }
        access
    }

    /// Whether one access writes elements of the other, with different bounds.
    fn disturbs(&self, other: &Self) -> bool {
        (self.write || other.write)
            && (self.rank, self.buffer, self.slot) == (other.rank, other.buffer, other.slot)
            && self.lo < other.hi
            && other.lo < self.hi
            && (self.lo, self.hi) != (other.lo, other.hi)
    }
}
