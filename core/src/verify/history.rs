//! The history of one piece of memory: only a failed proof needs it, so the values are computed once more.

use super::layout::{Cells, MemoryLayout, entered};
use super::order::Order;
use super::values::{CellValue, FoldWay, ValueId, Values};
use crate::ids::OpId;
use crate::schedule::{OpKind, Operand, Schedule};

/// Returns every write of `cell`, with the value after the write.
pub(super) fn history(
    schedule: &Schedule,
    order: &Order,
    cells: &Cells,
    layout: &MemoryLayout,
    values: &mut Values,
    cell: u32,
) -> Vec<(OpId, ValueId)> {
    let mut memory = entered(schedule, cells, layout);
    let place = |o: &Operand| {
        let (first, len) = cells.of(*o);
        (layout.buffer(o.rank, schedule.region(*o).buffer) + first, len)
    };
    let mut seen = Vec::new();
    let moves = order.sequence.iter().filter(|at| schedule.op(**at).kind == OpKind::Move);
    for &at in moves {
        let op = schedule.op(at);
        let way = FoldWay::in_order(true);
        let srcs: Vec<(u32, u32)> = schedule.srcs(op).iter().map(place).collect();
        let folded: Vec<ValueId> = (0..srcs[0].1)
            .map(|i| {
                let mut operands = srcs.iter().map(|(first, _)| memory[(first + i) as usize]);
                let start = operands.next().unwrap_or(ValueId::NONE);
                operands.fold(start, |folded, operand| {
                    let sound = folded.is_value() && operand.is_value();
                    if sound { values.fold(operand, folded, way, at) } else { ValueId::POISON }
                })
            })
            .collect();
        for (first, _) in schedule.dsts(op).iter().map(place) {
            for (i, value) in folded.iter().enumerate() {
                let to = first + i as u32;
                memory[to as usize] = *value;
                if to == cell {
                    seen.push((at, *value));
                }
            }
        }
    }
    seen
}
