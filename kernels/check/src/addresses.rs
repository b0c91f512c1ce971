//! The memory of a run: each rank's buffers at addresses of their own, with gaps that nothing may touch.

use std::ops::Range;

use roundelay_ptx::machine::{Alias, Window};

use crate::expression::Numbers;
use crate::harness::{Buffer, Harness, Order, PointerTable};

/// The first address.
const FIRST: u64 = 1 << 20;
/// The bytes at least between two buffers; an access to them is out of bounds.
const APART: u64 = 256;

/// A buffer of a rank, or a range of the harness itself.
#[derive(Clone, Debug)]
pub(crate) struct Room {
    pub(crate) address: u64,
    pub(crate) bytes: u64,
}

/// A buffer that is a part of another one: the numbers of both, and for each rank its first byte and its bytes.
#[derive(Clone, Debug)]
struct BufferPart {
    buffer: usize,
    whole: usize,
    places: Vec<(u64, u64)>,
}

/// The memory of a run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Layout {
    pub(crate) rooms: Vec<Room>,
    pub(crate) windows: Vec<Window>,
    pub(crate) aliases: Vec<Alias>,
    ranks: usize,
    free: u64,
    total: u64,
    most: u64,
    /// Buffers that are parts of others.
    parts: Vec<BufferPart>,
}

impl Layout {
    /// Lays out the buffers of all ranks. `bytes` has the size of each buffer at each rank.
    pub(crate) fn new(harness: &Harness, ranks: u32, bytes: &[Vec<u64>]) -> Result<Self, String> {
        let most = harness.run.limits.bytes;
        let mut layout = Self { ranks: ranks as usize, free: FIRST, most, ..Self::default() };
        for (number, buffer) in harness.memory.iter().enumerate() {
            if let Some((whole, places)) = &buffer.part {
                let whole = harness.buffer(whole).unwrap_or(number);
                layout.parts.push(BufferPart { buffer: number, whole, places: places.clone() });
            }
            for rank in 0..ranks {
                // No kernel may rely on more than the alignment that is declared.
                let odd = (rank + number as u32) % 2 == 1 && !buffer.multicast;
                let shift = u64::from(odd) * buffer.align;
                let name = format!("{} of rank {rank}", buffer.name);
                let bytes = bytes[number][rank as usize];
                layout.add(name, bytes, (buffer.align, shift))?;
            }
            if buffer.multicast {
                let of = (0..ranks).map(|rank| layout.address(number, rank)).collect();
                let (name, address) = (buffer.name.clone(), layout.free.next_multiple_of(APART));
                let bytes = bytes[number].iter().copied().min().unwrap_or(0);
                layout.free = address + bytes + APART;
                layout.aliases.push(Alias { name, address, bytes, of, multicast: true });
            }
        }
        Ok(layout)
    }

    /// Adds a range of the harness itself, and returns its number.
    pub(crate) fn hidden(&mut self, name: String, bytes: u64) -> Result<usize, String> {
        self.add(name, bytes, (16, 0))
    }

    fn add(
        &mut self,
        name: String,
        bytes: u64,
        (align, shift): (u64, u64),
    ) -> Result<usize, String> {
        self.total = self.total.saturating_add(bytes);
        if self.total > self.most {
            return Err(format!("the memory of a run has more than {} bytes", self.most));
        }
        let address = self.free.next_multiple_of((2 * align).max(APART)) + shift;
        self.free = address + bytes + APART;
        self.rooms.push(Room { address, bytes });
        self.windows.push(Window { name, address, bytes: vec![0; bytes as usize] });
        Ok(self.rooms.len() - 1)
    }

    /// The number of a rank's buffer among the rooms.
    pub(crate) fn room(&self, buffer: usize, rank: u32) -> usize {
        buffer * self.ranks + rank as usize
    }

    /// The number of the buffer of a room, and its rank. The rooms of the harness itself have numbers behind those of all
    /// buffers.
    pub(crate) fn buffer(&self, room: usize) -> (usize, u32) {
        (room / self.ranks, (room % self.ranks) as u32)
    }

    /// The room of a rank's buffer, and the bytes of it that are the buffer.
    pub(crate) fn range(&self, buffer: usize, rank: u32) -> (usize, Range<u64>) {
        match self.parts.iter().find(|part| part.buffer == buffer) {
            Some(BufferPart { whole, places, .. }) => {
                let (first, bytes) = places[rank as usize];
                (self.room(*whole, rank), first..first + bytes)
            }
            None => {
                let room = self.room(buffer, rank);
                (room, 0..self.rooms[room].bytes)
            }
        }
    }

    pub(crate) fn address(&self, buffer: usize, rank: u32) -> u64 {
        let (room, bytes) = self.range(buffer, rank);
        self.rooms[room].address + bytes.start
    }

    /// The number of the room that has an address, or that it is closest behind; rooms have rising addresses.
    pub(crate) fn near(&self, address: u64) -> Option<usize> {
        self.rooms.iter().rposition(|room| room.address <= address)
    }

    /// Writes the addresses of tables. `numbers` has those of a rank.
    pub(crate) fn write_tables(
        &mut self,
        harness: &Harness,
        numbers: impl Fn(u32) -> Numbers,
    ) -> Result<(), String> {
        let ranks = self.ranks as u32;
        for (number, buffer) in harness.memory.iter().enumerate() {
            let Some(PointerTable { of, order, by_rank, of_all }) = &buffer.pointers else {
                continue;
            };
            for rank in 0..ranks {
                let peers: Vec<u32> = in_order(*order, rank, ranks).collect();
                let by_buffer = of.iter().flat_map(|of| peers.iter().map(move |peer| (of, peer)));
                let by_peer = peers.iter().flat_map(|peer| of.iter().map(move |of| (of, peer)));
                let all: Vec<_> = if *by_rank { by_peer.collect() } else { by_buffer.collect() };
                let mut bytes = Vec::new();
                for ((name, offset), &peer) in all {
                    let Some(of) = harness.buffer(name) else { continue };
                    let offset = offset.value(&numbers(peer))?;
                    let address = self.address(of, peer).wrapping_add_signed(offset);
                    bytes.extend(address.to_le_bytes());
                }
                for name in of_all {
                    let alias = self.aliases.iter().find(|alias| alias.name == *name);
                    bytes.extend(alias.map_or(0, |alias| alias.address).to_le_bytes());
                }
                let room = self.room(number, rank);
                self.windows[room].bytes = bytes;
            }
        }
        Ok(())
    }
}

/// The bytes of a table of pointers.
pub(crate) fn table_bytes(buffer: &Buffer, ranks: u32) -> Option<u64> {
    let words =
        |table: &PointerTable| table.of.len() as u64 * u64::from(ranks) + table.of_all.len() as u64;
    buffer.pointers.as_ref().map(|table| words(table) * 8)
}

/// The ranks in an order.
pub(crate) fn in_order(order: Order, own: u32, ranks: u32) -> impl Iterator<Item = u32> + Clone {
    let first = if order == Order::OwnFirst { own } else { 0 };
    (0..ranks).map(move |at| (first + at) % ranks)
}
