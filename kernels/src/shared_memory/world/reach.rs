//! Reads of the memory of another rank's process, where the system allows them. A rank finds this out by one read of a
//! place with known contents.

use std::sync::atomic::Ordering;

use rustix::io::Errno;

use super::memory::arena::Arena;

/// The line of a seat with the place that other ranks try to read, after the words of the launch.
pub(crate) const LINE: usize = 6;
/// Offsets of the words of this line: the address to read, the value there, and whether this rank can read from all
/// other ranks.
pub(crate) const PLACE: usize = 2 * 8;
pub(crate) const VALUE: usize = 3 * 8;
pub(crate) const VERDICT: usize = 4 * 8;
pub(crate) const CAN: u64 = 1;
pub(crate) const CANNOT: u64 = 2;

/// A rank's knowledge of the memory that ranks can read.
pub(crate) struct Reach {
    /// The value that other ranks try to read; its address never changes.
    _probe: Box<u64>,
    pub(crate) tried: bool,
    /// Whether all ranks can read from all ranks.
    pub(crate) all: bool,
}

impl Reach {
    /// Publishes the address and the value that other ranks try to read.
    pub(crate) fn new(arena: &Arena, rank: usize) -> Self {
        let mut probe = Box::new(0);
        let place = std::ptr::from_ref(&*probe).addr() as u64;
        // A value that no other process has at this address.
        *probe = place.rotate_left(24) ^ u64::from(std::process::id()) ^ 0x9e37_79b9_7f4a_7c15;
        let at = arena.layout.own(rank, LINE);
        arena.word(at + VALUE).store(*probe, Ordering::Relaxed);
        arena.word(at + PLACE).store(place, Ordering::Release);
        Self { _probe: probe, tried: false, all: false }
    }
}

/// Copies stretches of another process's memory, each given by its address there, its address here and its bytes.
///
/// # Safety
/// The memory here is writable, and no other thread accesses it meanwhile. The other process may refuse, or not have
/// the memory there: then the read fails without harm.
pub(crate) unsafe fn read(pid: u32, stretches: &[(u64, *mut u8, usize)]) -> Result<(), Errno> {
    let vector = |base: *mut u8, len| libc::iovec { iov_base: base.cast(), iov_len: len };
    // The most stretches that the system takes at once.
    for part in stretches.chunks(1024) {
        let here: Vec<_> = part.iter().map(|(_, to, len)| vector(*to, *len)).collect();
        let there: Vec<_> = part
            .iter()
            .map(|(from, _, len)| vector(std::ptr::without_provenance_mut(*from as usize), *len))
            .collect();
        let bytes: usize = part.iter().map(|(_, _, len)| len).sum();
        let count = part.len() as libc::c_ulong;
        // SAFETY: `count` is the length of both vectors; the caller's promise covers the memory here.
        let read = unsafe {
            libc::process_vm_readv(
                pid.cast_signed(),
                here.as_ptr(),
                count,
                there.as_ptr(),
                count,
                0,
            )
        };
        match usize::try_from(read) {
            Ok(read) if read == bytes => {}
            // The other process does not have the rest of the memory.
            Ok(_) => return Err(Errno::FAULT),
            Err(_) => {
                let error = std::io::Error::last_os_error();
                return Err(Errno::from_io_error(&error).unwrap_or(Errno::INVAL));
            }
        }
    }
    Ok(())
}
