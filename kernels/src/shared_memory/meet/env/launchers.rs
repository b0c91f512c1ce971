//! The known launchers, and the variables in which they give a process its rank.

use roundelay_core::schedule::RANK_LIMIT;

use super::Membership;
use crate::Error;
use crate::shared_memory::meet::unique::UniqueId;

/// The sources of facts about this process.
pub(super) struct Sources<'a> {
    /// Returns the value of an environment variable.
    pub(super) var: &'a dyn Fn(&str) -> Option<String>,
    /// Returns the process that started all ranks: the nearest ancestor that was started without the given variable.
    pub(super) starter: &'a dyn Fn(&str) -> Result<String, String>,
}

/// The names of the variables of one launcher.
struct Launcher {
    /// The launcher's name in error messages.
    who: &'static str,
    /// The variable with the rank.
    rank: &'static str,
    /// The variable with the number of ranks.
    nranks: &'static str,
    /// The variables that name the job and must be set.
    job: &'static [&'static str],
    /// The variables that also name the job if they are set.
    also: &'static [&'static str],
    /// The variable with the number of ranks on this host.
    local: Option<&'static str>,
    /// The variable with the rank among the ranks on this host.
    local_rank: Option<&'static str>,
    /// The variable with the number of hosts.
    hosts: Option<&'static str>,
    /// Whether the launcher's processes may be an MPI job, whose messages reach other hosts.
    mpi: bool,
}

/// The variables of `roundelay launch`, which may also be set by hand.
const OWN: [&str; 3] = ["ROUNDELAY_RANK", "ROUNDELAY_NRANKS", "ROUNDELAY_ID"];
/// The variable for a job's name in place of the id, set by hand.
const OWN_JOB: &str = "ROUNDELAY_JOB";

/// All other launchers, in the order of the search.
const LAUNCHERS: [Launcher; 4] = [
    Launcher {
        who: "torchrun",
        rank: "RANK",
        nranks: "WORLD_SIZE",
        job: &["MASTER_ADDR", "MASTER_PORT"],
        also: &["TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT"],
        local: Some("LOCAL_WORLD_SIZE"),
        local_rank: Some("LOCAL_RANK"),
        hosts: None,
        mpi: false,
    },
    Launcher {
        who: "Open MPI",
        rank: "OMPI_COMM_WORLD_RANK",
        nranks: "OMPI_COMM_WORLD_SIZE",
        job: &["PMIX_NAMESPACE"],
        also: &[],
        local: Some("OMPI_COMM_WORLD_LOCAL_SIZE"),
        local_rank: Some("OMPI_COMM_WORLD_LOCAL_RANK"),
        hosts: None,
        mpi: true,
    },
    Launcher {
        who: "MPICH or Intel MPI",
        rank: "PMI_RANK",
        nranks: "PMI_SIZE",
        job: &[],
        also: &[],
        local: Some("MPI_LOCALNRANKS"),
        local_rank: Some("MPI_LOCALRANKID"),
        hosts: None,
        mpi: true,
    },
    Launcher {
        who: "Slurm",
        rank: "SLURM_PROCID",
        nranks: "SLURM_NTASKS",
        job: &["SLURM_JOB_ID", "SLURM_STEP_ID"],
        also: &[],
        local: None,
        local_rank: None,
        hosts: Some("SLURM_STEP_NUM_NODES"),
        mpi: true,
    },
];

fn not_joined<T>(what: String) -> Result<T, Error> {
    Err(Error::NotJoined { what })
}

/// Returns the rank and the world from the first launcher whose variables are set.
pub(super) fn place(sources: &Sources<'_>) -> Result<Membership, Error> {
    by(sources, Launcher::place)
}

/// Returns the rank among the ranks on the host of this name, from the first launcher whose variables are set, which
/// must give it.
pub(super) fn place_on(host: &str, sources: &Sources<'_>) -> Result<Membership, Error> {
    by(sources, |launcher, sources| launcher.place_on(host, sources))
}

/// Returns this process's rank and the number of ranks, wherever the others run: from Roundelay's own variables, else from
/// the first launcher whose variables are set.
pub(super) fn rank_anywhere(sources: &Sources<'_>) -> Result<(u32, u32), Error> {
    let [rank, nranks, _] = OWN;
    let is_there = |name: &str| (sources.var)(name).is_some();
    if is_there(rank) && is_there(nranks) {
        return rank_of(sources, rank, nranks);
    }
    let sized = |launcher: &&Launcher| is_there(launcher.rank) && is_there(launcher.nranks);
    match LAUNCHERS.iter().find(sized) {
        Some(launcher) => rank_of(sources, launcher.rank, launcher.nranks),
        None => not_joined(format!(
            "no launcher said which rank this process is; set {rank} and {nranks} beside ROUNDELAY_ROOT"
        )),
    }
}

/// Whether the first launcher whose variables are set started an MPI job on several hosts.
pub(super) fn spans_hosts(sources: &Sources<'_>) -> Result<bool, Error> {
    match launcher(sources) {
        Some(launcher) if launcher.mpi => Ok(launcher.elsewhere(sources)?.is_some()),
        _ => Ok(false),
    }
}

/// Returns the first launcher whose variables are set, unless Roundelay's own variables are set.
fn launcher(sources: &Sources<'_>) -> Option<&'static Launcher> {
    let is_there = |name: &str| (sources.var)(name).is_some();
    if OWN.iter().any(|name| is_there(name)) {
        return None;
    }
    LAUNCHERS.iter().find(|launcher| launcher.needed().all(is_there))
}

/// Reads Roundelay's own variables if one of them is set; else calls `then` with the first launcher whose variables are
/// set.
fn by(
    sources: &Sources<'_>,
    then: impl Fn(&Launcher, &Sources<'_>) -> Result<Membership, Error>,
) -> Result<Membership, Error> {
    let is_there = |name: &str| (sources.var)(name).is_some();
    if OWN.iter().any(|name| is_there(name)) {
        return own(sources);
    }
    if let Some(launcher) = launcher(sources) {
        return then(launcher, sources);
    }
    let sets = [found_and_missing("`roundelay launch`", OWN.into_iter(), &is_there)].into_iter();
    let others = LAUNCHERS
        .iter()
        .map(|launcher| found_and_missing(launcher.who, launcher.needed(), &is_there));
    not_joined(format!(
        "no launcher said which rank this process is; looked for the variables of {}; start it by `roundelay launch -n 4 -- PROGRAM`, or set ROUNDELAY_RANK, ROUNDELAY_NRANKS and {OWN_JOB}",
        sets.chain(others).collect::<Vec<_>>().join("; of ")
    ))
}

/// Returns a text with the set and the missing variables of a launcher.
fn found_and_missing<'n>(
    who: &str,
    names: impl Iterator<Item = &'n str>,
    is_there: &dyn Fn(&str) -> bool,
) -> String {
    let (found, missing): (Vec<_>, Vec<_>) = names.partition(|name| is_there(name));
    let found = match found[..] {
        [] => String::new(),
        _ => format!("{} found, ", found.join(", ")),
    };
    format!("{who} ({found}{} missing)", missing.join(", "))
}

/// Reads the variables that are set by `roundelay launch`, or by hand.
fn own(sources: &Sources<'_>) -> Result<Membership, Error> {
    let [rank_name, nranks_name, id_name] = OWN;
    let var = |name: &str| (sources.var)(name);
    let is_there = |name: &str| var(name).is_some();
    if !(is_there(rank_name) && is_there(nranks_name)) {
        let sets = found_and_missing("Roundelay", OWN.into_iter(), &is_there);
        return not_joined(format!(
            "the variables of {sets} are not all there; set all of them, or none"
        ));
    }
    let (rank, nranks) = rank_of(sources, rank_name, nranks_name)?;
    let id = match (var(id_name), var(OWN_JOB)) {
        (Some(hex), _) => UniqueId::from_hex(&hex).map_err(|error| Error::NotJoined {
            what: format!("{id_name} cannot be read: {}", error.text()),
        })?,
        (None, Some(job)) => UniqueId::of_job(&format!("by hand: {job}")),
        (None, None) => {
            return not_joined(format!(
                "{rank_name} and {nranks_name} are set, but neither {id_name} nor {OWN_JOB}; set {OWN_JOB} to any name that is the same for all ranks and that no other job of yours on this host has"
            ));
        }
    };
    Ok(Membership { id, nranks, rank })
}

impl Launcher {
    /// Returns the variables that must be set.
    fn needed(&self) -> impl Iterator<Item = &'static str> {
        [self.rank, self.nranks].into_iter().chain(self.job.iter().copied())
    }

    /// Reads the rank and the world from the launcher's variables.
    fn place(&self, sources: &Sources<'_>) -> Result<Membership, Error> {
        let Self { who, rank, nranks: size, .. } = self;
        let (rank, nranks) = rank_of(sources, rank, size)?;
        if let Some(elsewhere) = self.elsewhere(sources)? {
            return not_joined(format!(
                "{who} started {nranks} ranks ({size}) {elsewhere}; only ranks of an MPI job meet on several hosts: start all of them on one, or by `mpirun`"
            ));
        }
        Ok(Membership { id: UniqueId::of_job(&self.job(sources)?), nranks, rank })
    }

    /// Returns a text about ranks on other hosts, if the launcher reports any.
    fn elsewhere(&self, sources: &Sources<'_>) -> Result<Option<String>, Error> {
        let (_, nranks) = rank_of(sources, self.rank, self.nranks)?;
        if let Some((name, local)) = number_if_there(sources, self.local)?
            && local != nranks
        {
            return Ok(Some(format!("and {local} of them on this host ({name})")));
        }
        if let Some((name, hosts)) = number_if_there(sources, self.hosts)?
            && hosts != 1
        {
            return Ok(Some(format!("on {hosts} hosts ({name})")));
        }
        Ok(None)
    }

    /// Reads the rank among the ranks on the host of this name.
    fn place_on(&self, host: &str, sources: &Sources<'_>) -> Result<Membership, Error> {
        let (Some(rank), Some(size)) = (self.local_rank, self.local) else {
            return not_joined(format!(
                "{} does not tell which rank of its host a process is",
                self.who
            ));
        };
        let is_there = |name: &str| (sources.var)(name).is_some();
        if !(is_there(rank) && is_there(size)) {
            let sets = found_and_missing(self.who, [rank, size].into_iter(), &is_there);
            return not_joined(format!("the variables of {sets} are not all there"));
        }
        let (rank, nranks) = rank_of(sources, rank, size)?;
        // Hosts may share a network namespace, as containers on one machine may.
        let job = format!("{} on {host}", self.job(sources)?);
        Ok(Membership { id: UniqueId::of_job(&job), nranks, rank })
    }

    /// Returns a name of the job that no other job of the user has.
    fn job(&self, sources: &Sources<'_>) -> Result<String, Error> {
        let who = self.who;
        let mut job = format!("{who}:");
        for name in self.job.iter().chain(self.also) {
            // The length of each value makes the text unambiguous.
            let value = (sources.var)(name).unwrap_or_default();
            job.extend([" ", &value.len().to_string(), ":", &value]);
        }
        if self.job.is_empty() {
            job += &(sources.starter)(self.rank).or_else(|why| {
                not_joined(format!(
                    "{who} names no job ({}), and the process that started the ranks is not found: {why}; set ROUNDELAY_RANK, ROUNDELAY_NRANKS and {OWN_JOB} instead",
                    self.rank
                ))
            })?;
        }
        Ok(job)
    }
}

/// Reads a rank and the number of ranks.
fn rank_of(sources: &Sources<'_>, rank_name: &str, nranks_name: &str) -> Result<(u32, u32), Error> {
    let (rank, nranks) = (number(sources, rank_name)?, number(sources, nranks_name)?);
    if nranks == 0 || nranks > RANK_LIMIT {
        return not_joined(format!(
            "{nranks_name} is {nranks}; the number of ranks must be in 1..={RANK_LIMIT}"
        ));
    }
    if rank >= nranks {
        return not_joined(format!(
            "{rank_name} is {rank} and {nranks_name} is {nranks}; ranks count from 0, so the last is {}",
            nranks - 1
        ));
    }
    Ok((rank, nranks))
}

/// Returns the variable's name and its number, if the variable is set.
fn number_if_there(
    sources: &Sources<'_>,
    name: Option<&'static str>,
) -> Result<Option<(&'static str, u32)>, Error> {
    let there = name.filter(|name| (sources.var)(name).is_some());
    there.map(|name| Ok((name, number(sources, name)?))).transpose()
}

/// Returns the number that a variable holds.
fn number(sources: &Sources<'_>, name: &str) -> Result<u32, Error> {
    let text = (sources.var)(name).unwrap_or_default();
    text.trim().parse().or_else(|_| {
        not_joined(format!(
            "{name} is `{}`, which is no number in 0..={}",
            text.escape_debug(),
            u32::MAX
        ))
    })
}

#[cfg(test)]
mod tests;
