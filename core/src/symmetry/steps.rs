//! Steps and ports, from the ops of rank 0: all ranks are in the same step at the same op.

use super::Representative;
use super::order::folded;
use crate::ids::{OpId, RankId};
use crate::schedule::{OpKind, Operand};
use crate::verify::layout::BufferMode;
use crate::verify::ports::{busiest, steps_at};
use crate::verify::{self, Depth, Order, Ports};

/// Returns the length of the longest chain of messages, and the ports of a rank in each step, over all modes.
pub(super) fn ports(of: &Representative, order: &Order, modes: &[BufferMode]) -> (u32, Ports) {
    let space = &of.space;
    let (mut count, mut most) = (0, Ports::default());
    for mode in modes {
        let (first, size) = space.layout(&of.own, *mode);
        // The cells of rank 0 to which the operand's cells are turned.
        let place = |operand: &Operand| {
            let piece = space.piece(&of.own, *operand);
            let images = space.images(piece, space.turns.back(operand.rank.0));
            let first = first[piece.buffer];
            images.into_iter().map(move |image| {
                let from = (first + image.first) as usize;
                from..from + image.len as usize
            })
        };
        let steps = steps_at(&of.own, order, size as usize, place);
        let ports = ports_in(of, &steps.of);
        count = count.max(steps.count);
        if ports.most() > most.most() {
            most = Ports { in_place: *mode == BufferMode::InPlace, ..ports };
        }
    }
    (count, most)
}

fn ports_in(of: &Representative, steps: &[u32]) -> Ports {
    let own = &of.own;
    let (mut sends, mut receives) = (Vec::new(), Vec::new());
    for (at, op) in (0..).map(OpId).zip(&own.ops).filter(|(_, op)| op.kind == OpKind::Move) {
        let step = steps[at.index()];
        for (from, to, _) in own.crossing(RankId(0), op) {
            // The rank that the data comes from sends it by the turned image of this op, and the other way around.
            sends.push((step, RankId(of.turns.between(from.0, to.0)), at));
            receives.push((step, RankId(of.turns.between(to.0, from.0)), at));
        }
    }
    Ports { send: busiest(vec![sends]), receive: busiest(vec![receives]), in_place: false }
}

/// Returns the fifo's slots in use and needed, if there is a fifo.
pub(super) fn depth(of: &Representative) -> Option<Depth> {
    if verify::has_fifo(&of.own) { verify::depth(&folded(&of.own, &of.turns)) } else { None }
}
