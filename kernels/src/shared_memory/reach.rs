//! Reading the memory of another rank's process, where the system lets one do so: found out by trying, once, at a place
//! whose contents are known.

use std::sync::atomic::Ordering;

use rustix::io::Errno;

use super::arena::Arena;

/// The line of a seat where others find what to try, after the words of the launch.
pub(super) const LINE: usize = 6;
/// Words of it: where they may read, what is there, and whether this rank can read from all others.
pub(super) const PLACE: usize = 2 * 8;
pub(super) const VALUE: usize = 3 * 8;
pub(super) const VERDICT: usize = 4 * 8;
pub(super) const CAN: u64 = 1;
pub(super) const CANNOT: u64 = 2;

/// What a rank knows of whose memory can be read.
pub(super) struct Reach {
    /// What others try to read: it stays where it is.
    _probe: Box<u64>,
    pub(super) tried: bool,
    /// Whether all can read from all.
    pub(super) all: bool,
}

impl Reach {
    /// Tells the others what to try.
    pub(super) fn new(arena: &Arena, rank: usize) -> Self {
        let mut probe = Box::new(0);
        let place = std::ptr::from_ref(&*probe).addr() as u64;
        // Some value that nobody else has at this place.
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
/// What lies here is writable and nobody else's meanwhile. The other process may refuse, or not have such memory: that
/// is an error and no harm.
pub(super) unsafe fn read(pid: u32, stretches: &[(u64, *mut u8, usize)]) -> Result<(), Errno> {
    let vector = |base: *mut u8, len| libc::iovec { iov_base: base.cast(), iov_len: len };
    // As many as the system takes at once.
    for part in stretches.chunks(1024) {
        let here: Vec<_> = part.iter().map(|(_, to, len)| vector(*to, *len)).collect();
        let there: Vec<_> = part
            .iter()
            .map(|(from, _, len)| vector(std::ptr::without_provenance_mut(*from as usize), *len))
            .collect();
        let bytes: usize = part.iter().map(|(_, _, len)| len).sum();
        let count = part.len() as libc::c_ulong;
        // SAFETY: the vectors are as long as is said; the caller's promise for what they point at here.
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
            // The rest of it is memory that the other does not have.
            Ok(_) => return Err(Errno::FAULT),
            Err(_) => {
                let error = std::io::Error::last_os_error();
                return Err(Errno::from_io_error(&error).unwrap_or(Errno::INVAL));
            }
        }
    }
    Ok(())
}
