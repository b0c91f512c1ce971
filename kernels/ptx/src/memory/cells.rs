//! The accesses to each range of bytes that was always accessed as one.

use super::clock::{Clocks, NOBODY, Stamp, Thread};
use super::history::History;
use super::reads::Reads;

/// Bytes of a granule; no access goes beyond one.
const GRANULE: u64 = 8;

/// The accesses to a range of 1, 2, 4 or 8 bytes.
#[derive(Clone, Debug)]
pub(crate) struct Cell {
    /// The last plain store.
    pub(crate) store: Stamp,
    /// The plain loads since then.
    pub(crate) loads: Reads,
    /// A load that takes the bytes for constant.
    pub(crate) constant: Option<Box<Stamp>>,
    /// The strong accesses since the last plain store.
    pub(crate) history: Option<Box<History>>,
}

/// The cells of a region: each granule has one of 8 bytes, two of 4, four of 2 or eight of 1.
#[derive(Clone, Debug)]
pub(crate) struct Cells {
    /// The first cell of each granule, plus 1, times 4, plus the logarithm of the number of its cells; 0 for a granule
    /// without accesses.
    granules: Vec<u32>,
    /// Bytes of the first granule that are before the region.
    before: u64,
    all: Vec<Cell>,
}

impl Cell {
    /// The cell of a range without accesses.
    pub(crate) const NEW: Self =
        Self { store: Stamp::BEFORE, loads: Reads::None, constant: None, history: None };

    /// Returns a store that is not ordered before the next access of `me`.
    pub(crate) fn unknown_store(&self, clocks: &Clocks, me: Thread) -> Option<Stamp> {
        if let Some(history) = &self.history {
            return history.unknown_store(clocks, me);
        }
        let Stamp { thread, epoch, .. } = self.store;
        (!clocks.knows(me, thread, epoch)).then_some(self.store)
    }

    /// Returns a load that is not ordered before the next access of `me`.
    pub(crate) fn unknown_load(&self, clocks: &Clocks, me: Thread) -> Option<Stamp> {
        self.loads
            .unknown(clocks, me)
            .or_else(|| self.history.as_ref()?.loads().unknown(clocks, me))
    }

    /// The cell of a part or of the whole of the range, or of a range with more, where all stores are ordered.
    fn without_history(&self, clocks: &Clocks) -> Self {
        let mut plain = Self {
            history: None,
            constant: self.constant.clone(),
            loads: self.loads.clone(),
            ..*self
        };
        if let Some(history) = &self.history {
            plain.store = history.last();
            history.loads().iter().for_each(|load| plain.loads.add_last(clocks, load));
        }
        plain
    }
}

impl Cells {
    /// The cells of a region of `bytes` from `address` on, none of which was accessed.
    pub(crate) fn new(address: u64, bytes: u64) -> Self {
        let before = address % GRANULE;
        let granules = vec![0; (before + bytes).div_ceil(GRANULE) as usize];
        Self { before, granules, all: Vec::new() }
    }

    /// The cells that hold the bytes of an access, which is aligned to its size of 1, 2, 4 or 8 bytes; they are made
    /// smaller where they hold other bytes too. An access to a part of a strong access must be ordered with all of them:
    /// the error is a store or load that is not.
    pub(crate) fn at(
        &mut self,
        clocks: &Clocks,
        me: Thread,
        offset: u64,
        size: u64,
    ) -> Result<&mut [Cell], Stamp> {
        let offset = self.before + offset;
        let granule = &mut self.granules[(offset / GRANULE) as usize];
        if *granule == 0 {
            let parts = GRANULE / size;
            *granule = ((self.all.len() as u32 + 1) << 2) | parts.trailing_zeros();
            self.all.extend((0..parts).map(|_| Cell::NEW));
        }
        let (mut first, parts) = ((*granule >> 2) as usize - 1, 1 << (*granule & 3));
        let mut unit = GRANULE / parts;
        if size < unit {
            let smaller = self.all.len();
            for at in first..first + parts as usize {
                let cell = &self.all[at];
                if cell.history.is_some() {
                    let other = cell.unknown_store(clocks, me);
                    if let Some(other) = other.or_else(|| cell.unknown_load(clocks, me)) {
                        return Err(other);
                    }
                }
                let part = cell.without_history(clocks);
                self.all.extend((0..unit / size).map(|_| part.clone()));
            }
            first = smaller;
            unit = size;
            self.granules[(offset / GRANULE) as usize] =
                ((first as u32 + 1) << 2) | (GRANULE / size).trailing_zeros();
        }
        let at = first + (offset % GRANULE / unit) as usize;
        Ok(&mut self.all[at..at + (size / unit) as usize])
    }

    /// Makes the cells of an access one cell, after [`at`](Self::at) has found several: all stores to them are ordered
    /// before the access.
    pub(crate) fn join(&mut self, clocks: &Clocks, offset: u64, size: u64) {
        let offset = self.before + offset;
        let granule = self.granules[(offset / GRANULE) as usize];
        let (first, parts) = ((granule >> 2) as usize - 1, 1 << (granule & 3));
        let each = (size / (GRANULE / parts)) as usize;
        let joined = self.all.len();
        for at in (first..first + parts as usize).step_by(each) {
            let mut cell = self.all[at].without_history(clocks);
            for other in at + 1..at + each {
                let other = self.all[other].without_history(clocks);
                other.loads.iter().for_each(|load| cell.loads.add_last(clocks, load));
                cell.constant = cell.constant.or(other.constant);
                let Stamp { thread, epoch, .. } = cell.store;
                let other_is_last =
                    other.store.thread != NOBODY && clocks.knows(other.store.thread, thread, epoch);
                if other_is_last {
                    cell.store = other.store;
                }
            }
            self.all.push(cell);
        }
        self.granules[(offset / GRANULE) as usize] =
            ((joined as u32 + 1) << 2) | (GRANULE / size).trailing_zeros();
    }
}
