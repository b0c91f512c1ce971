//! How processes meet: at an abstract socket of rank 0, which hands out a file of memory and the processes' descriptors.
//!
//! The others connect, show the secret of the world and say what they are. When all have come, each is given the memory
//! and the processes of all, and answers that it holds them; then all are told to go. So all succeed or all fail, but for a
//! process that ends in the very last step: the others then have its descriptor and find out. Nothing has a name in the file
//! system, and the socket's name is gone before anyone goes.

mod arena;
mod guest;
mod host;
mod line;
mod wire;

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use roundelay_core::schedule::RANK_LIMIT;
use rustix::process::{PidfdFlags, getpid, pidfd_open};

use super::ending::Peer;
use super::system::{moment, refused};
use super::unique::UniqueId;
use crate::Error;

/// What a process holds when all have met.
#[derive(Debug)]
pub(super) struct Joined {
    /// The shared memory, of the size that was asked for, zeroed, sealed against shrinking and growing.
    pub(super) arena: OwnedFd,
    /// All ranks, this one too.
    pub(super) peers: Vec<Peer>,
}

/// What runs here. Ranks of another version may lay out the arena in another way.
const VERSION: &str = concat!("roundelay ", env!("CARGO_PKG_VERSION"));

/// What a process brings to the world that it joins.
#[derive(Clone, Copy)]
struct Offer<'a> {
    id: &'a UniqueId,
    nranks: u32,
    rank: u32,
    bytes: u64,
    version: &'a str,
    /// How long it waits.
    deadline: Duration,
    /// When that is over.
    until: Instant,
}

/// Meets the other ranks of the world `id` and shares `bytes` bytes of zeroed memory with them.
///
/// Whoever waits least decides how long all wait: then all are told which ranks are missing.
///
/// # Errors
/// E0427 where the ranks cannot meet, which all who came are told alike; E0429 where the system refuses something;
/// [`Error::NoRanks`] where there cannot be so many.
pub(super) fn join(
    id: &UniqueId,
    nranks: u32,
    rank: u32,
    bytes: u64,
    deadline: Duration,
) -> Result<Joined, Error> {
    let until = moment(deadline);
    meet(Offer { id, nranks, rank, bytes, version: VERSION, deadline, until })
}

fn meet(offer: Offer<'_>) -> Result<Joined, Error> {
    let Offer { nranks, rank, .. } = offer;
    if nranks == 0 || nranks > RANK_LIMIT {
        return Err(Error::NoRanks { nranks });
    }
    offer.id.check()?;
    match rank {
        0 if nranks == 1 => {
            Ok(Joined { arena: arena::make(offer.bytes)?, peers: vec![own_process()?] })
        }
        0 => host::meet(offer),
        _ if nranks == 1 => Err(offer.out_of_range()),
        _ => guest::meet(offer),
    }
}

/// This process, for the others to watch.
fn own_process() -> Result<Peer, Error> {
    let pidfd = pidfd_open(getpid(), PidfdFlags::empty())
        .map_err(|errno| refused("a descriptor of this process (pidfd_open)", errno))?;
    Ok(Peer { pid: std::process::id(), pidfd })
}

impl Offer<'_> {
    /// A rank that none of these ranks can have.
    fn out_of_range(&self) -> Error {
        wire::out_of_range(std::process::id(), self.rank, self.nranks)
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
