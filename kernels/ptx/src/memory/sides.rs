//! The order of accesses by the two addresses of one byte: its window's own one, and a multicast one.
//!
//! PTX orders an access by one address before an access by the other one only where the path that orders them has a
//! `fence.proxy.alias`. So bytes with a multicast address have their accesses noted once more, for each of the two addresses.

use super::clock::{Clocks, Stamp, Thread};
use super::reads::Reads;
use super::region::{Conflict, Unordered};
use super::{Alias, Memory, Refusal, Target};
use crate::program::MemoryAccess;

/// The address by which a byte is accessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// That of its window, or of a peer's mapping of it.
    Own,
    /// The multicast address.
    Multicast,
}

/// The last accesses to a byte by one of its addresses.
#[derive(Clone, Debug)]
struct Accesses {
    store: Stamp,
    loads: Reads,
}

/// The bytes of a window that a multicast address stands for.
#[derive(Debug)]
pub(crate) struct Sides {
    /// The address of the first byte in its window.
    first: u64,
    bytes: Vec<[Accesses; 2]>,
}

impl Sides {
    /// The bytes for which multicast addresses stand, without accesses.
    pub(crate) fn of(aliases: &[Alias]) -> Vec<Self> {
        let none = || Accesses { store: Stamp::BEFORE, loads: Reads::None };
        let bytes = |alias: &Alias| (0..alias.bytes).map(|_| [none(), none()]).collect();
        let multicast = aliases.iter().filter(|alias| alias.multicast);
        let each = multicast.flat_map(|alias| alias.of.iter().map(move |&of| (of, alias)));
        each.map(|(first, alias)| Self { first, bytes: bytes(alias) }).collect()
    }

    /// Notes an access to a byte; an error if it is ordered with one by the other address, and no fence is between them.
    fn access(
        &mut self,
        clocks: &Clocks,
        (stamp, byte): (Stamp, u64),
        side: Side,
        stores: bool,
    ) -> Result<(), Unordered> {
        let both = &mut self.bytes[byte as usize];
        let [mine, others] = match (side, both) {
            (Side::Own, [own, multicast]) => [own, multicast],
            (Side::Multicast, [own, multicast]) => [multicast, own],
        };
        let lacks = |other: &Stamp| lacks_fence(clocks, stamp.thread, *other);
        let conflict = Conflict::Alias;
        if lacks(&others.store) {
            return Err(Unordered { conflict, other: others.store, other_stores: true });
        }
        // A store in place of what its own thread has loaded depends on the load, which so cannot read it.
        let mut by_others = others.loads.iter().filter(|load| load.thread != stamp.thread);
        if let Some(other) = by_others.find(lacks).filter(|_| stores) {
            return Err(Unordered { conflict, other, other_stores: false });
        }
        if stores {
            *mine = Accesses { store: stamp, loads: Reads::None };
        } else {
            mine.loads.add_last(clocks, stamp);
        }
        Ok(())
    }
}

/// Whether an access happened before the next one of `me`, on no path with a fence between aliases.
fn lacks_fence(clocks: &Clocks, me: Thread, Stamp { thread, epoch, .. }: Stamp) -> bool {
    clocks.knows(me, thread, epoch) && !clocks.is_fenced(me, thread, epoch)
}

impl Memory {
    /// Notes an access of `bytes` bytes by one of their addresses, where they have a multicast address too.
    pub(crate) fn note_side(
        &mut self,
        access: &MemoryAccess,
        (thread, place): (Thread, u32),
        (address, bytes): (u64, u64),
        (side, stores): (Side, bool),
    ) -> Result<(), Refusal> {
        if self.sides.is_empty() {
            return Ok(());
        }
        let Ok(Target::Global(global, offset)) = self.target(thread, access.space, address, 1)
        else {
            return Ok(());
        };
        let first = self.globals[global].address + offset;
        let stamp = self.clocks.stamp(thread, place);
        for sides in &mut self.sides {
            let within =
                |address: u64| address.saturating_sub(sides.first).min(sides.bytes.len() as u64);
            for byte in within(first)..within(first + bytes) {
                let noted = sides.access(&self.clocks, (stamp, byte), side, stores);
                noted.map_err(Refusal::Unordered)?;
            }
        }
        Ok(())
    }
}
