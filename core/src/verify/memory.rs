//! What each cell holds, who wrote it last, and who has read it since.

use super::clocks::Clocks;
use super::values::ValueId;
use crate::ids::StreamId;

/// No event: nobody wrote, or nobody read.
pub(super) const NOBODY: u32 = u32::MAX;
/// The owner's caller, before `enter`.
pub(super) const CALLER: u32 = u32::MAX - 1;
/// Entries above this are indices of reader lists.
const LISTED: u32 = 1 << 31;

#[derive(Clone, Copy)]
pub(super) struct Cell {
    pub(super) value: ValueId,
    /// The last write.
    pub(super) write: u32,
    /// The one read since, or a list of them.
    reads: u32,
}

/// One memory, in one mode.
pub(super) struct Memory {
    pub(super) cells: Vec<Cell>,
    lists: Vec<Vec<u32>>,
}

/// A stream that accesses memory, and what it has heard of.
pub(super) struct Accessor<'a> {
    pub(super) stream: StreamId,
    pub(super) clocks: &'a Clocks<'a>,
    pub(super) stream_of: &'a [StreamId],
    /// Whether it has heard that the buffer's owner entered.
    pub(super) entered: bool,
}

impl Accessor<'_> {
    fn after(&self, event: u32) -> bool {
        let stream = self.stream_of[self.clocks.op(event).0.index()];
        self.clocks.before(event, stream, self.stream)
    }

    fn after_write(&self, write: u32) -> bool {
        match write {
            NOBODY => true,
            CALLER => self.entered,
            event => self.after(event),
        }
    }
}

impl Memory {
    pub(super) fn new(size: u32) -> Self {
        let empty = Cell { value: ValueId::NONE, write: NOBODY, reads: NOBODY };
        Self { cells: vec![empty; size as usize], lists: Vec::new() }
    }

    /// Records a read; the earlier write that it is not ordered after, if any.
    pub(super) fn read(&mut self, cell: u32, event: u32, who: &Accessor<'_>) -> Option<u32> {
        let at = &mut self.cells[cell as usize];
        let ordered = who.after_write(at.write);
        if at.reads == NOBODY || (at.reads < LISTED && who.after(at.reads)) {
            at.reads = event;
        } else if at.reads < LISTED {
            self.lists.push(vec![at.reads, event]);
            at.reads = LISTED + self.lists.len() as u32 - 1;
        } else {
            let list = &mut self.lists[(at.reads - LISTED) as usize];
            list.retain(|earlier| !who.after(*earlier));
            list.push(event);
        }
        (!ordered).then_some(at.write)
    }

    /// Records a write; the earlier access that it is not ordered after, if any, and whether it was a read.
    pub(super) fn write(
        &mut self,
        cell: u32,
        event: u32,
        who: &Accessor<'_>,
    ) -> Option<(u32, bool)> {
        let race = self.unordered(cell, who);
        let at = &mut self.cells[cell as usize];
        at.write = event;
        at.reads = NOBODY;
        race
    }

    /// The access that a write now would race with, and whether it was a read.
    pub(super) fn unordered(&self, cell: u32, who: &Accessor<'_>) -> Option<(u32, bool)> {
        let at = &self.cells[cell as usize];
        let one = [at.reads];
        let reads: &[u32] = match at.reads {
            NOBODY => &[],
            read if read < LISTED => &one,
            list => &self.lists[(list - LISTED) as usize],
        };
        let read = reads.iter().find(|read| !who.after(**read)).map(|read| (*read, true));
        read.or_else(|| (!who.after_write(at.write)).then_some((at.write, false)))
    }
}
