//! The end of a run, and the next run: callers take their buffers back, and scratch is used again.

use super::ranks::FollowedRanks;
use super::replay::{Player, Replayed, Stop};
use super::report::Access;
use super::values::CellValue;
use crate::ids::RankId;
use crate::schedule::{Buffer, OpKind};
use crate::stages;

impl<R: FollowedRanks> Player<'_, R> {
    /// Checks the exit: the callers take their buffers back, so every access to them must have come before.
    pub(super) fn exit(&mut self, mode: usize) {
        for rank in (0..self.ranks.followed()).map(RankId) {
            for buffer in [Buffer::Input, Buffer::Output] {
                let cells = self.buffer(mode, rank, buffer);
                let memory = &mut self.states[mode].memory;
                let late = memory.unordered(cells, &self.ranks.exit(rank));
                for (cells, (event, was_read)) in late {
                    let access = if was_read { Access::Read } else { Access::Write };
                    let (op, owner) = self.ranks.touched(event, rank);
                    let finding = self.of.reporter.after_exit(op, access, owner, buffer);
                    self.found_in(mode, cells.len() as u32, &finding);
                    let cells = cells.start as usize..cells.end as usize;
                    self.states[mode].values[cells].fill(CellValue::POISON);
                }
            }
        }
    }

    /// Replays the program a second time, only for the races of scratch: enter and exit guard the user's buffers.
    pub(super) fn second_run(&mut self) -> Result<(), Stop> {
        if !self.states[0].findings.is_empty() {
            return Ok(());
        }
        self.ranks.next_run();
        let Replayed { schedule, order, .. } = *self.of;
        let ops = order.sequence.len();
        for (done, &at) in order.sequence.iter().enumerate() {
            stages::report(ops + done, self.runs() * ops);
            let stream = order.stream_of[at.index()];
            let op = schedule.op(at);
            match op.kind {
                OpKind::Post => {
                    self.raise(at, stream);
                    self.ranks.post(at, stream);
                }
                OpKind::Wait => self.ranks.wait(at, stream).map_err(|why| Stop { at, why })?,
                OpKind::Move => {
                    for (i, operand) in schedule.operands_of(op).iter().enumerate() {
                        if matches!(schedule.region(*operand).buffer, Buffer::Scratch(_)) {
                            let read = i < op.srcs as usize;
                            let access = if read { Access::Read } else { Access::Write };
                            let place = self.place(0, *operand);
                            self.access(0, at, (*operand, place), access);
                        }
                    }
                    self.sure(at)?;
                }
            }
        }
        Ok(())
    }
}
