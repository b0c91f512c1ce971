//! The variables by which a process knows its place among the ranks: those of this project, and the ones that torchrun
//! sets for every worker.

use roundelay_kernels::shared_memory::UniqueId;
use std::net::{Ipv4Addr, TcpListener};
use std::os::fd::RawFd;

use roundelay_core::diagnostics::Code;

use crate::report::Failure;

pub(super) struct Environment {
    nranks: u32,
    id: String,
    /// A port for programs that meet by TCP.
    port: u16,
    /// The descriptor of the endings.
    endings: RawFd,
}

impl Environment {
    pub(super) fn new(nranks: u32, endings: RawFd) -> Result<Self, Failure> {
        Ok(Self { nranks, id: id()?, port: free_port()?, endings })
    }

    pub(super) fn of(&self, rank: u32) -> [(&'static str, String); 14] {
        let (rank, nranks) = (rank.to_string(), self.nranks.to_string());
        [
            ("ROUNDELAY_RANK", rank.clone()),
            ("ROUNDELAY_NRANKS", nranks.clone()),
            ("ROUNDELAY_ID", self.id.clone()),
            ("ROUNDELAY_ENDINGS", self.endings.to_string()),
            ("RANK", rank.clone()),
            ("WORLD_SIZE", nranks.clone()),
            ("LOCAL_RANK", rank.clone()),
            ("LOCAL_WORLD_SIZE", nranks.clone()),
            // The only host, and the only role.
            ("GROUP_RANK", "0".to_owned()),
            ("GROUP_WORLD_SIZE", "1".to_owned()),
            ("ROLE_RANK", rank),
            ("ROLE_WORLD_SIZE", nranks),
            ("MASTER_ADDR", Ipv4Addr::LOCALHOST.to_string()),
            ("MASTER_PORT", self.port.to_string()),
        ]
    }
}

/// Returns the id of the world of the ranks, in hexadecimal digits.
fn id() -> Result<String, Failure> {
    let id = UniqueId::new()
        .map_err(|error| refused("random bytes", &std::io::Error::other(error.to_string())))?;
    Ok(id.to_hex())
}

/// Returns a port without a listener. It is not reserved until a rank takes it, but the system hands out other ports
/// first.
fn free_port() -> Result<u16, Failure> {
    let port = || TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr().map(|at| at.port());
    port().map_err(|error| refused("a TCP port", &error))
}

/// Returns the error for a system that does not give `what`, which the ranks need.
pub(super) fn refused(what: &str, error: &std::io::Error) -> Failure {
    Failure::usage(Code::SystemRefused, format!("the system refuses {what} for the ranks: {error}"))
}
