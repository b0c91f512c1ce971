//! Whether the processes of other ranks are alive, and how they ended.

use std::os::fd::OwnedFd;

/// Another rank's process.
pub(super) struct Peer {
    /// Its number, as it knows itself.
    pub(super) pid: u32,
    /// A descriptor of it, which becomes readable when it ends.
    pub(super) pidfd: OwnedFd,
}
