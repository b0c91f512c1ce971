//! Whether the processes of other ranks are alive, and how they ended.

use std::os::fd::OwnedFd;

/// Another rank's process.
pub(super) struct Peer {
    /// Its number, as it knows itself.
    pub(super) pid: u32,
    /// A descriptor of it, which becomes readable when it ends.
    pub(super) pidfd: OwnedFd,
}

/// What a launcher writes of the ranks that it has seen end.
pub(super) struct Endings;

impl Endings {
    pub(super) fn from_env(_nranks: u32) -> Option<Self> {
        None
    }
}

/// Which of the processes have ended.
pub(super) fn ended(peers: &[Peer], _me: usize) -> Vec<bool> {
    vec![false; peers.len()]
}

/// How a process ended, in words.
pub(super) fn how(_rank: usize, _peer: &Peer, _endings: Option<&Endings>) -> String {
    "ended".to_owned()
}
