//! The statements of the author that a rank works on, for messages and observers.

use roundelay_core::ids::OpId;
use roundelay_core::schedule::Schedule;

use crate::lowering::{Code, InstrKind};

/// The statements of each segment, counted from 1; 0 for a segment without statements.
pub(crate) struct SegmentStatements(pub(crate) Vec<u32>);

impl SegmentStatements {
    pub(crate) fn new(code: &Code, schedule: &Schedule) -> Self {
        let mut stands = vec![0; code.segments.all.len()];
        for (task, stream) in code.tasks.iter().zip(&schedule.streams) {
            for instr in &code.instrs[task.first as usize..][..task.len as usize] {
                if instr.kind == InstrKind::Data && instr.step < stream.len {
                    let op = schedule.op(OpId(stream.first.0 + instr.step));
                    stands[instr.arg as usize] = op.at.0 + 1;
                }
            }
        }
        Self(stands)
    }
}
