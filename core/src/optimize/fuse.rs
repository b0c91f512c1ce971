//! Fusion: writes the flow of the data as moves that move as few bytes as possible.
//!
//! Each stretch of the inputs is folded once, in the author's nesting, by moves of up to eight sources, and goes to
//! all outputs at once. A value between two moves is a *partial* in scratch: it lives for a few moves in a row, which
//! an engine runs tile by tile, so it never leaves the cache.

use crate::schedule::Schedule;
use crate::verify::{Callers, Order, in_order};

use super::flow::Flow;
use super::piece::PieceWriter;
use super::writer::OpWriter;
use super::{Unfit, share};

/// Fuses a proved schedule; with `reassociate` reductions may nest otherwise than the author wrote them.
pub fn fuse(schedule: &Schedule, callers: Callers, reassociate: bool) -> Result<Schedule, Unfit> {
    let order = in_order(schedule).map_err(|_| Unfit("it is not proved".into()))?;
    fuse_in(schedule, &order, callers, reassociate)
}

/// [`fuse`] for a schedule whose order of events is known.
pub(super) fn fuse_in(
    schedule: &Schedule,
    order: &Order,
    callers: Callers,
    reassociate: bool,
) -> Result<Schedule, Unfit> {
    let mut flow = Flow::new(schedule, order, reassociate)?;
    let sets = std::mem::take(&mut flow.sets);
    let pieces = share::pieces(schedule, &flow, callers);
    let mut writer = OpWriter::new(schedule, order, &flow, sets);
    for piece in &pieces {
        PieceWriter::new(&mut writer, piece).write()?;
    }
    Ok(writer.finish(callers))
}
