//! The end of a run, and the next run: callers take their buffers back, and scratch is used again.

use super::memory::Accessor;
use super::replay::{Player, Stop};
use super::report::Access;
use super::values::ValueId;
use crate::ids::RankId;
use crate::schedule::{Buffer, OpKind};
use crate::stages;

impl Player<'_> {
    /// Checks the exit: the callers take their buffers back, so every access to them must have come before.
    pub(super) fn exit(&mut self, mode: usize) {
        let schedule = self.schedule;
        for rank in (0..schedule.nranks).map(RankId) {
            let stream = self.main[rank.index()];
            for buffer in [Buffer::Input, Buffer::Output] {
                let first = self.states[mode].layout.buffer(rank, buffer);
                let len = schedule.units(buffer, rank).floor() as u32 * self.cells.per_unit;
                let who = Accessor {
                    stream,
                    clocks: &self.clocks,
                    stream_of: &self.order.stream_of,
                    owner: None,
                };
                let memory = &mut self.states[mode].memory;
                for (cells, (event, was_read)) in memory.unordered(first..first + len, &who) {
                    let access = if was_read { Access::Read } else { Access::Write };
                    let (op, _) = self.clocks.op(event);
                    let finding = self.reporter.after_exit(op, access, rank, buffer);
                    self.found_in(mode, cells.len() as u32, &finding);
                    let cells = cells.start as usize..cells.end as usize;
                    self.states[mode].memory.values[cells].fill(ValueId::POISON);
                }
            }
        }
    }

    /// Replays the program a second time, only for the races of scratch: enter and exit guard the user's buffers.
    pub(super) fn second_run(&mut self) -> Result<(), Stop> {
        if !self.states[0].findings.is_empty() {
            return Ok(());
        }
        self.clocks.next_run();
        let (schedule, order) = (self.schedule, self.order);
        let ops = order.sequence.len();
        for (done, &at) in order.sequence.iter().enumerate() {
            stages::done(ops + done, self.runs * ops);
            let stream = order.stream_of[at.index()];
            let op = schedule.op(at);
            match op.kind {
                OpKind::Post => {
                    self.raise(at, stream);
                    self.clocks.post(at, stream);
                }
                OpKind::Wait => {
                    let post = order.meets[at.index()];
                    self.clocks.wait(post, order.stream_of[post.index()], stream)?;
                }
                OpKind::Move => {
                    for (i, operand) in schedule.operands_of(op).iter().enumerate() {
                        let buffer = schedule.region(*operand).buffer;
                        if !matches!(buffer, Buffer::Scratch(_)) {
                            continue;
                        }
                        let (from, len) = self.cells.of(*operand);
                        let from = from + self.states[0].layout.buffer(operand.rank, buffer);
                        let read = i < op.srcs as usize;
                        let access = if read { Access::Read } else { Access::Write };
                        self.access(0, at, *operand, from..from + len, access);
                    }
                    self.sure()?;
                }
            }
        }
        Ok(())
    }
}
