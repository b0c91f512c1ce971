//! A world: ranks that are processes, of one host or of several, and plans for their calls, made once for each shape.

mod across_hosts;
mod device;
#[cfg(all(target_os = "linux", target_pointer_width = "64", target_endian = "little"))]
mod job;
mod joining;
mod nonblocking;
mod parts;
mod progress;
mod refusals;

use std::num::NonZeroUsize;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;

use roundelay_core::ids::RankId;
use roundelay_core::layout::Configured;
use roundelay_kernels::AnyRankPlan;
use roundelay_kernels::network::{Hosts, HostsPlan, Levels, LevelsPlan};
use roundelay_kernels::shared_memory::{self, BlocksPlan, ChosenWay, Lent, Prepared, WorldPlan};

use crate::comm::call::{Call, Shape};
use crate::comm::choices::{Chosen, rooted};
use crate::comm::plan_cache::Kept;
use crate::comm::using::using;
use crate::comm::{Comm, Home, Rank};
use progress::{Progress, Queue, Turns};
use refusals::Parting;

pub use nonblocking::{Nonblocking, Scope};
pub use progress::Pending;

use crate::plans::proved;
use crate::{Algorithm, Element, Error};

/// Processes that run collectives together, on one host or on several, seen from one of them.
///
/// A [`Comm`] has ranks that are threads of one process; here each rank is a process, as in MPI. The calls are the
/// methods of [`Rank`], with the same lengths and errors: [`Comm`] lists them. `roundelay launch -n 8 -- PROGRAM`
/// starts a program as ranks that [`World::from_env`] brings together, and so do torchrun, `mpirun` and `srun`.
///
/// Ranks meet over an abstract socket and share memory that has no name: they leave nothing in the file system, however
/// they end. All ranks are processes of one user on Linux; ranks of several hosts meet by MPI or TCP ([`World::from_env`]).
/// On other systems every function that makes a world or a [`UniqueId`](crate::UniqueId) fails (E0429), and ranks are
/// the threads of a [`Comm`].
///
/// # Errors of calls
///
/// The errors of [`Comm`](Comm#errors-of-calls); a call whose arguments a rank refuses is void for all ranks, and the
/// others get its reason (E0414). E0428 where the process of another rank ended for which a call
/// waits: all survivors get the same error, which says which rank it was, how it ended and where it stood. After it, as
/// after a deadline (E0405), each later call fails at once with the first cause. Outputs of a call that failed are
/// undefined; inputs that are apart from the outputs do not change. E0433 where the options of the world, or the
/// environment variable `ROUNDELAY_CHECK`, ask for a [`Check`](crate::Check) of first calls, and it found wrong data: the
/// call is not made, and the world goes on.
///
/// # Example
///
/// ```no_run
/// use roundelay::{ReduceOp, World};
///
/// let world = World::from_env()?;
/// let mut rank = world.rank();
/// let mut buffer = [rank.id() as f32; 1000];
/// rank.all_reduce(&mut buffer, ReduceOp::Sum)?;
/// # Ok::<(), roundelay::Error>(())
/// ```
#[derive(Debug)]
pub struct World {
    /// Goes first, with all calls that are under way.
    progress: Arc<OnceLock<Result<Progress, String>>>,
    turns: Arc<Turns>,
    /// Goes next, as long as the rank is there.
    parting: Arc<Parting>,
    engine: Arc<shared_memory::World>,
    /// The ranks on several hosts, if there are several: the engine is the engine of this host.
    hosts: Option<Arc<Hosts>>,
    chosen: Chosen,
    plans: Arc<Mutex<Kept<Shape, Arc<AnyRankPlan>>>>,
    /// The plans of calls with a count for each block, by calls whose own count is 0.
    blocks: Arc<Mutex<Kept<Call, Arc<BlocksPlan>>>>,
}

impl World {
    fn of(engine: shared_memory::World) -> Self {
        Self::with(engine, Chosen::default(), Comm::PLANS)
    }

    fn with(engine: shared_memory::World, chosen: Chosen, plans: NonZeroUsize) -> Self {
        let (progress, turns) = (Arc::default(), Arc::default());
        let (kept, blocks) = (Kept::in_common(plans), Kept::in_common(plans));
        let engine = Arc::new(engine);
        let parting = Arc::new(Parting::of(&engine));
        Self { progress, turns, parting, engine, hosts: None, chosen, plans: kept, blocks }
    }

    using!("All ranks must use the same: a call in which they do not is refused (E0414).");

    /// Runs from now on, for calls of its collective whose bytes are in this range, an algorithm that was compiled when
    /// the program ran; the choice for other sizes does not change. Where its collective has a root, its parameter
    /// `root` is set to the root of the call. All ranks must use the same algorithm: a call in which they do not is
    /// refused (E0414).
    #[must_use]
    pub fn using_between(mut self, bytes: &RangeInclusive<u64>, algorithm: Configured) -> Self {
        self.chosen.between(bytes, algorithm);
        self.forgotten()
    }

    /// Makes a second value of this rank of the world, for calls by another algorithm. Both make the calls of one rank, in
    /// one order, and share its memory and the calls that are under way; each has algorithms and plans of its own. The
    /// second value begins with the algorithms of this one. The rank leaves the world when the last value goes.
    ///
    /// ```
    /// use roundelay::{ReduceOp, UniqueId, World, library::RingAllReduce};
    ///
    /// let world = World::join(&UniqueId::new()?, 1, 0)?;
    /// let by_ring = world.share().using(RingAllReduce::new());
    /// let mut buffer = [1.0_f32; 10];
    /// by_ring.rank().all_reduce(&mut buffer, ReduceOp::Sum)?;
    /// world.rank().all_reduce(&mut buffer, ReduceOp::Sum)?;
    /// # Ok::<(), roundelay::Error>(())
    /// ```
    #[must_use]
    pub fn share(&self) -> Self {
        let most = self.plans_kept();
        Self {
            progress: self.progress.clone(),
            turns: self.turns.clone(),
            parting: self.parting.clone(),
            engine: self.engine.clone(),
            hosts: self.hosts.clone(),
            chosen: self.chosen.clone(),
            plans: Kept::in_common(most),
            blocks: Kept::in_common(most),
        }
    }

    fn forgotten(self) -> Self {
        let most = self.plans_kept();
        self.keeping(most)
    }

    fn plans_kept(&self) -> NonZeroUsize {
        self.plans.lock().unwrap_or_else(PoisonError::into_inner).most()
    }

    /// Keeps at most `plans` plans, as [`Comm::keeping`] does.
    #[must_use]
    pub fn keeping(mut self, plans: NonZeroUsize) -> Self {
        (self.plans, self.blocks) = (Kept::in_common(plans), Kept::in_common(plans));
        self
    }

    /// Returns the ways of data through the memory of this host that the world has chosen by measurement so far. Rank 0 of
    /// the host measures, so other ranks have none. [`Options::measure`](crate::Options::measure) turns this off.
    pub fn ways(&self) -> Vec<ChosenWay> {
        self.engine.ways()
    }

    /// Adds the chosen ways to the file from which later worlds of this host begin, and returns its path: `ways` in the
    /// folder that `ROUNDELAY_CACHE` names, or else in the user's folder for caches; `None` where that variable is `off`.
    /// A world with the environment variable `ROUNDELAY_WAYS=kept` does this when it ends.
    ///
    /// # Errors
    /// E0429 where the file cannot be written, E0412 while a call of this rank is under way.
    pub fn keep_ways(&self) -> Result<Option<PathBuf>, Error> {
        Ok(self.engine.keep_ways()?)
    }

    /// Returns the number of ranks.
    pub fn nranks(&self) -> u32 {
        self.hosts.as_ref().map_or_else(|| self.engine.nranks(), |hosts| hosts.nranks())
    }

    /// Returns the rank of this process, for the thread that calls for it.
    pub fn rank(&self) -> Rank<'_> {
        let rank = self.hosts.as_ref().map_or_else(|| self.engine.rank(), |hosts| hosts.rank());
        Rank::new(self, RankId(rank))
    }

    /// Lends `len` elements of memory that all ranks can access, all zero: calls copy nothing aside where the buffers
    /// of all ranks are lent.
    ///
    /// # Errors
    /// E0407 where the host has not enough memory left.
    pub fn alloc<T: Element>(&self, len: usize) -> Result<Lent<T>, Error> {
        Ok(self.engine.alloc(len)?)
    }

    /// Ends all calls of all ranks, also the calls under way, for a reason in words: they and all later calls fail with
    /// it (E0413), unless the world failed before. Any thread may call it, and a second call has no effect.
    ///
    /// ```
    /// use roundelay::{UniqueId, World};
    ///
    /// let world = World::join(&UniqueId::new()?, 1, 0)?;
    /// world.abort("the input is not what it should be")?;
    /// assert_eq!(world.rank().barrier().unwrap_err().code().as_str(), "E0413");
    /// # Ok::<(), roundelay::Error>(())
    /// ```
    ///
    /// # Errors
    /// E0427 in a forked child, which is no rank.
    pub fn abort(&self, why: &str) -> Result<(), Error> {
        self.engine.abort(why)?;
        if let Some(hosts) = &self.hosts {
            hosts.carrier().abort(why);
        }
        Ok(())
    }

    /// Returns the name of the algorithm that `call` runs, for reports.
    #[doc(hidden)]
    pub fn algorithm_of(&self, call: &Call) -> String {
        let nranks = self.nranks();
        match self.chosen.levels(call, self.rank().id(), nranks) {
            Some(levels) => levels.map(|algorithm| algorithm.name().to_owned()).join(" + "),
            None => {
                let named = self.chosen.with(call, nranks, |algorithm| algorithm.name().to_owned());
                named.unwrap_or_else(|why| why.to_string())
            }
        }
    }

    /// Has this rank fail at a place of a call: for tests.
    #[doc(hidden)]
    pub fn inject(&self, number: u64, place: u32, first: fn(), what: shared_memory::Fault) {
        self.engine.inject(number, place, first, what);
    }

    /// Returns the place in the program that called the library of which this is a part, if the world keeps the sites
    /// of calls: for the libraries of other languages.
    #[doc(hidden)]
    pub fn caller_site(&self) -> Option<Arc<str>> {
        self.engine.caller_site()
    }

    /// Returns the interface whose calls return at once. Their buffers are given away until [`Pending::wait`] gives
    /// them back; [`World::scope`] lends them instead.
    ///
    /// Dropping the world waits for the calls under way, which the deadline bounds.
    ///
    /// ```
    /// use roundelay::{ReduceOp, UniqueId, World};
    ///
    /// let world = World::join(&UniqueId::new()?, 1, 0)?;
    /// let sum = world.nonblocking().all_reduce(vec![1.0_f32; 1000], ReduceOp::Sum);
    /// let all = world.nonblocking().all_gather(vec![7_u8; 3], vec![0; 3]);
    /// // Both are under way; this rank computes something else, and then waits.
    /// assert_eq!(sum.wait()?, [1.0; 1000]);
    /// let (_, all) = all.wait()?;
    /// assert_eq!(all, [7; 3]);
    /// # Ok::<(), roundelay::Error>(())
    /// ```
    pub fn nonblocking(&self) -> Nonblocking<'_> {
        Nonblocking::new(self)
    }

    /// Runs `body` with a scope for calls that return at once and borrow their buffers: all calls are done when it
    /// returns, as with [`std::thread::scope`]. A thread that the scope starts makes the calls, after the calls of
    /// [`World::nonblocking`] that are under way.
    ///
    /// # Errors
    /// The error of `body`; else the error of a call whose handle was dropped, which need not be in this scope; E0429
    /// where the system gives no thread.
    ///
    /// ```
    /// use roundelay::{ReduceOp, UniqueId, World};
    ///
    /// let world = World::join(&UniqueId::new()?, 1, 0)?;
    /// let (mut a, b, mut all) = ([1.0_f32; 1000], [7_u8; 3], [0_u8; 3]);
    /// world.scope(|scope| {
    ///     let sum = scope.all_reduce(&mut a, ReduceOp::Sum);
    ///     scope.all_gather(&b, &mut all);
    ///     // Waiting gives the slice back within the scope; the other call is done at its end.
    ///     let a = sum.wait()?;
    ///     assert_eq!(a[0], 1.0);
    ///     Ok(())
    /// })?;
    /// assert_eq!((a, all), ([1.0; 1000], [7; 3]));
    /// # Ok::<(), roundelay::Error>(())
    /// ```
    pub fn scope<'env, R>(
        &self,
        body: impl FnOnce(&Scope<'_, 'env>) -> Result<R, Error>,
    ) -> Result<R, Error> {
        self.engine.here()?;
        let (queue, work) = progress::queue(&self.turns);
        let outcome = thread::scope(|threads| {
            let thread = thread::Builder::new().name("roundelay scope".to_owned());
            let started = thread.spawn_scoped(threads, || work.run());
            started.map_err(|error| no_thread(&error.to_string()))?;
            // The thread ends when the queue goes, with all calls made, also where the body panics.
            body(&Scope::new(self, queue))
        })?;
        self.settle()?;
        Ok(outcome)
    }

    /// Returns the queue of the nonblocking calls.
    fn queue(&self) -> Result<&Queue<'static>, Error> {
        self.engine.here()?;
        let progress = self.progress.get_or_init(|| Progress::new(&self.turns));
        progress.as_ref().map(Progress::queue).map_err(|error| no_thread(error))
    }

    /// Waits for the nonblocking calls under way.
    ///
    /// # Errors
    /// The error of a call whose handle was dropped, once.
    #[doc(hidden)]
    pub fn settle(&self) -> Result<(), Error> {
        // In a forked child no thread makes the calls that were under way.
        self.engine.here()?;
        self.turns.settle()
    }

    /// Sends `buffer` to rank `to`, which receives it by [`World::recv`] in a buffer of equal length and type. Messages
    /// from one rank to another arrive in the order in which they were sent. They are independent of calls and their
    /// order, and a thread may send while another is in a call.
    ///
    /// It returns when the buffer may be used again. Up to 64 KiB that a rank has sent to another rank and that rank
    /// has not received are kept aside; longer messages go through as the receiver receives them. So two ranks that
    /// both send a long message before they receive wait for each other until the deadline. A rank may send to itself:
    /// a message that is kept aside as a whole, or a message that another thread of the rank receives.
    ///
    /// # Errors
    /// E0411 for a rank that does not exist; E0405 where the receiver does not receive within the deadline, and E0428
    /// where it ended. After E0405 and E0428 no call of this world works any more, as after a failed call.
    ///
    /// ```
    /// use roundelay::{UniqueId, World};
    ///
    /// // With one process, the next one is itself.
    /// let world = World::join(&UniqueId::new()?, 1, 0)?;
    /// let (me, nranks) = (world.rank().id(), world.nranks());
    /// world.send(&[1.5, 2.5], (me + 1) % nranks)?;
    /// let mut buffer = [0.0; 2];
    /// world.recv(&mut buffer, (me + nranks - 1) % nranks)?;
    /// assert_eq!(buffer, [1.5, 2.5]);
    /// # Ok::<(), roundelay::Error>(())
    /// ```
    pub fn send<T: Element>(&self, buffer: &[T], to: u32) -> Result<(), Error> {
        match &self.hosts {
            Some(hosts) => hosts.send(buffer, to)?,
            None => self.engine.send(buffer, to)?,
        }
        Ok(())
    }

    /// Receives the next message that rank `from` sends to this rank by [`World::send`], and returns when it has
    /// arrived.
    ///
    /// # Errors
    /// E0402 for a message of another length than the buffer's, E0403 for a message of another element type: the
    /// message is dropped, the buffer does not change, and the next receive gets the next message. E0411 for a rank
    /// that does not exist. E0405 where the sender does not send within the deadline, E0428 where it ended, and E0430
    /// where a third party wrote to the memory between the two ranks: after these three no call of this world works any
    /// more.
    ///
    /// ```
    /// use roundelay::{UniqueId, World};
    ///
    /// let world = World::join(&UniqueId::new()?, 1, 0)?;
    /// world.send(&[1, 2, 3], 0)?;
    /// world.send(&[4], 0)?;
    /// let refused = world.recv(&mut [0; 2], 0).unwrap_err();
    /// assert_eq!(refused.code().as_str(), "E0402");
    /// let mut buffer = [0];
    /// world.recv(&mut buffer, 0)?;
    /// assert_eq!(buffer, [4]);
    /// # Ok::<(), roundelay::Error>(())
    /// ```
    pub fn recv<T: Element>(&self, buffer: &mut [T], from: u32) -> Result<(), Error> {
        match &self.hosts {
            Some(hosts) => hosts.recv(buffer, from)?,
            None => self.engine.recv(buffer, from)?,
        }
        Ok(())
    }

    /// Prepares the schedule of an algorithm, which one rank lays out and proves for all. The text of an algorithm does
    /// not show the effects of an author's own Rust, so each rank lays out such an algorithm by itself, and calls
    /// detect differences between ranks.
    fn prepared(&self, algorithm: &dyn Algorithm) -> Result<Prepared, Error> {
        let nranks = self.nranks();
        let promises = self.chosen.promises(algorithm.collective())?;
        let make = || {
            let refused = |found| Error::from_findings(algorithm, nranks, found);
            promises.demanded_of(proved(algorithm, nranks)?).map_err(refused)
        };
        if !algorithm.escapes().is_empty() {
            return Ok(Prepared::own(make()?));
        }
        let facts = format!(
            "{nranks} {promises} {} {:?} {}",
            algorithm.settings(),
            algorithm.placed_on(),
            env!("CARGO_PKG_VERSION")
        );
        let own = [algorithm.name(), algorithm.source(), &facts];
        let called = algorithm.callees().iter().map(|called| called.source);
        let words: Vec<&str> = own.into_iter().chain(called).collect();
        self.engine.prepare(&words, make)
    }

    /// Proves the algorithms of the two levels, if the call is made on two levels.
    fn levels(&self, hosts: &Hosts, call: &Call) -> Result<Option<Levels>, Error> {
        let found = self.chosen.levels(call, hosts.rank(), hosts.nranks());
        let Some([reduce, across, broadcast]) = found else { return Ok(None) };
        let here = hosts.world().nranks();
        Ok(Some(Levels {
            reduce: proved(&*reduce, here)?,
            across: proved(&*across, hosts.hosts().len() as u32)?,
            broadcast: proved(&*broadcast, here)?,
        }))
    }

    pub(crate) fn plan(&self, shape: Shape) -> Result<Arc<AnyRankPlan>, Error> {
        let mut plans = self.plans.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(plan) = plans.get(&shape) {
            return Ok(plan.clone());
        }
        let call = shape.call;
        let Call { count, dtype, op, .. } = call;
        let plan: Arc<AnyRankPlan> = match &self.hosts {
            Some(hosts) => match self.levels(hosts, &call)? {
                Some(levels) => Arc::new(LevelsPlan::new(hosts, &levels, count, dtype, op)?),
                None => {
                    let (proved, count) = self.chosen.of_shape(&shape, self.nranks())?;
                    Arc::new(HostsPlan::new(hosts, &proved, count, dtype, op)?)
                }
            },
            None => {
                self.chosen.keeps_promises(&call, self.nranks())?;
                let prepared = self
                    .chosen
                    .with(&call, self.nranks(), |algorithm| self.prepared(algorithm))??;
                rooted(prepared.schedule(), &call)?;
                Arc::new(WorldPlan::from_prepared(&self.engine, &prepared, count, dtype, op)?)
            }
        };
        plans.make_room(|_| true);
        plans.insert(shape, plan.clone());
        Ok(plan)
    }

    /// The count by which an algorithm is chosen for calls with a count for each block.
    #[doc(hidden)]
    pub const BLOCKS: u64 = 1 << 40;

    /// Returns the plan of calls with a count for each block, where all ranks are on one host.
    #[doc(hidden)]
    pub fn blocks_plan(&self, call: Call) -> Result<Option<Arc<BlocksPlan>>, Error> {
        if self.hosts.is_some() {
            return Ok(None);
        }
        let call = Call { count: 0, ..call.of(self.nranks())? };
        let mut plans = self.blocks.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(plan) = plans.get(&call) {
            return Ok(Some(plan.clone()));
        }
        // Ranks may know different counts, so the choice goes by none: it is that of the largest calls.
        let chosen = Call { count: Self::BLOCKS, ..call };
        let proved = self.chosen.of(&chosen, self.nranks())?;
        let plan = Arc::new(BlocksPlan::new(&self.engine, &proved, call.dtype, call.op)?);
        plans.make_room(|_| true);
        plans.insert(call, plan.clone());
        Ok(Some(plan))
    }
}

/// Returns the error of a system that gives no thread.
fn no_thread(error: &str) -> Error {
    let what = format!("the system refuses a thread for calls that do not block: {error}");
    roundelay_kernels::Error::SystemRefused { what }.into()
}

impl Home for World {
    fn ranks(&self) -> u32 {
        self.nranks()
    }

    fn settled(&self) -> Result<(), Error> {
        self.settle()
    }

    fn plan_of(&self, shape: Shape, _: RankId) -> Result<Arc<AnyRankPlan>, Error> {
        self.plan(shape)
    }

    fn plan_of_blocks(&self, call: Call) -> Result<Option<Arc<BlocksPlan>>, Error> {
        self.blocks_plan(call)
    }

    fn refused(&self, error: Error) -> Error {
        self.tell(error)
    }
}
