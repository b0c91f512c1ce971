//! What the environment of a process says of its place among ranks.

mod launchers;
mod parent;

use std::env;

use rustix::system::uname;

use self::launchers::Sources;
use super::unique::UniqueId;
use crate::Error;

/// Where a process stands in a world.
#[derive(Clone, Debug)]
pub(super) struct Membership {
    /// The world.
    pub(super) id: UniqueId,
    /// The number of ranks.
    pub(super) nranks: u32,
    /// The rank of this process, counted from 0.
    pub(super) rank: u32,
}

/// What a launcher left in the environment.
///
/// These are looked for, in this order; the first whose names are all there says it:
///
/// * `roundelay launch`, or by hand: `ROUNDELAY_RANK`, `ROUNDELAY_NRANKS`, and `ROUNDELAY_ID` (what
///   [`UniqueId::to_hex`] wrote) or `ROUNDELAY_JOB` (any name that no other job of this user on this host has).
/// * torchrun: `RANK`, `WORLD_SIZE`, `MASTER_ADDR` and `MASTER_PORT`.
/// * Open MPI: `OMPI_COMM_WORLD_RANK`, `OMPI_COMM_WORLD_SIZE` and `PMIX_NAMESPACE`.
/// * MPICH and Intel MPI: `PMI_RANK` and `PMI_SIZE`. They name no job: it is the process that started the ranks, the
///   nearest ancestor without `PMI_RANK` in the environment that it was started with.
/// * Slurm's srun: `SLURM_PROCID`, `SLURM_NTASKS`, `SLURM_JOB_ID` and `SLURM_STEP_ID`.
///
/// Where the launcher also tells the number of ranks on this host, that must be all of them.
///
/// # Errors
/// E0427 where no launcher did, or what is there makes no sense.
pub(super) fn from_env() -> Result<Membership, Error> {
    launchers::place(&SOURCES)
}

/// Whether a launcher says that this process is one of an MPI job on several hosts.
///
/// # Errors
/// E0427 where what is there makes no sense.
pub(super) fn spans_hosts() -> Result<bool, Error> {
    launchers::spans_hosts(&SOURCES)
}

/// What a launcher left in the environment of this process's place among the ranks of this host: under `mpirun` and
/// torchrun there may be more elsewhere.
///
/// # Errors
/// E0427 where no launcher did, or it does not tell that.
pub(super) fn from_env_of_host() -> Result<Membership, Error> {
    let host = uname();
    launchers::place_on(&host.nodename().to_string_lossy(), &SOURCES)
}

/// This process.
const SOURCES: Sources<'static> = Sources {
    var: &|name| env::var_os(name).map(|value| value.to_string_lossy().into_owned()),
    starter: &|mark| parent::starter(mark),
};
