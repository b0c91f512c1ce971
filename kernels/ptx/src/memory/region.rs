//! A range of bytes that several threads access, with the order of their accesses.

use super::cells::{Cell, Cells};
use super::clock::{Clocks, Stamp, Thread};
use super::history::{History, Strong};
use crate::choices::Choices;

/// Bytes of shared memory or of a window of global memory.
#[derive(Clone, Debug)]
pub(crate) struct Region {
    bytes: Vec<u8>,
    /// One bit for each byte: whether it was stored; none where all bytes have a value at the start.
    stored: Option<Vec<u64>>,
    cells: Cells,
}

/// The reason why an access and one before it may not be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conflict {
    /// One of them is plain, or they are of different bytes, and nothing orders them.
    Race,
    /// Both are strong, nothing orders them, and the scope of one leaves the thread of the other out.
    Scope,
    /// One takes the bytes for constant (`ld.global.nc`), and the other stores them in the same launch.
    Constant,
    /// One is by a multicast address, the other by the window's own one, and the path that orders them has no
    /// `fence.proxy.alias`.
    Alias,
}

/// An access that is not ordered with one before it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unordered {
    /// The reason.
    pub(crate) conflict: Conflict,
    /// The access before it.
    pub(crate) other: Stamp,
    /// Whether that one stores.
    pub(crate) other_stores: bool,
}

fn unordered(conflict: Conflict, other: Stamp, other_stores: bool) -> Unordered {
    Unordered { conflict, other, other_stores }
}

/// The accesses of a run that are not ordered.
#[derive(Debug, Default)]
pub(crate) struct Races {
    /// Whether a run goes on behind one of the same bytes: PTX says which values loads may have. It says nothing of
    /// accesses of other sizes.
    pub(crate) go_on: bool,
    /// Those that were found since they were taken.
    pub(crate) found: Vec<Unordered>,
}

impl Races {
    fn meet(&mut self, found: Unordered) -> Result<(), Unordered> {
        if !self.go_on {
            return Err(found);
        }
        self.found.push(found);
        Ok(())
    }
}

/// The accesses to `count` locations of `size` bytes from `first` on, of which the first thread performs `each`, and the
/// next threads the others; with the offset of each location.
fn accesses(
    clocks: &Clocks,
    (access, each): (&Strong, usize),
    (first, size): (u64, u64),
    count: usize,
) -> Vec<(Strong, u64)> {
    let of = |nth: usize| {
        let Stamp { thread, place, .. } = access.stamp;
        let stamp = clocks.stamp(thread + (nth / each) as Thread, place);
        (Strong { stamp, ..*access }, first + nth as u64 * size)
    };
    (0..count).map(of).collect()
}

impl Region {
    /// A region of bytes that have values, from `address` on.
    pub(crate) fn new(address: u64, bytes: Vec<u8>) -> Self {
        let cells = Cells::new(address, bytes.len() as u64);
        Self { bytes, stored: None, cells }
    }

    /// A region of `bytes` without values.
    pub(crate) fn without_values(bytes: u64) -> Self {
        let words = vec![0; bytes.div_ceil(64) as usize];
        Self { stored: Some(words), ..Self::new(0, vec![0; bytes as usize]) }
    }

    /// The bytes.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The bytes.
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// Whether all bytes of a range have a value.
    pub(crate) fn has_value(&self, offset: u64, size: u64) -> bool {
        let Some(stored) = &self.stored else { return true };
        let mask = (u64::MAX >> (64 - size)) << (offset % 64);
        stored[(offset / 64) as usize] & mask == mask
    }

    /// A plain load.
    pub(crate) fn load(
        &mut self,
        clocks: &Clocks,
        races: &mut Races,
        stamp: Stamp,
        offset: u64,
        size: u64,
    ) -> Result<u64, Unordered> {
        let me = stamp.thread;
        let cells = self.cells.at(clocks, me, offset, size);
        let cells = cells.map_err(|other| unordered(Conflict::Race, other, true))?;
        let whole = cells.len() == 1;
        for cell in cells {
            if let Some(other) = cell.unknown_store(clocks, me) {
                let race = unordered(Conflict::Race, other, true);
                if whole { races.meet(race) } else { Err(race) }?;
            }
            cell.loads.add_last(clocks, stamp);
        }
        Ok(self.get(offset, size))
    }

    /// A load that takes the bytes for constant.
    pub(crate) fn load_constant(
        &mut self,
        clocks: &Clocks,
        races: &mut Races,
        stamp: Stamp,
        offset: u64,
        size: u64,
    ) -> Result<u64, Unordered> {
        let cells = self.cells.at(clocks, stamp.thread, offset, size);
        for cell in cells.map_err(|other| unordered(Conflict::Constant, other, true))? {
            let store = cell.history.as_ref().map_or(cell.store, |history| history.last());
            if !clocks.knew(stamp.thread, store) {
                races.meet(unordered(Conflict::Constant, store, true))?;
            }
            if cell.constant.as_ref().is_none_or(|before| clocks.knew(stamp.thread, **before)) {
                cell.constant = Some(Box::new(stamp));
            }
        }
        Ok(self.get(offset, size))
    }

    /// A plain store.
    pub(crate) fn store(
        &mut self,
        clocks: &Clocks,
        races: &mut Races,
        stamp: Stamp,
        (offset, size): (u64, u64),
        value: u64,
    ) -> Result<(), Unordered> {
        let me = stamp.thread;
        let cells = self.cells.at(clocks, me, offset, size);
        let cells = cells.map_err(|other| unordered(Conflict::Race, other, true))?;
        let whole = cells.len() == 1;
        for cell in cells {
            let store = cell.unknown_store(clocks, me).map(|other| (other, true));
            let other = store.or_else(|| Some((cell.unknown_load(clocks, me)?, false)));
            if let Some((other, other_stores)) = other {
                let race = unordered(Conflict::Race, other, other_stores);
                if whole { races.meet(race) } else { Err(race) }?;
            }
            if let Some(constant) = cell.constant.as_ref().filter(|load| !clocks.knew(me, ***load))
            {
                races.meet(unordered(Conflict::Constant, **constant, false))?;
            }
            *cell = Cell { store: stamp, ..Cell::NEW };
        }
        self.set(offset, size, value);
        Ok(())
    }

    /// A strong load.
    pub(crate) fn load_strong(
        &mut self,
        clocks: &mut Clocks,
        (choices, races): (&mut Choices, &mut Races),
        access: &Strong,
        offset: u64,
        size: u64,
    ) -> Result<u64, Unordered> {
        let history = self.history(clocks, races, access, (offset, size), false)?;
        Ok(history.load(clocks, choices, access))
    }

    /// Strong loads of locations of `size` bytes from `first` on, that are performed as one. `by_thread` has the access of
    /// the first thread, and the number of locations of each thread.
    pub(crate) fn load_whole(
        &mut self,
        clocks: &mut Clocks,
        (choices, races): (&mut Choices, &mut Races),
        by_thread: (&Strong, usize),
        (first, size): (u64, u64),
        values: &mut [u64],
    ) -> Result<(), Unordered> {
        let accesses = accesses(clocks, by_thread, (first, size), values.len());
        for (access, offset) in &accesses {
            self.history(clocks, races, access, (*offset, size), false)?;
        }
        let access = by_thread.0;
        let history = self.history(clocks, races, access, (first, size), false)?;
        let chosen = history.choose(clocks, choices, access.stamp.thread);
        let missed: Vec<u64> = history.wholes(chosen + 1).collect();
        // Each location gives the newest store that is in none of the vector stores that the first one did not read.
        let mut indices = vec![Some(chosen)];
        for (access, offset) in &accesses[1..] {
            let history = self.history(clocks, races, access, (*offset, size), false)?;
            indices.push(history.newest_before(clocks, access.stamp.thread, &missed));
        }
        let fits = indices.iter().all(Option::is_some);
        for (((access, offset), value), index) in accesses.iter().zip(values).zip(indices) {
            let history = self.history(clocks, races, access, (*offset, size), false)?;
            let index = index.filter(|_| fits).unwrap_or(history.newest());
            *value = history.load_at(clocks, access, index);
        }
        Ok(())
    }

    /// Whether the store has come that a waiting strong load of that number reads; or the load is an error.
    pub(crate) fn has_come(
        &mut self,
        clocks: &Clocks,
        me: Thread,
        (offset, size): (u64, u64),
        load: u64,
    ) -> bool {
        match self.cells.at(clocks, me, offset, size) {
            Ok([cell]) => {
                cell.history.as_ref().is_some_and(|history| history.has_come(clocks, me, load))
            }
            _ => true,
        }
    }

    /// A strong store.
    pub(crate) fn store_strong(
        &mut self,
        clocks: &mut Clocks,
        (choices, races): (&mut Choices, &mut Races),
        access: &Strong,
        (offset, size): (u64, u64),
        value: u64,
    ) -> Result<(), Unordered> {
        let history = self.history(clocks, races, access, (offset, size), true)?;
        if history.store(clocks, choices, access, value) {
            self.set(offset, size, value);
        }
        Ok(())
    }

    /// Strong stores to locations of `size` bytes from `first` on, that are performed as one. `by_thread` has the access of
    /// the first thread, and the number of locations of each thread.
    pub(crate) fn store_whole(
        &mut self,
        clocks: &mut Clocks,
        (choices, races): (&mut Choices, &mut Races),
        by_thread: (&Strong, usize),
        (first, size): (u64, u64),
        values: &[u64],
    ) -> Result<(), Unordered> {
        let accesses = accesses(clocks, by_thread, (first, size), values.len());
        for (access, offset) in &accesses {
            self.history(clocks, races, access, (*offset, size), true)?;
        }
        let access = by_thread.0;
        let history = self.history(clocks, races, access, (first, size), true)?;
        let chosen = history.place(clocks, choices, access.stamp.thread);
        let behind: Vec<u64> = history.wholes(chosen).collect();
        let mut places = vec![Some(chosen)];
        for (access, offset) in &accesses[1..] {
            let history = self.history(clocks, races, access, (*offset, size), true)?;
            places.push(history.place_before(clocks, access.stamp.thread, &behind));
        }
        let fits = places.iter().all(Option::is_some);
        for (((access, offset), &value), place) in accesses.iter().zip(values).zip(places) {
            let offset = *offset;
            let history = self.history(clocks, races, access, (offset, size), true)?;
            let place = place.filter(|_| fits).unwrap_or(history.newest() + 1);
            let is_last = history.store_at(clocks, access, place, value);
            history.forget(choices);
            if is_last {
                self.set(offset, size, value);
            }
        }
        Ok(())
    }

    /// An atomic operation, as a function of the value, which stores nothing where it has none. Returns the value before;
    /// whether the thread gets it is in `returns`.
    pub(crate) fn reduce(
        &mut self,
        clocks: &mut Clocks,
        (choices, races): (&mut Choices, &mut Races),
        access: &Strong,
        (offset, size, returns): (u64, u64, bool),
        reduction: impl Fn(u64) -> Option<u64>,
    ) -> Result<u64, Unordered> {
        let history = self.history(clocks, races, access, (offset, size), true)?;
        let before = history.reduce(clocks, choices, access, returns, reduction);
        let value = history.value();
        self.set(offset, size, value);
        Ok(before)
    }

    /// The strong accesses to a range, if a further one may be.
    fn history(
        &mut self,
        clocks: &Clocks,
        races: &mut Races,
        access: &Strong,
        (offset, size): (u64, u64),
        stores: bool,
    ) -> Result<&mut History, Unordered> {
        let me = access.stamp.thread;
        let value = self.get(offset, size);
        let race = |other| unordered(Conflict::Race, other, true);
        let cells = self.cells.at(clocks, me, offset, size).map_err(race)?;
        if cells.len() > 1 {
            if let Some(other) = cells.iter().find_map(|cell| cell.unknown_store(clocks, me)) {
                return Err(race(other));
            }
            self.cells.join(clocks, offset, size);
        }
        let cells = self.cells.at(clocks, me, offset, size).map_err(race)?;
        let cell = &mut cells[0];
        let Stamp { thread, epoch, .. } = cell.store;
        if !clocks.knows(me, thread, epoch) {
            races.meet(race(cell.store))?;
        }
        if stores {
            if let Some(other) = cell.loads.unknown(clocks, me) {
                races.meet(unordered(Conflict::Race, other, false))?;
            }
            if let Some(constant) = cell.constant.as_ref().filter(|load| !clocks.knew(me, ***load))
            {
                races.meet(unordered(Conflict::Constant, **constant, false))?;
            }
        }
        let store = cell.store;
        let history = cell.history.get_or_insert_with(|| Box::new(History::new(store, value)));
        if let Some((other, is_store)) = history.unreached(clocks, access, stores) {
            races.meet(unordered(Conflict::Scope, other, is_store))?;
        }
        Ok(history)
    }

    fn get(&self, offset: u64, size: u64) -> u64 {
        let at = offset as usize;
        match size {
            8 => u64::from_le_bytes(self.bytes[at..at + 8].try_into().unwrap_or_default()),
            4 => u32::from_le_bytes(self.bytes[at..at + 4].try_into().unwrap_or_default()).into(),
            2 => u16::from_le_bytes(self.bytes[at..at + 2].try_into().unwrap_or_default()).into(),
            _ => self.bytes[at].into(),
        }
    }

    fn set(&mut self, offset: u64, size: u64, value: u64) {
        let at = offset as usize;
        self.bytes[at..at + size as usize].copy_from_slice(&value.to_le_bytes()[..size as usize]);
        if let Some(stored) = &mut self.stored {
            stored[at / 64] |= (u64::MAX >> (64 - size)) << (offset % 64);
        }
    }
}
