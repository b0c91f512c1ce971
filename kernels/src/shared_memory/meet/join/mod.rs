//! How processes meet: at an abstract socket of rank 0, which hands out a file of memory and the processes'
//! descriptors.
//!
//! The other ranks connect, show the secret of the world and say what rank they are. When all ranks have come, rank 0
//! sends each of them the memory and the descriptors of all processes, and each answers that it holds them; then rank 0
//! tells all ranks to go. So the join succeeds for all ranks or fails for all, except for a process that ends in the
//! very last step: the other ranks have its descriptor and find out. Nothing has a name in the file system, and the
//! socket's name is gone before any rank goes.

mod arena;
mod guest;
mod host;
pub(crate) mod line;
mod wire;

use std::fs::File;
use std::time::{Duration, Instant};

use roundelay_core::schedule::RANK_LIMIT;
use rustix::process::{PidfdFlags, getpid, pidfd_open};

use super::ending::Peer;
use super::system::{moment, refused};
use super::unique::UniqueId;
use crate::Error;

pub(crate) use arena::{check as check_arena, make as make_arena};

/// The resources of a process when all ranks have met.
#[derive(Debug)]
pub(crate) struct Joined {
    /// The shared memory: of the requested size, zeroed, sealed against shrinking and growing.
    pub(crate) arena: File,
    /// The processes of all ranks, this one included.
    pub(crate) peers: Vec<Peer>,
}

/// The version of this program. Ranks of another version may lay out the arena in another way.
pub(crate) const VERSION: &str = concat!("roundelay ", env!("CARGO_PKG_VERSION"));

/// The request of a process that joins a world.
#[derive(Clone, Copy)]
struct Offer<'a> {
    id: &'a UniqueId,
    nranks: u32,
    rank: u32,
    bytes: u64,
    /// Bytes that rank 0 writes into the memory before another rank has it, and their position.
    known: (u64, &'a [u8]),
    version: &'a str,
    /// How long the process waits.
    deadline: Duration,
    /// The moment at which this time is over.
    until: Instant,
}

/// Meets the other ranks of the world `id` and shares `bytes` bytes of memory with them, zeroed but for the bytes that
/// rank 0 knows.
///
/// The shortest deadline holds for all ranks: then each rank gets an error with the missing ranks.
///
/// # Errors
/// E0427 where the ranks cannot meet, with one text for all ranks that came; E0429 where the system refuses a resource;
/// [`Error::NoRanks`] for no ranks or too many.
pub(crate) fn join(
    id: &UniqueId,
    nranks: u32,
    rank: u32,
    (bytes, known): (u64, (u64, &[u8])),
    deadline: Duration,
) -> Result<Joined, Error> {
    let until = moment(deadline);
    meet(Offer { id, nranks, rank, bytes, known, version: VERSION, deadline, until })
}

fn meet(offer: Offer<'_>) -> Result<Joined, Error> {
    let Offer { nranks, rank, .. } = offer;
    if nranks == 0 || nranks > RANK_LIMIT {
        return Err(Error::NoRanks { nranks });
    }
    offer.id.check()?;
    match rank {
        0 if nranks == 1 => Ok(Joined {
            arena: arena::make(offer.bytes, offer.known)?,
            peers: vec![own_process()?],
        }),
        0 => host::meet(offer),
        _ if nranks == 1 => Err(offer.out_of_range()),
        _ => guest::meet(offer),
    }
}

/// Returns this process, for other ranks to watch.
pub(crate) fn own_process() -> Result<Peer, Error> {
    let pidfd = pidfd_open(getpid(), PidfdFlags::empty())
        .map_err(|errno| refused("a descriptor of this process (pidfd_open)", errno))?;
    Ok(Peer { pid: std::process::id(), pidfd })
}

impl Offer<'_> {
    /// Returns the error of a rank that is out of range.
    fn out_of_range(&self) -> Error {
        wire::out_of_range(std::process::id(), self.rank, self.nranks)
    }
}

#[cfg(test)]
mod tests;
