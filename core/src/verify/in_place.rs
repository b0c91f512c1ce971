//! Whether the proof in place follows from the proof out of place. Most algorithms that reduce begin with a copy of the
//! input to the place where it lies in place anyway, and never read the input again: then one proof serves both.

use rustc_hash::FxHashSet;

use super::layout::{BufferMode, Cells, MemoryLayout};
use crate::collective::Alias;
use crate::ids::{OpId, RankId};
use crate::schedule::{Buffer, Op, OpKind, Schedule, SignalKind};

/// Whether each input that shares memory with an output is only ever copied home, before any other op touches memory
/// there.
///
/// In place, a copy home is no op, and the memory holds its result from the beginning. Out of place, no event comes
/// before it: its stream has waited for nothing yet, and nothing races. So from the copy on the values are equal, and
/// the accesses in place are a part of the accesses out of place.
///
/// # Errors
/// Where cells cannot be numbered, the number of cells that a unit would have.
pub(crate) fn follows(schedule: &Schedule, cells: &Cells) -> Result<bool, u32> {
    let layout = MemoryLayout::new(schedule, cells, BufferMode::InPlace).ok_or(cells.per_unit)?;
    let shared: Vec<bool> = (0..schedule.nranks)
        .map(|rank| schedule.collective.alias(RankId(rank), schedule.root) != Alias::Apart)
        .collect();
    // Streams of a rank that begin before it waits for anything; a parent comes before its children.
    let mut begun: FxHashSet<(RankId, u32)> = FxHashSet::default();
    Ok(schedule.streams.iter().all(|stream| {
        let rank = stream.rank;
        let ops = (stream.first.0..stream.first.0 + stream.len).map(|op| schedule.op(OpId(op)));
        // A forked stream begins with the wait for the fork.
        let forked = |op: &Op| {
            let channel = schedule.channel(op);
            op.kind == OpKind::Wait
                && (channel.kind, channel.lane.0) == (SignalKind::Fork, stream.index)
                && begun.contains(&(rank, stream.index))
        };
        let mut ops = ops.peekable();
        let forked = ops.next_if(|op| op.kind != OpKind::Move && forked(op)).is_some();
        let mut at_head = stream.index == 0 || forked;
        ops.all(|op| match op.kind {
            OpKind::Move if at_head && home(schedule, op, rank, cells, &layout) => true,
            OpKind::Post if at_head && schedule.channel(op).kind == SignalKind::Fork => {
                begun.insert((rank, schedule.channel(op).lane.0));
                true
            }
            OpKind::Move => {
                at_head = false;
                let operands = schedule.operands_of(op).iter();
                operands.clone().all(|operand| {
                    schedule.region(*operand).buffer != Buffer::Input
                        || !shared[operand.rank.index()]
                })
            }
            OpKind::Post | OpKind::Wait => {
                at_head = false;
                true
            }
        })
    }))
}

/// Whether a move is a copy of a rank's own input onto itself, in place.
fn home(
    schedule: &Schedule,
    op: &Op,
    rank: RankId,
    cells: &Cells,
    in_place: &MemoryLayout,
) -> bool {
    let ([src], [dst]) = (schedule.srcs(op), schedule.dsts(op)) else { return false };
    let place = |operand: &crate::schedule::Operand| {
        let (first, len) = cells.of(*operand);
        (in_place.buffer(operand.rank, schedule.region(*operand).buffer) + first, len)
    };
    (src.rank, dst.rank) == (rank, rank)
        && schedule.region(*src).buffer == Buffer::Input
        && place(src) == place(dst)
}
