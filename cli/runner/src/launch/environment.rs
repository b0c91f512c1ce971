//! The starter of ranks: what their processes share, and the variables by which a process knows its place among the
//! ranks: those of this project, and the ones that torchrun sets for every worker.

use std::io::{Error, ErrorKind, stdin};
use std::net::{Ipv4Addr, TcpListener};
use std::process::Command;
use std::sync::Arc;

use roundelay_core::diagnostics::Code;
use roundelay_kernels::shared_memory::{CORES, UniqueId};

use super::endings::Endings;
use crate::again;
use crate::error::RunError;
use crate::launched_program::PartOfJob;

pub(super) struct Environment {
    nranks: u32,
    part: Option<PartOfJob>,
    /// The key of a job that another launcher leads.
    key: Option<String>,
    id: String,
    /// The processors of all ranks together.
    cores: usize,
    /// A port for programs that meet by TCP.
    port: u16,
    pub(super) endings: Arc<Endings>,
}

impl Environment {
    pub(super) fn new(nranks: u32, part: Option<PartOfJob>) -> Result<Self, RunError> {
        let endings = Endings::new(nranks).map_err(|error| {
            let failure = refused("memory for the endings", &error);
            match error.kind() {
                ErrorKind::NotFound => failure.with_help("the launcher needs `/proc`: mount it"),
                _ => failure,
            }
        })?;
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let key = match &part {
            Some(PartOfJob { led: true, .. }) => {
                Some(read_key().map_err(|error| refused("the key of the job", &error))?)
            }
            _ => None,
        };
        let (id, port, endings) = (id()?, free_port()?, Arc::new(endings));
        Ok(Self { nranks, part, key, id, cores, port, endings })
    }

    /// Returns the command that starts a rank: this command again, with the rank's variables.
    pub(super) fn command(&self, rank: u32) -> Command {
        let mut command = again::again();
        command.envs(self.of(rank));
        if let Some(part) = &self.part {
            // The ranks meet at the root; of the memory for endings each host has its own.
            command.env_remove("ROUNDELAY_ID").env_remove("ROUNDELAY_ENDINGS");
            command.envs(part.of(rank));
        }
        if let Some(key) = &self.key {
            command.env("ROUNDELAY_KEY", key).env_remove("ROUNDELAY_KEY_FILE");
        }
        command
    }

    fn of(&self, rank: u32) -> [(&'static str, String); 15] {
        let (rank, nranks) = (rank.to_string(), self.nranks.to_string());
        [
            ("ROUNDELAY_RANK", rank.clone()),
            ("ROUNDELAY_NRANKS", nranks.clone()),
            ("ROUNDELAY_ID", self.id.clone()),
            (CORES, self.cores.to_string()),
            ("ROUNDELAY_ENDINGS", self.endings.descriptor().to_string()),
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

impl PartOfJob {
    /// Returns the variables of a rank, by its number on this host. Programs that meet by TCP themselves find the port
    /// behind that of the root.
    fn of(&self, rank: u32) -> [(&'static str, String); 9] {
        let (rank, nranks) = ((self.first + rank).to_string(), self.of.to_string());
        let (host, port) = self.root.rsplit_once(':').unwrap_or((&self.root, "0"));
        let next = port.parse::<u16>().unwrap_or(0).wrapping_add(1);
        [
            ("ROUNDELAY_ROOT", self.root.clone()),
            ("ROUNDELAY_RANK", rank.clone()),
            ("ROUNDELAY_NRANKS", nranks.clone()),
            ("RANK", rank.clone()),
            ("WORLD_SIZE", nranks.clone()),
            ("ROLE_RANK", rank),
            ("ROLE_WORLD_SIZE", nranks),
            ("MASTER_ADDR", host.trim_matches(['[', ']']).to_owned()),
            ("MASTER_PORT", next.to_string()),
        ]
    }
}

/// Reads the key of the job from the launcher of all hosts.
fn read_key() -> Result<String, Error> {
    let mut line = String::new();
    stdin().read_line(&mut line)?;
    Ok(line.trim_end().to_owned())
}

/// Returns the id of the world of the ranks, in hexadecimal digits.
fn id() -> Result<String, RunError> {
    let id = UniqueId::new()
        .map_err(|error| refused("random bytes", &Error::other(error.to_string())))?;
    Ok(id.to_hex())
}

/// Returns a port without a listener. It is not reserved until a rank takes it, but the system hands out other ports
/// first.
fn free_port() -> Result<u16, RunError> {
    let port = || TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr().map(|at| at.port());
    port().map_err(|error| refused("a TCP port", &error))
}

/// Returns the error for a system that does not give `what`, which the ranks need.
pub(super) fn refused(what: &str, error: &Error) -> RunError {
    RunError::usage(
        Code::SystemRefused,
        format!("the system refuses {what} for the ranks: {error}"),
    )
}

/// Returns the error for a rank whose process could not be started.
pub(super) fn not_started(rank: u32, error: &Error) -> RunError {
    refused(&format!("process {rank}"), error)
        .with_help("`ulimit -u` and `ulimit -n` say how many processes and open files there may be")
}
