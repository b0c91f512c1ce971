//! A process's rank in a world: its shared state and its local state.

pub(super) mod call_sites;
#[cfg(all(target_os = "linux", feature = "cuda"))]
mod exchange;
pub(super) mod failure;
pub(super) mod fault;
pub(super) mod local_state;
pub(super) mod memory;
pub(super) mod p2p;
pub(super) mod queue_ends;
pub(super) mod reach;
pub(super) mod recording;
pub(super) mod ring;
pub(super) mod shared_buffer;
pub(super) mod shrink;
pub(super) mod spinning;
pub(super) mod watch;
pub(super) mod ways;

use std::fs::File;
#[cfg(feature = "cuda")]
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, TryLockError};
use std::time::Duration;

use roundelay_core::ids::RankId;
use roundelay_core::schedule::RANK_LIMIT;
use roundelay_topology::host::numbers;
use sha2::{Digest as _, Sha256};

use self::fault::{Fault, Faults};
use self::local_state::LocalState;
use self::memory::arena::{Arena, ArenaLayout};
use self::memory::head;
use self::memory::heap::Heap;
use self::memory::shared_state::SharedState;
use self::queue_ends::{Mail, Parcels};
use self::reach::Reach;
use self::recording::{TraceFile, WorldRecord};
use self::spinning::Spinning;
use self::ways::known_ways::{self, Knowledge};
use super::meet::ending::{Endings, Peer};
use super::meet::env::{from_env, from_env_of_host, rank_anywhere, spans_hosts};
use super::meet::join::{Joined, join, make_arena, own_process};
use super::meet::system::{self, boot, network};
use super::meet::unique::UniqueId;
use crate::chosen_way::ChosenWay;
use crate::{Error, Options};

/// The line of a seat with the launch that started the rank.
const LAUNCH: usize = 6;

/// The rank of this process in a world of processes.
///
/// All ranks of a world are processes of one host and one user. They share an arena, memory without a name in the file
/// system, which is gone with the last of them.
pub struct World {
    pub(super) shared: SharedState,
    pub(super) rank: usize,
    pub(super) options: Options,
    pub(super) peers: Vec<Peer>,
    /// The file of the arena: a process that looks from outside finds it among the descriptors of this process.
    pub(super) file: Option<File>,
    pub(super) endings: Option<Endings>,
    /// Whether each rank has a core of its own.
    pub(super) spins: bool,
    /// Whether the records of this rank's calls have sites.
    pub(super) sites: bool,
    pub(super) spinning: Spinning,
    pub(super) local: Mutex<LocalState>,
    pub(super) heap: Mutex<Heap>,
    pub(super) fault: Faults,
    pub(super) record: Arc<WorldRecord>,
    pub(super) mail: Mail,
    /// This rank's ends of the rings for messages of calls.
    pub(super) parcels: Mutex<Parcels>,
    /// The names of the ranks in error messages, where this world is a part of another.
    names: Box<[RankId]>,
    /// The number of the next attempt to make a world of the surviving ranks.
    pub(super) shrinks: Mutex<u64>,
    /// The caller's function that runs while this rank waits.
    progress: RwLock<Option<Progress>>,
    /// Nanoseconds that a wait may take.
    deadline: AtomicU64,
    /// Whether this rank adds the decisions of the world to the host's file when it leaves.
    keeps_ways: bool,
}

/// A caller's function that runs while a rank waits.
pub(super) type Progress = Arc<dyn Fn() + Send + Sync>;

impl std::fmt::Debug for World {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { rank, .. } = self;
        f.debug_struct("World")
            .field("nranks", &self.nranks())
            .field("rank", rank)
            .finish_non_exhaustive()
    }
}

impl World {
    /// Joins the world `id` as rank `rank` of `nranks`, and returns when all ranks have joined. The deadline of
    /// `options` limits this time, and later the time that a call waits for another rank.
    ///
    /// # Errors
    /// E0427 where the processes cannot meet: a rank out of range, two processes with one rank, different numbers of
    /// ranks, an id of another host, a rank that does not come; E0429 where the system refuses a resource that the
    /// world needs; E0406 for options that no run can have, E0409 for no ranks or too many.
    pub fn join(id: &UniqueId, nranks: u32, rank: u32, options: Options) -> Result<Self, Error> {
        options.check()?;
        if nranks == 0 || nranks > RANK_LIMIT {
            return Err(Error::NoRanks { nranks });
        }
        if rank >= nranks {
            let rank = RankId(rank);
            return Err(Error::NoSuchRank { rank, nranks });
        }
        let layout = layout(nranks);
        let knowledge = Knowledge::of_process(options.choosing())?;
        let ways = if rank == 0 { knowledge.image() } else { Vec::new() };
        let known = (layout.choice(0) as u64, &ways[..]);
        // Before the ranks meet, so that no rank adds to a file of an earlier job.
        let file = TraceFile::of_process(rank);
        let joined = join(id, nranks, rank, (layout.bytes as u64, known), options.deadline)?;
        let mut world = Self::of(joined, layout, rank, options)?;
        world.record.record_for(world.rank, file);
        world.keeps_ways = rank == 0 && knowledge.kept;
        Ok(world)
    }

    /// Joins the world in which a launcher started this process: `roundelay launch`, torchrun, Open MPI, MPICH, Intel
    /// MPI or Slurm's srun, or variables that were set by hand.
    ///
    /// # Errors
    /// E0427 where no launcher did, or its variables make no sense; else the errors of [`Self::join`].
    pub fn from_env(options: Options) -> Result<Self, Error> {
        let membership = from_env()?;
        Self::join(&membership.id, membership.nranks, membership.rank, options)
    }

    /// Returns this process's rank and the number of ranks of its job, wherever the others run.
    ///
    /// # Errors
    /// E0427 where no launcher left its variables, or they make no sense.
    #[doc(hidden)]
    pub fn rank_anywhere() -> Result<(u32, u32), Error> {
        rank_anywhere()
    }

    /// Whether a launcher says that this process is one of an MPI job on several hosts.
    ///
    /// # Errors
    /// E0427 where the launcher's variables make no sense.
    pub fn spans_hosts() -> Result<bool, Error> {
        spans_hosts()
    }

    /// Joins the ranks of a launch that run on this host, under a launcher that gives each rank its number among them.
    ///
    /// # Errors
    /// E0427 where no launcher does, or a rank does not come; else the errors of [`Self::join`].
    pub fn from_env_of_host(options: Options) -> Result<Self, Error> {
        let membership = from_env_of_host()?;
        Self::join(&membership.id, membership.nranks, membership.rank, options)
    }

    /// Returns how many ranks of the launch run on this host, where its launcher tells.
    pub fn ranks_of_host() -> Option<u32> {
        from_env_of_host().ok().map(|membership| membership.nranks)
    }

    /// Has a waiting rank call `progress` from time to time, in the thread that waits: for work that must go on
    /// meanwhile and has no thread of its own. During a long wait, these calls come every tenth of a millisecond or
    /// more often.
    pub fn set_progress(&self, progress: impl Fn() + Send + Sync + 'static) {
        *self.progress.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(progress));
    }

    /// Takes over the progress function of `other`.
    #[doc(hidden)]
    pub fn goes_on_as(&self, other: &Self) {
        *self.progress.write().unwrap_or_else(PoisonError::into_inner) = other.progress();
    }

    /// Returns the caller's function that runs while this rank waits.
    pub(super) fn progress(&self) -> Option<Progress> {
        self.progress.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the number of cores that the ranks of this host have together, as far as this process can tell.
    pub fn cores() -> u32 {
        cores()
    }

    /// Returns the number of descriptors that this process may hold.
    pub fn most_descriptors() -> u64 {
        system::most_descriptors()
    }

    /// Returns the ways that the world has chosen by measurement so far, for reports. Rank 0 measures, so other ranks have
    /// none.
    pub fn ways(&self) -> Vec<ChosenWay> {
        let decided = self.enter().map(|local| local.stage.trials.decided()).unwrap_or_default();
        decided.into_iter().map(ChosenWay::from).collect()
    }

    /// Adds the ways that the world has chosen to the host's file, from which later worlds begin, and returns the path of
    /// that file: `ways` in the folder of `ROUNDELAY_CACHE`, or else in the user's folder for caches; `None` where nothing
    /// is to be kept.
    ///
    /// # Errors
    /// E0429 where the file cannot be written; E0412 while a call of this rank is under way.
    pub fn keep_ways(&self) -> Result<Option<PathBuf>, Error> {
        let decided = self.enter()?.stage.trials.decided();
        let Some(path) = known_ways::path() else { return Ok(None) };
        known_ways::keep(&path, &decided)?;
        Ok(Some(path))
    }

    /// Returns the place in the program that called the library of which this is a part, if this world keeps the sites
    /// of calls.
    pub fn caller_site(&self) -> Option<Arc<str>> {
        if self.sites { call_sites::current_site().or_else(call_sites::caller) } else { None }
    }

    /// Sets how long a call may wait for another rank from now on.
    pub fn set_deadline(&self, deadline: Duration) {
        let nanos = u64::try_from(deadline.as_nanos()).unwrap_or(u64::MAX);
        self.deadline.store(nanos, Ordering::Relaxed);
    }

    /// Records the calls of this rank from now on, or no longer, for [`Self::trace`].
    #[doc(hidden)]
    pub fn record(&self, on: bool) {
        self.record.record(self.rank, on);
    }

    /// Takes the recorded calls of this rank, as lines of a trace.
    #[doc(hidden)]
    pub fn trace(&self) -> String {
        self.record.trace()
    }

    /// Makes all ranks of a world in this process, for tests whose threads call for the ranks.
    ///
    /// # Errors
    /// The errors of [`Self::join`].
    #[doc(hidden)]
    pub fn together(nranks: u32, options: Options) -> Result<Vec<Self>, Error> {
        let layout = layout(nranks);
        let ways = Knowledge::of_process(options.choosing())?.image();
        let arena = make_arena(layout.bytes as u64, (layout.choice(0) as u64, &ways))?;
        let peers = || (0..nranks).map(|_| own_process()).collect::<Result<_, _>>();
        let world = |rank| {
            let arena = arena.try_clone().map_err(|error| Error::SystemRefused {
                what: format!("a test's arena: {error}"),
            })?;
            let joined = Joined { arena, peers: peers()? };
            Self::of(joined, layout, rank, options)
        };
        (0..nranks).map(world).collect()
    }

    fn of(joined: Joined, layout: ArenaLayout, rank: u32, options: Options) -> Result<Self, Error> {
        let arena = Arena::new(&joined.arena, layout)?;
        let endings = Endings::from_env();
        if let Some((endings, launched)) = &endings {
            let at = layout.own(rank as usize, LAUNCH);
            arena.word(at + 8).store(*launched as u64, Ordering::Relaxed);
            arena.word(at).store(endings.launch(), Ordering::Release);
        }
        if rank == 0 {
            head::write(&arena);
        }
        let mut world = Self::over(arena, rank, options);
        world.peers = joined.peers;
        world.file = Some(joined.arena);
        world.shared.introduce(world.rank, std::process::id(), world.id());
        world.endings = endings.map(|(endings, _)| endings);
        world.spins = layout.nranks as u32 <= cores();
        Ok(world)
    }

    /// Makes a rank over an arena, without the processes of the other ranks.
    pub(super) fn over(arena: Arena, rank: u32, options: Options) -> Self {
        let n = arena.layout.nranks;
        let reach = Reach::new(&arena, rank as usize);
        let sites = options.keeps_sites().unwrap_or(false);
        Self {
            heap: Mutex::new(Heap::new(arena.layout.heap)),
            fault: Faults::new(),
            record: Arc::new(WorldRecord::of(rank)),
            mail: Mail::new(n),
            parcels: Mutex::new(Parcels::new(n)),
            names: (0..n as u32).map(RankId).collect(),
            shrinks: Mutex::new(1),
            progress: RwLock::new(None),
            deadline: AtomicU64::new(
                u64::try_from(options.deadline.as_nanos()).unwrap_or(u64::MAX),
            ),
            keeps_ways: false,
            shared: SharedState::new(arena),
            rank: rank as usize,
            options,
            peers: Vec::new(),
            file: None,
            endings: None,
            spins: false,
            sites,
            spinning: Spinning::default(),
            local: Mutex::new(LocalState::new(n, reach, sites)),
        }
    }

    /// Has this rank run `first` and then suffer the fault `what` at a place of its call `number`: for tests of
    /// failures. Places are counted from 0, the beginning of a call; the last place is its end.
    #[doc(hidden)]
    pub fn inject(&self, number: u64, place: u32, first: fn(), what: Fault) {
        self.fault.set(number, place, first, what);
    }

    /// Returns the number of the world's memory, by which processes that look from outside know it; 0 for a world of
    /// threads of a test.
    #[cfg(feature = "cuda")]
    pub(crate) fn arena_id(&self) -> u64 {
        let about = self.file.as_ref().and_then(|file| file.metadata().ok());
        about.map_or(0, |about| about.ino())
    }

    /// Returns the number of ranks.
    pub fn nranks(&self) -> u32 {
        self.shared.nranks() as u32
    }

    /// Returns the rank of this process, counted from 0.
    pub fn rank(&self) -> u32 {
        self.rank as u32
    }

    /// Returns the options of calls and waits, with the current deadline.
    pub fn options(&self) -> Options {
        self.options.deadline(self.deadline())
    }

    pub(super) fn id(&self) -> RankId {
        RankId(self.rank as u32)
    }

    /// Sets the names of the ranks in error messages, one for each rank: their numbers in the world of which this world
    /// is a part.
    pub(crate) fn call_ranks(&mut self, names: impl IntoIterator<Item = u32>) {
        self.names = names.into_iter().map(RankId).collect();
        assert_eq!(self.names.len(), self.shared.nranks(), "each rank has a name");
        self.record.call(self.named(self.rank));
        self.shared.introduce(self.rank, std::process::id(), self.named(self.rank));
    }

    /// Returns a second world of the same ranks with the same names, for messages beside those of this one; all ranks call it.
    ///
    /// # Errors
    /// The errors of [`Self::shrink`]; E0427 where not all ranks are left.
    #[cfg(feature = "cuda")]
    pub(crate) fn second(&self) -> Result<Self, Error> {
        let mut second = self.shrink()?;
        if second.nranks() != self.nranks() {
            let (left, of) = (second.nranks(), self.nranks());
            let what = format!("{left} of {of} ranks are left; call `shrink` first");
            return Err(Error::NotJoined { what });
        }
        second.call_ranks(self.names.iter().map(|name| name.0));
        Ok(second)
    }

    /// Returns the name of a rank in error messages.
    pub(super) fn named(&self, rank: usize) -> RankId {
        self.names[rank]
    }

    pub(super) fn deadline(&self) -> Duration {
        Duration::from_nanos(self.deadline.load(Ordering::Relaxed))
    }

    /// Returns the descriptors of the processes of all other ranks, which become readable when the processes end.
    #[cfg(all(target_os = "linux", feature = "cuda"))]
    pub(crate) fn pidfds(&self) -> impl Iterator<Item = (usize, std::os::fd::BorrowedFd<'_>)> {
        use std::os::fd::AsFd as _;
        self.others().map(|rank| (rank, self.peers[rank].pidfd.as_fd()))
    }

    /// Returns all other ranks, the rank after this one first, so that the ranks begin with different ranks.
    pub(super) fn others(&self) -> impl Iterator<Item = usize> + use<> {
        let (n, rank) = (self.shared.nranks(), self.rank);
        (1..n).map(move |d| (rank + d) % n)
    }

    /// Returns the launch that started a rank's process, 0 if no launch did, and the rank's number in that launch: a
    /// world may consist of a part of a launch's ranks, in another order.
    pub(super) fn launched(&self, rank: usize) -> (u64, usize) {
        let arena = &self.shared.arena;
        let at = arena.layout.own(rank, LAUNCH);
        let launch = arena.word(at).load(Ordering::Acquire);
        (launch, arena.word(at + 8).load(Ordering::Relaxed) as usize)
    }

    /// Checks that this process is the rank, and not a forked child of it.
    ///
    /// # Errors
    /// E0427 in a forked child.
    pub fn here(&self) -> Result<(), Error> {
        if !self.shared.arena.is_here() {
            let what = "this process was forked off one that is a rank, and is none itself; join a world of its own, or call in the other".to_owned();
            return Err(Error::NotJoined { what });
        }
        Ok(())
    }

    /// Locks this rank's local state, for one call at a time.
    pub(super) fn enter(&self) -> Result<MutexGuard<'_, LocalState>, Error> {
        self.here()?;
        match self.local.try_lock() {
            Ok(local) => Ok(local),
            Err(TryLockError::WouldBlock) => Err(Error::RankBusy { rank: self.named(self.rank) }),
            // A panic in a call has ended the world.
            Err(TryLockError::Poisoned(local)) => Ok(local.into_inner()),
        }
    }
}

/// The variable that parts the ranks of one machine: ranks with different values count as ranks of different hosts.
const HOST_ID: &str = "ROUNDELAY_HOST_ID";

/// Returns bytes that identify this host: no other host has the same bytes. On one machine, processes whose
/// `ROUNDELAY_HOST_ID` differ have different bytes.
pub fn host_key() -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update(b"roundelay host\0");
    hash.update(boot().unwrap_or_default());
    hash.update(network().unwrap_or_default().to_le_bytes());
    let [name, _] = system::host();
    hash.update(name);
    if let Some(id) = std::env::var_os(HOST_ID) {
        hash.update(b"\0");
        hash.update(id.as_encoded_bytes());
    }
    hash.finalize().into()
}

/// Returns the layout of the arena of `nranks` ranks on this machine.
fn layout(nranks: u32) -> ArenaLayout {
    ArenaLayout::new(nranks, usize::try_from(system::memory()).unwrap_or(usize::MAX))
}

/// The variable by which a launcher tells the number of processors that the ranks of this host have together, of which
/// each rank has a share.
pub const CORES: &str = "ROUNDELAY_CORES";

/// Returns the number of cores that the ranks have together, as far as this process can tell: a launcher may have bound
/// each rank to a core of its own, so that a process sees a single core.
fn cores() -> u32 {
    let told = std::env::var(CORES).ok().and_then(|cores| cores.parse().ok());
    if let Some(told) = told.filter(|cores| *cores > 0) {
        return told;
    }
    let mine = std::thread::available_parallelism().map_or(1, |n| n.get() as u32);
    if mine > 1 {
        return mine;
    }
    let online = std::fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
    numbers(&online).map_or(mine, |online| mine.max(online.len() as u32))
}

impl Drop for World {
    fn drop(&mut self) {
        if self.shared.arena.is_here() {
            self.shared.leave(self.rank, std::thread::panicking());
            self.record.keep();
            if self.keeps_ways {
                // A world without the file measures anew, so a file that cannot be written costs only time.
                _ = self.keep_ways();
            }
        }
    }
}
