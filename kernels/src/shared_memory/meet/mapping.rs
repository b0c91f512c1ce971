//! Mappings of the memory that ranks share.

use std::ptr;

use rustix::fd::BorrowedFd;
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use super::system::refused;
use crate::Error;

/// The access of a rank to the arena.
pub(crate) const RANK: ProtFlags = ProtFlags::READ.union(ProtFlags::WRITE);

/// Maps `bytes` bytes of a file, at an address that the system chooses.
pub(crate) fn map(fd: BorrowedFd<'_>, bytes: usize, access: ProtFlags) -> Result<*mut u8, Error> {
    let shared = MapFlags::SHARED | MapFlags::NORESERVE;
    // SAFETY: a new mapping, which overlaps no other.
    let base = unsafe { mmap(ptr::null_mut(), bytes, access, shared, fd, 0) };
    base.map(<*mut _>::cast).map_err(|error| unmapped("a mapping (mmap)", bytes, error))
}

/// Returns the error of a mapping that the system refuses.
pub(crate) fn unmapped(what: &str, bytes: usize, errno: Errno) -> Error {
    let advice = match errno {
        Errno::NOMEM => "; raise the limit of addresses (ulimit -v), or use fewer ranks",
        _ => "",
    };
    let what = format!("{what} of {bytes} bytes of addresses, which ranks share{advice}");
    match advice {
        "" => refused(what, errno),
        _ => Error::SystemRefused { what: format!("the system refuses {what} ({errno})") },
    }
}

/// Checks that this process has the addresses to map a file of `bytes` bytes.
pub(crate) fn can_map(fd: BorrowedFd<'_>, bytes: usize) -> Result<(), Error> {
    let base = map(fd, bytes, RANK)?;
    // SAFETY: this function has just mapped it, and no other code has the address.
    _ = unsafe { munmap(base.cast(), bytes) };
    Ok(())
}
