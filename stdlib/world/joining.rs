//! The ways to make a world: by a launcher, by an id, or by an exchange that the processes have already.

use std::time::Duration;

use roundelay_kernels::shared_memory::{self, UniqueId};

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
    /// * [`World::alloc`] lends memory of this host.
    /// * [`World::split`] makes worlds whose ranks are all on one host, and refuses others (E0427). [`World::shrink`]
    ///   is refused (E0427).
    /// * Ranks of one host compare their calls before data moves. Ranks of different hosts that make different calls wait
    ///   for each other until the deadline (E0405).
    ///
    /// # Errors
    /// E0427 where no such variables are set, or the ranks that they name do not meet; else the errors of
    /// [`World::join`].
    pub fn from_env() -> Result<Self, Error> {
        Self::from_env_with(Options::default())
    }

    /// Joins the world of the launcher that started this process; plans are made and run with `options`.
    ///
    /// # Errors
    /// E0406 for options that no run can have; else the errors of [`World::from_env`].
    pub fn from_env_with(options: Options) -> Result<Self, Error> {
        #[cfg(all(
            feature = "tcp",
            target_os = "linux",
            target_pointer_width = "64",
            target_endian = "little"
        ))]
        if let Some(world) = Self::over_tcp(options) {
            return world;
        }
        #[cfg(not(feature = "tcp"))]
        if std::env::var_os("ROUNDELAY_ROOT").is_some() {
            let what = "ROUNDELAY_ROOT is set, and this program was built without the feature `tcp` of `roundelay`";
            return Err(roundelay_kernels::Error::NotJoined { what: what.to_owned() }.into());
        }
        #[cfg(all(target_os = "linux", target_pointer_width = "64", target_endian = "little"))]
        if shared_memory::World::spans_hosts()? {
            return Self::over_mpi(options);
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
    /// of all ranks in their order, equally many of each.
    ///
    /// # Errors
    /// E0427 where `allgather` returns another number of bytes; else the errors of [`World::join`].
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
        allgather: impl FnOnce(&[u8]) -> Result<Vec<u8>, String>,
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
        allgather: impl FnOnce(&[u8]) -> Result<Vec<u8>, String>,
    ) -> Result<Self, Error> {
        let wrong = |what: String| -> Error { roundelay_kernels::Error::NotJoined { what }.into() };
        let mine = UniqueId::new()?;
        let all = allgather(mine.as_bytes())
            .map_err(|why| wrong(format!("the caller's allgather failed: {why}")))?;
        let expected = nranks as usize * UniqueId::BYTES;
        if all.len() != expected {
            return Err(wrong(format!(
                "the caller's allgather returned {} bytes for {nranks} ranks, not {expected}",
                all.len()
            )));
        }
        let own = all.chunks(UniqueId::BYTES).nth(rank as usize);
        if own.is_some_and(|own| own != mine.as_bytes()) {
            return Err(wrong(format!(
                "the caller's allgather did not return what rank {rank} gave it in its place"
            )));
        }
        // The id of rank 0 names the world.
        let first = all.first_chunk().ok_or_else(|| wrong("a world of no ranks".to_owned()))?;
        Self::join_with(&UniqueId::from_bytes(*first), nranks, rank, options)
    }
}
