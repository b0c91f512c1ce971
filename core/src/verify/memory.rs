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

/// Whether the owner's caller is heard of, for cells that it wrote before `enter`.
pub(super) type Entered<'a> = &'a dyn Fn() -> bool;

impl Memory {
    pub(super) fn new(size: u32) -> Self {
        let empty = Cell { value: ValueId::NONE, write: NOBODY, reads: NOBODY };
        Self { cells: vec![empty; size as usize], lists: Vec::new() }
    }

    /// Records a read; the earlier write that it is not ordered after, if any.
    pub(super) fn read(
        &mut self,
        cell: u32,
        event: u32,
        stream: StreamId,
        clocks: &Clocks<'_>,
        stream_of: &[StreamId],
        entered: Entered<'_>,
    ) -> Option<u32> {
        let at = &mut self.cells[cell as usize];
        let race = unordered(at.write, stream, clocks, stream_of, entered);
        let before =
            |earlier: u32| clocks.before(earlier, stream_of[clocks.op(earlier).0.index()], stream);
        if at.reads == NOBODY {
            at.reads = event;
        } else if at.reads < LISTED {
            if before(at.reads) {
                at.reads = event;
            } else {
                self.lists.push(vec![at.reads, event]);
                at.reads = LISTED + self.lists.len() as u32 - 1;
            }
        } else {
            let list = &mut self.lists[(at.reads - LISTED) as usize];
            list.retain(|earlier| !before(*earlier));
            list.push(event);
        }
        race.then_some(at.write)
    }

    /// Records a write; the earlier access that it is not ordered after, if any, and whether that was a read.
    pub(super) fn write(
        &mut self,
        cell: u32,
        event: u32,
        stream: StreamId,
        clocks: &Clocks<'_>,
        stream_of: &[StreamId],
        entered: Entered<'_>,
    ) -> Option<(u32, bool)> {
        let race = self.last_unordered(cell, stream, clocks, stream_of, entered);
        let at = &mut self.cells[cell as usize];
        at.write = event;
        at.reads = NOBODY;
        race
    }

    /// The access that a write by `stream` now would race with.
    pub(super) fn last_unordered(
        &self,
        cell: u32,
        stream: StreamId,
        clocks: &Clocks<'_>,
        stream_of: &[StreamId],
        entered: Entered<'_>,
    ) -> Option<(u32, bool)> {
        let at = &self.cells[cell as usize];
        let one = [at.reads];
        let reads: &[u32] = match at.reads {
            NOBODY => &[],
            read if read < LISTED => &one,
            list => &self.lists[(list - LISTED) as usize],
        };
        reads
            .iter()
            .find(|read| !clocks.before(**read, stream_of[clocks.op(**read).0.index()], stream))
            .map(|read| (*read, true))
            .or_else(|| {
                unordered(at.write, stream, clocks, stream_of, entered).then_some((at.write, false))
            })
    }
}

fn unordered(
    write: u32,
    stream: StreamId,
    clocks: &Clocks<'_>,
    stream_of: &[StreamId],
    entered: Entered<'_>,
) -> bool {
    match write {
        NOBODY => false,
        CALLER => !entered(),
        event => !clocks.before(event, stream_of[clocks.op(event).0.index()], stream),
    }
}
