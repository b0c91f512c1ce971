//! The op that left a contribution out of a result: only a failed proof needs it, so the moves are replayed once more,
//! and only the holders of the contribution and the origins of sums are tracked.

use super::layout::{Cells, MemoryLayout};
use super::order::Order;
use super::values::Leaf;
use crate::ids::OpId;
use crate::schedule::{Buffer, OpKind, Operand, Schedule};

/// The end of the path of a contribution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BlamePath {
    /// This op is the last that brings the contribution to a new place.
    Ends(OpId),
    /// This op overwrites the contribution's last copy in outputs and scratch.
    Lost(OpId),
}

/// The fate of a contribution, and the origin of the result that lacks it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Trace {
    /// The path of the contribution; `None` where no op reads it.
    pub(super) way: Option<BlamePath>,
    /// The op that made the last sum with the contribution.
    pub(super) added: Option<OpId>,
    /// The op that made the sum which the result holds, and which copies passed on; `None` where the result is no sum.
    pub(super) made: Option<OpId>,
}

/// Traces `leaf`, and the value of `cell` at the end.
pub(super) fn trace(
    schedule: &Schedule,
    order: &Order,
    cells: &Cells,
    layout: &MemoryLayout,
    (leaf, cell): (Leaf, u32),
) -> Trace {
    let own = layout.buffer(leaf.rank, Buffer::Input) + leaf.cell;
    let output = layout.buffer(leaf.rank, Buffer::Output);
    let units = schedule.units(Buffer::Output, leaf.rank).floor() as u32;
    let in_output = (output..output + units * cells.per_unit).contains(&own);
    let mut held = vec![false; layout.size as usize];
    held[own as usize] = true;
    let mut made = vec![None; layout.size as usize];
    // The copies outside the input: only an output in its place overwrites the input.
    let mut copies = usize::from(in_output);
    let place = |o: &Operand| {
        let (first, len) = cells.of(*o);
        (layout.buffer(o.rank, schedule.region(*o).buffer) + first, len)
    };
    let (mut way, mut added) = (None, None);
    for &at in order.sequence.iter().filter(|at| schedule.op(**at).kind == OpKind::Move) {
        let op = schedule.op(at);
        let srcs: Vec<(u32, u32)> = schedule.srcs(op).iter().map(place).collect();
        let results: Vec<(bool, Option<OpId>)> = (0..srcs[0].1)
            .map(|i| {
                let mut from = srcs.iter().map(|(first, _)| (first + i) as usize);
                let copied =
                    if srcs.len() == 1 { made[(srcs[0].0 + i) as usize] } else { Some(at) };
                (from.any(|from| held[from]), copied)
            })
            .collect();
        if srcs.len() > 1 && results.iter().any(|(brought, _)| *brought) {
            added = Some(at);
            // The copies made before went into this sum.
            way = None;
        }
        for (first, _) in schedule.dsts(op).iter().map(place) {
            for (to, (brought, sum)) in (first as usize..).zip(&results) {
                made[to] = *sum;
                let there = &mut held[to];
                match (*there, *brought) {
                    (false, true) => {
                        copies += 1;
                        way = Some(BlamePath::Ends(at));
                    }
                    (true, false) => {
                        copies -= 1;
                        if copies == 0 {
                            way = Some(BlamePath::Lost(at));
                        }
                    }
                    _ => {}
                }
                *there = *brought;
            }
        }
    }
    Trace { way, added, made: made[cell as usize] }
}
