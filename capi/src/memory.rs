//! Memory that all ranks can touch, lent until it is given back or its world is left.

use std::ffi::c_void;

use roundelay::Lent;
#[cfg(target_os = "linux")]
use roundelay_kernels::cuda::MappableMemory;

use crate::status::{Outcome, bad};
use crate::table::HandleTable;
use crate::worlds;

/// Memory that worlds have lent, found by its address, not by its handle.
static LENT: HandleTable<Piece> = HandleTable::new("memory");

struct Piece {
    world: u64,
    at: usize,
    _memory: LentMemory,
}

enum LentMemory {
    /// As wide as the widest element type, so that it is aligned for all.
    Host { _lent: Lent<u64> },
    #[cfg(target_os = "linux")]
    Device { _of_rank: MappableMemory },
}

pub(crate) fn alloc(handle: u64, bytes: u64) -> Outcome<*mut c_void> {
    worlds::with(handle, |world| {
        let words = usize::try_from(bytes.div_ceil(8)).unwrap_or(usize::MAX);
        let mut lent = world.alloc::<u64>(words)?;
        let memory: *mut c_void = lent.as_mut_ptr().cast();
        let lent = LentMemory::Host { _lent: lent };
        LENT.insert(Piece { world: handle, at: memory.addr(), _memory: lent });
        Ok(memory)
    })
}

/// Lends memory of the rank's GPU.
#[cfg(target_os = "linux")]
pub(crate) fn alloc_on_device(handle: u64, bytes: u64) -> Outcome<*mut c_void> {
    let device = worlds::with_device(handle, |calls| Ok(calls.rank().context().ordinal()))?;
    let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
    let made = MappableMemory::new(device, bytes).map_err(roundelay::Error::from)?;
    let at = made.address() as usize;
    LENT.insert(Piece { world: handle, at, _memory: LentMemory::Device { _of_rank: made } });
    Ok(std::ptr::without_provenance_mut(at))
}

pub(crate) fn free(memory: *mut c_void) -> Outcome<()> {
    if memory.is_null() {
        return Ok(());
    }
    let freed = LENT.take_all(|piece| piece.at == memory.addr());
    if freed.is_empty() {
        let fix = "give what roundelay_alloc or roundelay_device_alloc returned, once, and before its world is left";
        return Err(bad(format!("no memory was lent at {memory:p}"), fix));
    }
    Ok(())
}

/// Takes back the memory that a world has lent.
pub(crate) fn forget(world: u64) {
    drop(LENT.take_all(|piece| piece.world == world));
}
