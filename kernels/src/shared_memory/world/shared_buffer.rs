//! Memory of the arena that a rank lends to its caller, so that other ranks can access it in place.

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::slice;
use std::sync::{Arc, PoisonError};

use roundelay_core::ids::RankId;

use super::World;
use super::memory::arena::LINE;
use crate::{Element, Error};

/// Elements in the memory that the ranks of a world share: calls on them stage no copies.
///
/// The buffer is a slice of `T`, all zero at first. Other ranks access it only in calls to which this rank passes it.
pub struct Lent<T: Element> {
    world: Arc<World>,
    at: usize,
    len: usize,
    bytes: usize,
    elements: PhantomData<T>,
}

impl World {
    /// Lends `len` elements of shared memory, all zero.
    ///
    /// # Errors
    /// E0407 where not enough memory is left; E0427 in a forked child.
    pub fn alloc<T: Element>(self: &Arc<Self>, len: usize) -> Result<Lent<T>, Error> {
        self.here()?;
        let too_large = |why: &str| {
            let size = T::DTYPE.size();
            Error::TooLarge {
                what: format!(
                    "{len} elements of {size} bytes of shared memory for rank {}: {why}",
                    self.named(self.rank)
                ),
            }
        };
        let bytes =
            len.checked_mul(T::DTYPE.size()).and_then(|b| b.max(1).checked_next_multiple_of(LINE));
        let bytes = bytes.ok_or_else(|| too_large("more than memory can address"))?;
        let left = available();
        if bytes as u64 > left {
            return Err(too_large(&format!("{left} bytes of memory are left")));
        }
        let mut heap = self.heap.lock().unwrap_or_else(PoisonError::into_inner);
        let at =
            heap.take(bytes).ok_or_else(|| too_large("the rank's part of the arena is used up"))?;
        drop(heap);
        let lent: Lent<T> = Lent { world: self.clone(), at, len, bytes, elements: PhantomData };
        // SAFETY: the memory was just taken out of the heap, so no other buffer has it; zero is a value of every
        // element type.
        unsafe { lent.address().cast::<u8>().write_bytes(0, bytes) };
        Ok(lent)
    }
}

/// Returns the bytes of memory that can be used before the system ends processes: the least of the machine's available
/// memory and the rest of the limit of this process's control group. A limit that the system does not report does not
/// count.
fn available() -> u64 {
    let number = |text: String| text.trim().parse::<u64>().ok();
    let read = |path: &str| std::fs::read_to_string(path).ok();
    let machine = read("/proc/meminfo").and_then(|text| {
        let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?.trim();
        Some(line.strip_suffix("kB")?.trim().parse::<u64>().ok()? << 10)
    });
    let most = read("/sys/fs/cgroup/memory.max").and_then(number);
    let used = read("/sys/fs/cgroup/memory.current").and_then(number);
    let group = most.zip(used).map(|(most, used)| most.saturating_sub(used));
    machine.unwrap_or(u64::MAX).min(group.unwrap_or(u64::MAX))
}

impl<T: Element> Lent<T> {
    fn address(&self) -> *mut T {
        let layout = self.world.shared.arena.layout;
        self.world
            .shared
            .arena
            .address(layout.heap_of(self.world.rank) + self.at, self.bytes)
            .cast()
    }

    /// Returns the rank to which the memory was lent.
    pub fn rank(&self) -> RankId {
        self.world.named(self.world.rank)
    }
}

impl<T: Element> Deref for Lent<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        if !self.world.shared.arena.is_here() {
            // A forked child does not have the arena.
            return &[];
        }
        // SAFETY: `alloc` initialized the memory, aligned to cache lines; other ranks access it only in calls, which
        // borrow the buffer.
        unsafe { slice::from_raw_parts(self.address(), self.len) }
    }
}

impl<T: Element> DerefMut for Lent<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        if !self.world.shared.arena.is_here() {
            return &mut [];
        }
        // SAFETY: `alloc` initialized the memory, aligned to cache lines; other ranks access it only in calls, which
        // borrow the buffer, and `self` is borrowed exclusively.
        unsafe { slice::from_raw_parts_mut(self.address(), self.len) }
    }
}

impl<T: Element> fmt::Debug for Lent<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lent").field("len", &self.len).finish_non_exhaustive()
    }
}

impl<T: Element> Drop for Lent<T> {
    fn drop(&mut self) {
        if self.world.shared.arena.is_here() {
            self.world
                .heap
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .give(self.at, self.bytes);
        }
    }
}
