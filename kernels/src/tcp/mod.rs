//! Ranks on several hosts without MPI: they meet at the address of one process, and messages between hosts go by TCP.
//!
//! key (the secret of a job) -> secure (a connection whose two ends have shown each other the key) -> root (the process
//! at whose address ranks meet) -> job (a rank's way there, and an exchange of bytes) -> carrier (messages between
//! hosts). addresses are those of this host.
//!
//! A connection begins with a Noise handshake (`NNpsk0`): nobody without the key gets beyond its first message, and no
//! byte of a peer is read before. The exchange at the root is encrypted. **Data between hosts is not encrypted**: it goes
//! in clear over connections whose ends were authenticated when they were made, as the data of MPI and NCCL does.

mod addresses;
mod carrier;
mod connections;
mod job;
mod key;
mod root;
mod secure;
#[cfg(test)]
mod tests;

pub use carrier::TcpCarrier;
pub use job::TcpJob;
pub use key::Key;
pub use root::Root;

use crate::Error;

/// Returns E0427 with these words.
fn not_joined(what: String) -> Error {
    Error::NotJoined { what }
}
