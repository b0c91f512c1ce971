//! Ranks on several hosts without MPI: they meet at the address of one process, and messages between hosts go by TCP.
//!
//! key (the secret of a job) -> secure (a connection whose two ends have shown each other the key) -> door (an open port) ->
//! root (the process at whose address ranks meet) -> control (a rank's connection to it) -> carrier, with its connections
//! and its failure (messages between hosts) -> `tcp_job` (a rank of a job: an exchange of bytes, and its carrier). survivors are the ranks that
//! are left after a failure, and addresses those of this host.
//!
//! A connection begins with a Noise handshake (`NNpsk0`): a peer without the key gets no further than its first
//! message, and no other byte of it is read. The exchange at the root is encrypted. **Data between hosts is not encrypted**: it goes
//! in clear over connections whose ends were authenticated when they were made, as the data of MPI and NCCL does.

mod addresses;
mod carrier;
mod connections;
mod control;
mod door;
mod failure;
mod key;
mod root;
mod secure;
mod survivors;
mod tcp_job;
#[cfg(test)]
mod tests;

pub use carrier::TcpCarrier;
pub(crate) use carrier::lost_connection;
pub(crate) use connections::other_length;
pub(crate) use failure::CarrierFailure;
pub use key::Key;
pub use root::Root;
pub use tcp_job::TcpJob;

use crate::Error;

/// Returns E0427 with these words.
pub(crate) fn not_joined(what: String) -> Error {
    Error::NotJoined { what }
}
