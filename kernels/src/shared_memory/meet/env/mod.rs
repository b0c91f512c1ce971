//! A process's rank and world, from its environment.

mod launchers;
mod parent;

use std::env;

use self::launchers::Sources;
use super::system::host;
use super::unique::UniqueId;
use crate::Error;

/// The world of a process, and its rank there.
#[derive(Clone, Debug)]
pub(crate) struct Membership {
    /// The world.
    pub(crate) id: UniqueId,
    /// The number of ranks.
    pub(crate) nranks: u32,
    /// The rank of this process, counted from 0.
    pub(crate) rank: u32,
}

/// Reads the rank and the world that a launcher left in the environment.
///
/// The launchers in the order of the search; the first launcher whose variables are all set counts:
///
/// * `roundelay launch`, or by hand: `ROUNDELAY_RANK`, `ROUNDELAY_NRANKS`, and `ROUNDELAY_ID` (the text of
///   [`UniqueId::to_hex`]) or `ROUNDELAY_JOB` (any name that no other job of this user on this host has).
/// * torchrun: `RANK`, `WORLD_SIZE`, `MASTER_ADDR` and `MASTER_PORT`.
/// * Open MPI: `OMPI_COMM_WORLD_RANK`, `OMPI_COMM_WORLD_SIZE` and `PMIX_NAMESPACE`.
/// * MPICH and Intel MPI: `PMI_RANK` and `PMI_SIZE`. They name no job: the job is the process that started the ranks,
///   the nearest ancestor without `PMI_RANK` in the environment with which it was started.
/// * Slurm's srun: `SLURM_PROCID`, `SLURM_NTASKS`, `SLURM_JOB_ID` and `SLURM_STEP_ID`.
///
/// If the launcher also gives the number of ranks on this host, it must be the number of all ranks.
///
/// # Errors
/// E0427 where no launcher left its variables, or they make no sense.
pub(crate) fn from_env() -> Result<Membership, Error> {
    launchers::place(&SOURCES)
}

/// Reads this process's rank and the number of ranks, wherever the others run.
///
/// # Errors
/// E0427 where no launcher left its variables, or they make no sense.
pub(crate) fn rank_anywhere() -> Result<(u32, u32), Error> {
    launchers::rank_anywhere(&SOURCES)
}

/// Whether a launcher says that this process is one of an MPI job on several hosts.
///
/// # Errors
/// E0427 where the launcher's variables make no sense.
pub(crate) fn spans_hosts() -> Result<bool, Error> {
    launchers::spans_hosts(&SOURCES)
}

/// Reads this process's rank among the ranks of this host, as a launcher left it in the environment: under `mpirun` and
/// torchrun there may be more ranks on other hosts.
///
/// # Errors
/// E0427 where no launcher left its variables, or it does not give this rank.
pub(crate) fn from_env_of_host() -> Result<Membership, Error> {
    let [name, _] = host();
    launchers::place_on(&name, &SOURCES)
}

/// The sources of facts about this process.
const SOURCES: Sources<'static> = Sources {
    var: &|name| env::var_os(name).map(|value| value.to_string_lossy().into_owned()),
    starter: &|mark| parent::starter(mark),
};
