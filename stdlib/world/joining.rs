//! The ways to make a world: by a launcher, by an id, or by an exchange that the processes have already.

use std::time::Duration;

use roundelay_core::ids::RankId;
use roundelay_kernels::shared_memory::{self, UniqueId, host_key};

use super::World;
use crate::{Error, Options};

impl World {
    /// Joins the world of the launcher that started this process, with the default [`Options`].
    ///
    /// The variables that it reads are those of `roundelay launch` (`ROUNDELAY_RANK`, `ROUNDELAY_NRANKS` and
    /// `ROUNDELAY_ID`, or `ROUNDELAY_JOB` with any name where they are set by hand), of torchrun, Open MPI, MPICH,
    /// Intel MPI, and Slurm's srun.
    ///
    /// Where the variables of Open MPI, MPICH, Intel MPI or Slurm say that there are more ranks on other hosts,
    /// messages between hosts are MPI's: of the library that the process has, else of the library that
    /// `ROUNDELAY_MPI_LIB` names, else of the library that the loader finds. MPI is begun if the program has not begun
    /// it, and then ended when the process exits.
    ///
    /// With the feature `tcp` ranks of several hosts meet without MPI, at the address that `ROUNDELAY_ROOT` names
    /// (`host:port`, at which rank 0 listens), with the key of `ROUNDELAY_KEY_FILE` or `ROUNDELAY_KEY`. The rank and the
    /// number of ranks come from the variables above. Data between hosts goes by TCP, in clear.
    ///
    /// Where both could be, `ROUNDELAY_CARRIER` chooses: `tcp` or `mpi`. With `ucx` ranks meet by TCP, and data between hosts
    /// goes by UCX, neither encrypted nor authenticated: of the library that the process has, else of the library that
    /// `ROUNDELAY_UCX_LIB` names, else of the library that the loader finds. [`World::carrier`] tells which it is.
    ///
    /// * [`World::alloc`] lends memory of this host.
    /// * Over MPI, [`World::split`] makes worlds whose ranks are all on one host, and refuses others (E0427), and
    ///   [`World::shrink`] is refused (E0427). Over TCP and UCX both work as on one host.
    /// * Ranks of one host compare their calls before data moves. Ranks of different hosts that make different calls wait
    ///   for each other until the deadline (E0405).
    ///
    /// # Errors
    /// E0427 where no such variables are set, or the ranks that they name do not meet; E0406 for another value of
    /// `ROUNDELAY_CARRIER`; else the errors of [`World::join`].
    pub fn from_env() -> Result<Self, Error> {
        Self::from_env_with(Options::default())
    }

    /// Joins the world of the launcher that started this process; plans are made and run with `options`.
    ///
    /// # Errors
    /// E0406 for options that no run can have; else the errors of [`World::from_env`].
    pub fn from_env_with(options: Options) -> Result<Self, Error> {
        #[cfg(not(feature = "tcp"))]
        if std::env::var_os("ROUNDELAY_ROOT").is_some() {
            let what = "ROUNDELAY_ROOT is set, and this program was built without the feature `tcp` of `roundelay`";
            return Err(not_joined(what.to_owned()));
        }
        #[cfg(all(target_os = "linux", target_pointer_width = "64", target_endian = "little"))]
        if let Some(world) = Self::over_carrier(options)? {
            return Ok(world);
        }
        Ok(Self::of(shared_memory::World::from_env(options)?))
    }

    /// Joins the world of the ranks of a launch that run on this host, with these options: under `mpirun` and torchrun
    /// other hosts may have more ranks. Ranks have their numbers on the host, which their launcher gives them.
    ///
    /// # Errors
    /// E0427 where no rank runs here; else the errors of [`World::from_env_with`].
    pub fn from_env_of_host(options: Options) -> Result<Self, Error> {
        Ok(Self::of(shared_memory::World::from_env_of_host(options)?))
    }

    /// Makes a rank that waits in a call of this world run `progress` from time to time, in the thread that called: for
    /// a library whose messages go on only while the process calls it, as MPI's do. While no message comes, `progress`
    /// runs every tenth of a millisecond or more often; a waiting rank takes more of its core for it.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use std::sync::atomic::{AtomicU64, Ordering};
    ///
    /// use roundelay::{UniqueId, World};
    ///
    /// let calls = Arc::new(AtomicU64::new(0));
    /// let counted = calls.clone();
    /// let world = World::join(&UniqueId::new()?, 1, 0)?.progressing(move || {
    ///     counted.fetch_add(1, Ordering::Relaxed);
    /// });
    /// // No rank waits in a world of one.
    /// world.rank().barrier()?;
    /// assert_eq!(calls.load(Ordering::Relaxed), 0);
    /// # Ok::<(), roundelay::Error>(())
    /// ```
    #[must_use]
    pub fn progressing(self, progress: impl Fn() + Send + Sync + 'static) -> Self {
        self.engine.set_progress(progress);
        self
    }

    /// Lets calls wait for other ranks for at most `deadline` from now on, in place of the deadline of the [`Options`]
    /// that the world was joined with.
    #[must_use]
    pub fn deadline(self, deadline: Duration) -> Self {
        self.engine.set_deadline(deadline);
        self
    }

    /// Joins the world `id` as rank `rank` of `nranks`, with the default [`Options`]. One process makes the id, and
    /// sends it to the other processes by any means; all join at once.
    ///
    /// # Errors
    /// E0427 where the processes do not meet within the deadline: two with one rank, other numbers of ranks, an id that
    /// is stale or of another host, a rank that does not come; E0429 where the system refuses a resource that they
    /// need; E0409 for no ranks or too many, E0411 for a rank beyond the last.
    ///
    /// ```
    /// use roundelay::{UniqueId, World};
    ///
    /// let id = UniqueId::new()?;
    /// let world = World::join(&id, 1, 0)?;
    /// assert_eq!((world.nranks(), world.rank().id()), (1, 0));
    /// # Ok::<(), roundelay::Error>(())
    /// ```
    pub fn join(id: &UniqueId, nranks: u32, rank: u32) -> Result<Self, Error> {
        Self::join_with(id, nranks, rank, Options::default())
    }

    /// Joins the world `id`, whose plans are made and run with `options`. The deadline also bounds the joining.
    ///
    /// # Errors
    /// E0406 for options that no run can have; else the errors of [`World::join`].
    pub fn join_with(
        id: &UniqueId,
        nranks: u32,
        rank: u32,
        options: Options,
    ) -> Result<Self, Error> {
        #[cfg(all(
            feature = "tcp",
            target_os = "linux",
            target_pointer_width = "64",
            target_endian = "little"
        ))]
        if let Some(world) = Self::at_addresses(id, (nranks, rank), options) {
            return world;
        }
        Ok(Self::of(shared_memory::World::join(id, nranks, rank, options)?))
    }

    /// Joins by an exchange that the processes have already: `allgather` takes this rank's bytes, and returns the bytes
    /// of all ranks in their order, equally many of each. It is called once, and once more where ranks are on several hosts.
    /// With the feature `tcp` these meet at a port of rank 0's host; its address and the key of the job are among the bytes
    /// of the second exchange, so let no stranger read them. Messages between hosts go by TCP, in clear.
    ///
    /// # Errors
    /// E0427 where `allgather` returns another number of bytes, ranks run different versions of Roundelay, or ranks of
    /// several hosts do not meet; else the errors of [`World::join`].
    ///
    /// ```
    /// use roundelay::World;
    ///
    /// // One process, whose bytes are all there are.
    /// let world = World::bootstrap(1, 0, |mine| Ok(mine.to_vec()))?;
    /// assert_eq!(world.nranks(), 1);
    /// # Ok::<(), roundelay::Error>(())
    /// ```
    pub fn bootstrap(
        nranks: u32,
        rank: u32,
        allgather: impl FnMut(&[u8]) -> Result<Vec<u8>, String>,
    ) -> Result<Self, Error> {
        Self::bootstrap_with(nranks, rank, Options::default(), allgather)
    }

    /// Joins by an exchange that the processes have already, as [`World::bootstrap`] does; plans are made and run with
    /// `options`.
    ///
    /// # Errors
    /// E0406 for options that no run can have; else the errors of [`World::bootstrap`].
    pub fn bootstrap_with(
        nranks: u32,
        rank: u32,
        options: Options,
        mut allgather: impl FnMut(&[u8]) -> Result<Vec<u8>, String>,
    ) -> Result<Self, Error> {
        let mut gather = |mine: &[u8]| {
            let all = allgather(mine)
                .map_err(|why| not_joined(format!("the caller's allgather failed: {why}")))?;
            let expected = nranks as usize * mine.len();
            if all.len() != expected {
                return Err(not_joined(format!(
                    "the caller's allgather returned {} bytes for {nranks} ranks, not {expected}",
                    all.len()
                )));
            }
            let own = all.chunks(mine.len()).nth(rank as usize);
            if own.is_some_and(|own| own != mine) {
                return Err(not_joined(format!(
                    "the caller's allgather did not return what rank {rank} gave it in its place"
                )));
            }
            Ok(all)
        };
        let roster = Roster::new(rank, &mut gather)?;
        match &roster.hosts[..] {
            [_] => Ok(Self::of(roster.join_host(options)?)),
            #[cfg(all(
                feature = "tcp",
                target_os = "linux",
                target_pointer_width = "64",
                target_endian = "little"
            ))]
            _ => Self::at_rank_0(nranks, rank, options, gather),
            #[cfg(not(all(
                feature = "tcp",
                target_os = "linux",
                target_pointer_width = "64",
                target_endian = "little"
            )))]
            hosts => Err(not_joined(format!(
                "ranks {} and {} are on different hosts, and this program was built without the feature `tcp` of `roundelay`",
                hosts[0][0], hosts[1][0]
            ))),
        }
    }
}

/// Returns the bytes with which a rank gives the others an id that it has, or none.
pub(super) fn given(id: Option<&Result<UniqueId, Error>>) -> [u8; UniqueId::BYTES] {
    match id {
        Some(Ok(id)) => *id.as_bytes(),
        _ => [0; UniqueId::BYTES],
    }
}

/// Returns the id that a rank gave the others, of the bytes of all ranks.
///
/// # Errors
/// E0427 where it had none.
pub(super) fn taken(all: &[u8], from: u32) -> Result<UniqueId, Error> {
    let bytes = all.chunks_exact(UniqueId::BYTES).nth(from as usize);
    let bytes = bytes.and_then(|bytes| bytes.first_chunk()).filter(|bytes| bytes != &&given(None));
    bytes.map(|bytes| UniqueId::from_bytes(*bytes)).ok_or_else(|| {
        not_joined(format!(
            "rank {from} opened no port at which ranks of several hosts could meet; its own error has the reason"
        ))
    })
}

/// Returns E0427 with these words.
pub(super) fn not_joined(what: String) -> Error {
    roundelay_kernels::Error::NotJoined { what }.into()
}

/// The bytes that a rank tells the others: its host, its version, and an id for its world if it is the first rank there.
const RECORD: usize = HOST + VERSION + UniqueId::BYTES;
const HOST: usize = 32;
const VERSION: usize = 32;

/// The ranks of each host, as they told each other, and the world of this rank's host.
pub(super) struct Roster {
    pub(super) hosts: Vec<Vec<u32>>,
    /// The id by which the ranks of this host meet, this rank's place among them, and their number.
    id: UniqueId,
    place: u32,
    here: u32,
}

impl Roster {
    /// Asks all ranks for their hosts: `gather` brings their bytes together.
    ///
    /// # Errors
    /// E0427 where ranks run different versions; E0411 for a rank beyond the last; the errors of `gather`.
    pub(super) fn new(
        rank: u32,
        gather: impl FnOnce(&[u8]) -> Result<Vec<u8>, Error>,
    ) -> Result<Self, Error> {
        let mut version = [0; VERSION];
        let own = env!("CARGO_PKG_VERSION").as_bytes();
        version[..own.len()].copy_from_slice(own);
        let mine = [&host_key()[..], &version, UniqueId::new()?.as_bytes()].concat();
        let all = gather(&mine)?;
        let mut hosts: Vec<(&[u8], Vec<u32>)> = Vec::new();
        for (member, record) in (0..).zip(all.chunks_exact(RECORD)) {
            let (key, rest) = record.split_at(HOST);
            if rest[..VERSION] != version {
                let other = String::from_utf8_lossy(&rest[..VERSION]);
                return Err(not_joined(format!(
                    "rank {member} runs Roundelay {}, and rank {rank} runs {}: install one version for all ranks",
                    other.trim_end_matches('\0').escape_debug(),
                    env!("CARGO_PKG_VERSION")
                )));
            }
            match hosts.iter_mut().find(|(known, _)| *known == key) {
                Some((_, ranks)) => ranks.push(member),
                None => hosts.push((key, vec![member])),
            }
        }
        let hosts: Vec<Vec<u32>> = hosts.into_iter().map(|(_, ranks)| ranks).collect();
        let Some(here) = hosts.iter().find(|ranks| ranks.contains(&rank)) else {
            let nranks = (all.len() / RECORD) as u32;
            return Err(match nranks {
                0 => roundelay_kernels::Error::NoRanks { nranks },
                _ => roundelay_kernels::Error::NoSuchRank { rank: RankId(rank), nranks },
            }
            .into());
        };
        let id = &all[here[0] as usize * RECORD + HOST + VERSION..];
        let id = UniqueId::from_bytes(*id.first_chunk().expect("a record has an id"));
        let place = here.iter().take_while(|member| **member != rank).count() as u32;
        let here = here.len() as u32;
        Ok(Self { hosts, id, place, here })
    }

    /// Joins the world of this host.
    ///
    /// # Errors
    /// The errors of [`shared_memory::World::join`].
    pub(super) fn join_host(
        &self,
        options: Options,
    ) -> Result<shared_memory::World, roundelay_kernels::Error> {
        shared_memory::World::join(&self.id, self.here, self.place, options)
    }
}
