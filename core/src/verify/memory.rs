//! The last write of each cell, and the reads since.
//!
//! Cells with one last access form a run: a run is cut where an access begins or ends, and a write joins the runs
//! within it to one run. So the race check takes as many steps as there are moves, however many cells they have.

use std::ops::Range;

use super::clocks::Clocks;
use crate::ids::StreamId;

/// The event of a run that no op wrote, or no op read.
pub(crate) const NOBODY: u32 = u32::MAX;
/// The write of the owner's caller, before `enter`.
pub(crate) const CALLER: u32 = u32::MAX - 1;
/// Entries above this are indices of reader lists.
const LISTED: u32 = 1 << 31;

/// The number of readers of one run of cells that counts as many.
const MANY: usize = 64;

/// A run of cells with one history: the number of cells, their last write, and the only read since or a list of reads.
/// Plain numbers, so that memory which no op touches takes no memory of this process.
type CellRun = [u32; 3];

/// The memory of all ranks, in one mode.
pub(crate) struct CellMemory {
    /// The run that begins at a cell, where one begins.
    runs: Vec<CellRun>,
    /// The cells where a run begins.
    heads: Vec<u64>,
    lists: Vec<Vec<u32>>,
}

/// Cells that race, and the accesses that they race with.
pub(crate) type Raced<T> = (Range<u32>, T);

/// A stream that accesses memory, and the events that it knows of.
pub(super) struct Accessor<'a> {
    pub(super) stream: StreamId,
    pub(super) clocks: &'a Clocks<'a>,
    pub(super) stream_of: &'a [StreamId],
    /// The main stream of the buffer's owner, where the accessor must have heard from it that the owner entered.
    pub(super) owner: Option<StreamId>,
}

/// The events before an access.
pub(crate) trait Past {
    /// Whether the event is before this access: a read that is need not be remembered beside this access.
    fn after(&self, event: u32) -> bool;

    /// Whether the last write is before this access; it may be an event, `CALLER` or `NOBODY`.
    fn after_write(&self, write: u32) -> bool;

    /// Returns an access that a write now would race with, and whether it was a read.
    fn races(&self, reads: &[u32], write: u32) -> Option<(u32, bool)> {
        let read = reads.iter().find(|read| !self.after(**read)).map(|read| (*read, true));
        read.or_else(|| (!self.after_write(write)).then_some((write, false)))
    }
}

impl Past for Accessor<'_> {
    fn after(&self, event: u32) -> bool {
        let stream = self.stream_of[self.clocks.op(event).0.index()];
        self.clocks.before(event, stream, self.stream)
    }

    fn after_write(&self, write: u32) -> bool {
        match write {
            NOBODY => true,
            CALLER => self.owner.is_none_or(|main| self.clocks.heard(main, self.stream)),
            event => self.after(event),
        }
    }
}

impl CellMemory {
    pub(crate) fn new(size: u32) -> Self {
        let mut runs = vec![[0; 3]; size as usize];
        if let Some(first) = runs.first_mut() {
            *first = [size, NOBODY, NOBODY];
        }
        let mut heads = vec![0; size as usize / 64 + 1];
        heads[0] = 1;
        Self { runs, heads, lists: Vec::new() }
    }

    /// Returns the cell where the run of `cell` begins.
    fn head(&self, cell: u32) -> u32 {
        let mut word = (cell / 64) as usize;
        let mut before = self.heads[word] & (u64::MAX >> (63 - cell % 64));
        while before == 0 {
            word -= 1;
            before = self.heads[word];
        }
        word as u32 * 64 + 63 - before.leading_zeros()
    }

    /// Makes a run begin at `cell`.
    fn cut(&mut self, cell: u32) {
        let bit = 1 << (cell % 64);
        if self.heads[(cell / 64) as usize] & bit != 0 || cell as usize == self.runs.len() {
            return;
        }
        let head = self.head(cell);
        let [len, write, mut reads] = self.runs[head as usize];
        if (LISTED..CALLER).contains(&reads) {
            self.lists.push(self.lists[(reads - LISTED) as usize].clone());
            reads = LISTED + self.lists.len() as u32 - 1;
        }
        self.runs[head as usize][0] = cell - head;
        self.runs[cell as usize] = [head + len - cell, write, reads];
        self.heads[(cell / 64) as usize] |= bit;
    }

    /// Makes one run of `cells`, which begin and end with runs.
    fn join(&mut self, cells: Range<u32>, write: u32) {
        let mut inner = cells.start + self.runs[cells.start as usize][0];
        while inner < cells.end {
            self.heads[(inner / 64) as usize] &= !(1 << (inner % 64));
            inner += self.runs[inner as usize][0];
        }
        self.runs[cells.start as usize] = [cells.end - cells.start, write, NOBODY];
    }

    /// Calls `ask` for each run within `cells`, and returns its answers with their cells.
    fn each<T>(
        &mut self,
        cells: Range<u32>,
        mut ask: impl FnMut(&mut CellRun, &mut Vec<Vec<u32>>) -> Option<T>,
    ) -> Vec<Raced<T>> {
        self.cut(cells.start);
        self.cut(cells.end);
        let mut found = Vec::new();
        let mut next = cells.start;
        while next < cells.end {
            let run = &mut self.runs[next as usize];
            let end = next + run[0];
            found.extend(ask(run, &mut self.lists).map(|what| (next..end, what)));
            next = end;
        }
        found
    }

    /// Returns the op or caller that wrote `cell` last.
    pub(crate) fn written(&self, cell: u32) -> u32 {
        self.runs[self.head(cell) as usize][1]
    }

    /// Records that the caller has written `cells`.
    pub(crate) fn enter(&mut self, cells: Range<u32>) {
        if !cells.is_empty() {
            self.cut(cells.start);
            self.cut(cells.end);
            self.join(cells, CALLER);
        }
    }

    /// Records a read; returns the earlier writes that it is not ordered after.
    pub(crate) fn read(
        &mut self,
        cells: Range<u32>,
        event: u32,
        who: &impl Past,
    ) -> Vec<Raced<u32>> {
        self.each(cells, |[_, write, reads], lists| {
            if *reads == NOBODY || (*reads < LISTED && who.after(*reads)) {
                *reads = event;
            } else if *reads < LISTED {
                lists.push(vec![*reads, event]);
                *reads = LISTED + lists.len() as u32 - 1;
            } else {
                let list = &mut lists[(*reads - LISTED) as usize];
                // Checks of all earlier readers for each of many readers would be slow: so they are checked whenever
                // their number has doubled.
                if list.len() < MANY || list.len().is_power_of_two() {
                    list.retain(|earlier| !who.after(*earlier));
                }
                list.push(event);
            }
            (!who.after_write(*write)).then_some(*write)
        })
    }

    /// Records a write; returns the earlier accesses that it is not ordered after, and whether they were reads.
    pub(crate) fn write(
        &mut self,
        cells: Range<u32>,
        event: u32,
        who: &impl Past,
    ) -> Vec<Raced<(u32, bool)>> {
        let races = self.unordered(cells.clone(), who);
        if !cells.is_empty() {
            self.join(cells, event);
        }
        races
    }

    /// Returns the accesses that a write now would race with, and whether they were reads.
    pub(crate) fn unordered(
        &mut self,
        cells: Range<u32>,
        who: &impl Past,
    ) -> Vec<Raced<(u32, bool)>> {
        self.each(cells, |[_, write, reads], lists| {
            let one = [*reads];
            let reads: &[u32] = match *reads {
                NOBODY => &[],
                read if read < LISTED => &one,
                list => &lists[(list - LISTED) as usize],
            };
            who.races(reads, *write)
        })
    }
}
