//! The end of a run: the caller of rank 0 takes its buffers back, scratch is used again, and outputs hold their results.

use super::order::{Before, Event};
use super::replay::{MAIN, Player, Stuck};
use super::told;
use super::values::Value;
use crate::collective::Expected;
use crate::ids::RankId;
use crate::schedule::{Buffer, OpKind};
use crate::stages;
use crate::verify::Access;
use crate::verify::memory::{CALLER, Past};

/// The end of the run at rank 0.
struct Exit<'a> {
    before: &'a Before<'a>,
    accesses: &'a [Event],
}

impl Past for Exit<'_> {
    fn after(&self, event: u32) -> bool {
        self.before.ended(self.accesses[event as usize], MAIN)
    }

    fn after_write(&self, write: u32) -> bool {
        write >= CALLER || self.after(write)
    }
}

impl Player<'_> {
    /// Checks the exit: the caller takes its buffers back, so every access to them must have come before.
    pub(super) fn exit(&mut self, mode: usize) {
        for buffer in [0, 1] {
            let (first, size) = (self.states[mode].first[buffer], self.space().sizes[buffer]);
            let who = Exit { before: &self.before, accesses: &self.accesses };
            let memory = &mut self.states[mode].memory;
            for (cells, (event, was_read)) in
                memory.unordered(first as u32..(first + size) as u32, &who)
            {
                let access = if was_read { Access::Read } else { Access::Write };
                let event = self.accesses[event as usize];
                let finding = told::after_exit(self.own(), event, access, buffer);
                self.found(mode, finding);
                let cells = cells.start as usize..cells.end as usize;
                self.states[mode].values[cells].fill(Value::POISON);
            }
        }
    }

    /// Replays the accesses to scratch once more: those of the first run must come before.
    pub(super) fn second_run(&mut self) -> Result<(), Stuck> {
        self.run = 1;
        let (own, order) = (self.own(), self.order);
        for (done, &at) in order.sequence.iter().enumerate() {
            stages::done(order.sequence.len() + done, 2 * order.sequence.len());
            let op = own.op(at);
            if op.kind != OpKind::Move {
                continue;
            }
            for (number, operand) in own.operands_of(op).iter().enumerate() {
                if matches!(own.region(*operand).buffer, Buffer::Scratch(_)) {
                    let read = number < usize::from(op.srcs);
                    let access = if read { Access::Read } else { Access::Write };
                    self.access(0, at, *operand, access);
                }
            }
            self.sure(at)?;
        }
        Ok(())
    }

    /// Compares every cell of the output with the value that the collective promises.
    pub(super) fn outputs(&mut self, mode: usize) {
        let (own, space) = (self.own(), self.space());
        let held = self.states[mode].buffer(space, 1).to_vec();
        let mut told = false;
        for (cell, value) in (0..).zip(held) {
            if value == Value::POISON {
                continue;
            }
            let (unit, cut) = ((cell / space.grid) as u32, cell % space.grid);
            let expected = own.collective.expected(RankId(0), unit, own.root);
            let good = match expected {
                Expected::Reduced { unit } => {
                    value.is_value()
                        && u64::from(value.cell) == u64::from(unit) * space.grid + cut
                        && self.shapes.is_complete(value.node)
                }
                Expected::Copied { rank, unit } => {
                    value == Value::leaf(rank.0, u64::from(unit) * space.grid + cut)
                }
            };
            if good {
                self.depth = self.depth.max(self.shapes.depth(value.node));
            } else if !told {
                told = true;
                let at = self.states[mode].first[1] + cell;
                let writer = self.states[mode].memory.written(at as u32);
                let writer = self.accesses.get(writer as usize).map(|event| event.op);
                let piece = space.region(cell);
                let finding =
                    told::wrong_result(own, (&self.shapes, value), expected, &piece, writer);
                self.found(mode, finding);
            }
        }
    }
}
