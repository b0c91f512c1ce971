//! The kernel's information about a process that has ended: from Linux 6.15 on, once its parent has reaped it.

use std::os::fd::OwnedFd;

use rustix::ioctl::{Opcode, Updater, ioctl, opcode};

use super::Ending;

/// The first version of the kernel's `struct pidfd_info`; later versions only add fields at the end.
#[repr(C)]
#[derive(Default)]
struct PidfdInfo {
    /// The requested fields, and after the call the available fields.
    mask: u64,
    cgroup: u64,
    pid: u32,
    tgid: u32,
    ppid: u32,
    /// Users and groups: real, effective, saved, of the file system.
    ids: [u32; 8],
    /// The status as `wait` returns it.
    exit_code: i32,
}

/// `PIDFD_INFO_EXIT`
const EXIT: u64 = 1 << 3;
/// `PIDFD_GET_INFO`: the kernel looks at the size in it.
const GET_INFO: Opcode = opcode::read_write::<PidfdInfo>(0xff, 11);

/// Returns how a process ended, if that is known: not before the process is reaped, and not by older kernels.
pub(super) fn ending(pidfd: &OwnedFd) -> Option<Ending> {
    let mut info = PidfdInfo { mask: EXIT, ..PidfdInfo::default() };
    // SAFETY: The opcode carries the size of the structure, which has the kernel's layout, and the kernel reads and
    // writes no more bytes. On a descriptor that is no pidfd, the opcode has no meaning and is refused.
    unsafe { ioctl(pidfd, Updater::<GET_INFO, _>::new(&mut info)) }.ok()?;
    (info.mask & EXIT != 0).then(|| of_status(info.exit_code as u32))
}

/// Decodes a status: the low seven bits are the signal, the second byte is the exit code.
fn of_status(status: u32) -> Ending {
    match status & 0x7f {
        0 => Ending::Exited(status >> 8 & 0xff),
        signal => Ending::Killed(signal),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_an_exit_or_a_signal() {
        assert_eq!(size_of::<PidfdInfo>(), 64);
        assert_eq!(of_status(3 << 8), Ending::Exited(3));
        assert_eq!(of_status(9), Ending::Killed(9));
        // A status with a core dump.
        assert_eq!(of_status(0x80 | 6), Ending::Killed(6));
    }
}
