//! Reads of another process's memory.

use super::system::Errno;

/// Why the memory of another process was not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unread {
    /// The process has ended.
    Ended,
    /// This process may not read that one.
    Forbidden(Errno),
    /// The process does not have the memory.
    Absent(Errno),
}

/// Copies stretches of another process's memory, each given by its address there, its address here and its bytes.
///
/// # Safety
/// The memory here is writable, and no other thread accesses it meanwhile. The other process may refuse, or not have
/// the memory there: then the read fails without harm.
pub(crate) unsafe fn read(pid: u32, stretches: &[(u64, *mut u8, usize)]) -> Result<(), Unread> {
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
            Ok(_) => return Err(Unread::Absent(Errno::FAULT)),
            Err(_) => {
                let error = std::io::Error::last_os_error();
                return Err(match Errno::from_io_error(&error).unwrap_or(Errno::INVAL) {
                    Errno::SRCH => Unread::Ended,
                    errno @ (Errno::PERM | Errno::ACCESS) => Unread::Forbidden(errno),
                    errno => Unread::Absent(errno),
                });
            }
        }
    }
    Ok(())
}
