//! A world of the ranks of a job on several hosts, which MPI or TCP joins; messages go by these, or by UCX.

use std::sync::Arc;

use roundelay_kernels::mpi::MpiJob;
use roundelay_kernels::network::Carrier;
use roundelay_kernels::shared_memory;
#[cfg(feature = "tcp")]
use roundelay_kernels::shared_memory::UniqueId;
#[cfg(feature = "tcp")]
use roundelay_kernels::tcp::{Key, Root, TcpJob};
#[cfg(feature = "tcp")]
use roundelay_kernels::ucx::UcxCarrier;

use super::World;
use super::joining::{Roster, not_joined};
#[cfg(feature = "tcp")]
use super::joining::{given, taken};
use crate::{Error, Options};

/// The variable with the carrier of messages between hosts.
const CARRIER: &str = "ROUNDELAY_CARRIER";

/// The carriers that a user may want.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WantedCarrier {
    /// The one that the variables of the job name.
    Any,
    Tcp,
    /// UCX, for ranks that meet by TCP.
    Ucx,
    Mpi,
}

impl WantedCarrier {
    /// Returns the carrier that the environment variable names.
    ///
    /// # Errors
    /// E0406 for a name of none.
    fn of_process() -> Result<Self, Error> {
        let name = std::env::var_os(CARRIER).unwrap_or_default();
        match &*name.to_string_lossy() {
            "" => Ok(Self::Any),
            "tcp" => Ok(Self::Tcp),
            "ucx" => Ok(Self::Ucx),
            "mpi" => Ok(Self::Mpi),
            other => {
                let what = format!("the environment variable {CARRIER} is `{other}`");
                let fix = "give `tcp`, `ucx` or `mpi`, or leave it unset";
                Err(roundelay_kernels::Error::BadOption { what, fix }.into())
            }
        }
    }
}

type Refusable<T> = Result<T, roundelay_kernels::Error>;

impl World {
    /// Joins the world of a job on several hosts, if this process is of one.
    ///
    /// # Errors
    /// E0406 for a carrier that there is not; E0427 where the ranks do not meet by the one that is wanted.
    pub(super) fn over_carrier(options: Options) -> Result<Option<Self>, Error> {
        let wanted = WantedCarrier::of_process()?;
        #[cfg(feature = "tcp")]
        if wanted != WantedCarrier::Mpi
            && let Some(world) = Self::over_tcp(options)
        {
            return world.map(Some);
        }
        let named = wanted == WantedCarrier::Mpi && std::env::var_os("ROUNDELAY_ROOT").is_some();
        if !named && !shared_memory::World::spans_hosts()? {
            return Ok(None);
        }
        if let WantedCarrier::Tcp | WantedCarrier::Ucx = wanted {
            let name = if wanted == WantedCarrier::Tcp { "tcp" } else { "ucx" };
            let what = format!(
                "{CARRIER} is `{name}`, and ROUNDELAY_ROOT does not say where ranks of several hosts meet; set it to an address of rank 0's host, such as node1:7000"
            );
            return Err(not_joined(what));
        }
        Self::over_mpi(options).map(Some)
    }

    /// Joins the world of the MPI job that this process is of.
    ///
    /// # Errors
    /// E0427 where there is no MPI, or the ranks of a host do not meet.
    fn over_mpi(options: Options) -> Result<Self, Error> {
        let job = MpiJob::begin()?;
        let allgather = |mine: &[u8]| job.allgather(mine);
        Self::over_job(job.rank, allgather, false, || job.carrier(), options)
    }

    /// Joins the world of a job whose ranks meet by TCP, if this process's variables name their root: `ROUNDELAY_ROOT`, or
    /// an id with addresses.
    ///
    /// # Errors
    /// E0427 where the ranks do not meet.
    #[cfg(feature = "tcp")]
    fn over_tcp(options: Options) -> Option<Result<Self, Error>> {
        let own = || Ok::<_, Error>(shared_memory::World::rank_anywhere()?);
        if TcpJob::is_named() {
            let join = |(rank, nranks)| {
                Self::over_tcp_job(&TcpJob::from_env(rank, nranks, options)?, options)
            };
            return Some(own().and_then(join));
        }
        let id = UniqueId::from_hex(&std::env::var("ROUNDELAY_ID").ok()?).ok()?;
        id.addresses()?;
        match own() {
            Ok((rank, nranks)) => Self::at_addresses(&id, (nranks, rank), options),
            Err(error) => Some(Err(error)),
        }
    }

    /// Opens the place where ranks of several hosts meet, in this process, and returns its id for [`World::join`]: one
    /// process calls it, and sends the id to the others by a way that no other user reads, for it holds the key of the job.
    /// The ranks meet within the deadline of `options`. The place is there until all ranks have left, or this process
    /// ends: let it be rank 0's, or a process that outlives the ranks.
    ///
    /// The addresses of the id are those of the interfaces that `ROUNDELAY_INTERFACE` and `ROUNDELAY_FAMILY` choose.
    ///
    /// # Errors
    /// E0427 where no port can be opened, or this host has no address.
    ///
    /// ```
    /// use roundelay::{Options, World};
    ///
    /// let id = World::open_root(Options::default())?;
    /// let world = World::join(&id, 1, 0)?;
    /// assert_eq!(world.nranks(), 1);
    /// # Ok::<(), roundelay::Error>(())
    /// ```
    #[cfg(feature = "tcp")]
    pub fn open_root(options: Options) -> Result<UniqueId, Error> {
        Ok(Root::open_with_new_key(options)?)
    }

    /// Joins the world of an id with addresses.
    ///
    /// # Errors
    /// E0427 where the ranks do not meet.
    #[cfg(feature = "tcp")]
    pub(super) fn at_addresses(
        id: &UniqueId,
        (nranks, rank): (u32, u32),
        options: Options,
    ) -> Option<Result<Self, Error>> {
        let root = id.addresses()?;
        let join = || {
            id.check_bytes()?;
            if WantedCarrier::of_process()? == WantedCarrier::Mpi {
                let what = format!(
                    "{CARRIER} is `mpi`, and the id of the world is for ranks that meet by TCP; leave it unset"
                );
                return Err(not_joined(what));
            }
            let key = Key::from_bytes(id.secret());
            Self::over_tcp_job(&TcpJob::join(&root, key, rank, nranks, options)?, options)
        };
        Some(join())
    }

    /// Joins a world of several hosts, whose ranks meet at a port that rank 0 opens: `gather` brings its id to the others.
    ///
    /// # Errors
    /// E0427 where rank 0 opens no port, or the ranks do not meet; the errors of `gather`.
    #[cfg(feature = "tcp")]
    pub(super) fn at_rank_0(
        nranks: u32,
        rank: u32,
        options: Options,
        mut gather: impl FnMut(&[u8]) -> Result<Vec<u8>, Error>,
    ) -> Result<Self, Error> {
        let opened = (rank == 0).then(|| Self::open_root(options));
        // Where there is no id, the others wait for none.
        let all = gather(&given(opened.as_ref()))?;
        let id = opened.unwrap_or_else(|| taken(&all, 0))?;
        Self::join_with(&id, nranks, rank, options)
    }

    #[cfg(feature = "tcp")]
    fn over_tcp_job(job: &TcpJob, options: Options) -> Result<Self, Error> {
        let by_ucx = WantedCarrier::of_process()? == WantedCarrier::Ucx;
        let carrier = || -> Refusable<Arc<dyn Carrier>> {
            if by_ucx { Ok(Arc::new(UcxCarrier::of_job(job)?)) } else { job.carrier() }
        };
        Self::over_job(job.rank, |mine| job.allgather(mine), by_ucx, carrier, options)
    }

    /// Joins the world of a job as this rank: `allgather` brings the bytes of all ranks together, equally many of each, and
    /// `carrier` makes the carrier of messages between hosts, which is UCX or that by which the ranks met.
    fn over_job(
        rank: u32,
        allgather: impl Fn(&[u8]) -> Refusable<Vec<u8>>,
        by_ucx: bool,
        carrier: impl FnOnce() -> Refusable<Arc<dyn Carrier>>,
        options: Options,
    ) -> Result<Self, Error> {
        let roster = Roster::new(rank, |mine| Ok(allgather(mine)?))?;
        let joined = roster.join_host(options);
        // The ranks of another host may not have met: then no rank goes on. The link is measured where rank 0 says so.
        let met = allgather(&[joined.is_ok(), options.measures(), by_ucx].map(u8::from))?;
        let engine = joined?;
        let told = || met.chunks_exact(3);
        if let Some(member) = told().position(|told| told[0] == 0) {
            let what = format!("the ranks on the host of rank {member} did not meet, as they say");
            return Err(not_joined(what));
        }
        if let Some(other) = told().position(|told| told[2] != u8::from(by_ucx)) {
            let [own, others] = if by_ucx { ["UCX", "TCP"] } else { ["TCP", "UCX"] };
            let what = format!(
                "rank {rank} sends to other hosts by {own}, and rank {other} by {others}; give all ranks the same {CARRIER}"
            );
            return Err(not_joined(what));
        }
        let world = Self::over_hosts(engine, roster.hosts, rank, carrier()?)?;
        if met[1] != 0 { world.measure_link() } else { Ok(world) }
    }
}
