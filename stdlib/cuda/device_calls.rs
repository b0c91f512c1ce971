//! Calls on memory of GPUs, each by an algorithm that its size chooses, with plans that are made once for each shape.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use roundelay_export::cuda::Form;
use roundelay_kernels::cuda::{CudaOptions, CudaRank, HostCall, ProcessPlan};

use crate::comm::call::Call;
use crate::comm::choices::{Chosen, rooted};
use crate::comm::plan_cache::Kept;
use crate::plans::{self, proved};
use crate::{Comm, Error};

/// Calls of a rank with a process and a GPU of its own, by the algorithms that its [`World`](crate::World) uses.
///
/// The plan of a shape is made at its first call, in which all ranks take part; a later call of that shape is one
/// launch. All ranks make the same calls in one order. Moves of all ranks (`all.x`) are made by a switch where one reaches
/// the memory of all ranks and has the op for the elements, else by the ranks themselves.
///
/// Where the ranks are on several hosts, a launch copies the input into memory of the host, where the ranks make the call by
/// the algorithms and the carrier of their world, and copies the output back: the results are those of the world's calls. A
/// call waits there for the other ranks, in a thread of the driver. An AllReduce that the world would make on two levels has
/// kernels reduce and broadcast on each host, and only the first rank of a host copies.
///
/// ```no_run
/// use roundelay::{Call, Collective, DType, ReduceOp, World};
///
/// let world = World::from_env()?;
/// let calls = world.device_calls(world.rank().id() as usize)?;
/// let (collective, dtype, op) = (Collective::AllReduce, DType::F32, ReduceOp::Sum);
/// let plan = calls.plan(Call { collective, root: 0, count: 1 << 20, dtype, op })?;
/// let rank = calls.rank();
/// let input = rank.buffer("input", 4 * plan.input_len())?;
/// let mut output = rank.buffer("output", 4 * plan.output_len())?;
/// plan.launch_bytes(rank.stream(), &input, &mut output)?;
/// calls.wait()?;
/// # Ok::<(), roundelay::Error>(())
/// ```
#[derive(Debug)]
pub struct DeviceCalls {
    rank: CudaRank,
    chosen: RwLock<(Choice, Chosen)>,
    options: CudaOptions,
    plans: Mutex<Kept<(Choice, Call), Arc<ProcessPlan>>>,
    /// The calls on memory of the host, where the ranks are on several hosts.
    hosts: Option<Box<dyn HostCalls>>,
}

/// The kernels of the ranks of this host.
#[derive(Debug)]
pub(crate) enum HostKernels {
    /// Some rank of any host can run none.
    None,
    /// The host has one rank, which needs none.
    Alone,
    /// The host has several ranks, of which this is this process's.
    Of(CudaRank),
}

/// The calls of a world of several hosts.
pub(crate) trait HostCalls: fmt::Debug + Send + Sync {
    /// Prepares a call.
    fn prepare(&self, call: Call) -> Result<Box<dyn HostCall>, Error>;

    /// Prepares the AllReduce of the first ranks of all hosts; `None` on other ranks.
    fn prepare_between(&self, call: Call) -> Result<Option<Box<dyn HostCall>>, Error>;

    /// Returns the kernels of the ranks of this host.
    fn inside(&self) -> &HostKernels;

    /// Has later calls run by other algorithms.
    fn choose(&self, chosen: Chosen);

    /// Ends the calls of all ranks for a reason.
    fn abort(&self, why: &str) -> Result<(), Error>;
}

/// The number of times that the algorithms were chosen anew.
type Choice = u64;

impl DeviceCalls {
    pub(crate) fn new(rank: CudaRank, chosen: Chosen, options: CudaOptions) -> Self {
        let plans = Mutex::new(Kept::new(Comm::PLANS));
        Self { rank, chosen: RwLock::new((0, chosen)), options, plans, hosts: None }
    }

    /// Has the calls go through memory of the hosts.
    pub(crate) fn through(self, hosts: Box<dyn HostCalls>) -> Self {
        Self { hosts: Some(hosts), ..self }
    }

    /// Has later calls run by other algorithms. Plans that were made before stay, as a graph may have captured them, until
    /// later shapes take their place.
    pub(crate) fn choose(&self, chosen: Chosen) {
        let mut now = self.chosen.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(hosts) = &self.hosts {
            hosts.choose(chosen.clone());
        }
        *now = (now.0 + 1, chosen);
    }

    /// Sets the number of CTAs that later plans have for each stream of a rank, as [`CudaOptions::parts`] does.
    #[must_use]
    pub fn parts(mut self, parts: u32) -> Self {
        self.options = self.options.parts(parts);
        self
    }

    /// The rank with its device.
    pub fn rank(&self) -> &CudaRank {
        &self.rank
    }

    /// Returns the plan of a call. At the first call of a shape, all ranks make the plan together.
    ///
    /// # Errors
    /// E0411 for a root that does not exist; the errors of [`OnDevice::plan_on_rank`](super::OnDevice::plan_on_rank).
    pub fn plan(&self, call: Call) -> Result<Arc<ProcessPlan>, Error> {
        let nranks = self.rank.nranks();
        let call = call.of(nranks)?;
        let chosen = self.chosen.read().unwrap_or_else(PoisonError::into_inner);
        let (choice, chosen) = &*chosen;
        let mut plans = self.plans.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(plan) = plans.get(&(*choice, call)) {
            return Ok(plan.clone());
        }
        let plan = Arc::new(match &self.hosts {
            Some(hosts) => self.through_host(&**hosts, chosen, call)?,
            None => self.kernel_of(chosen, call)?,
        });
        plans.make_room(|_| true);
        plans.insert((*choice, call), plan.clone());
        Ok(plan)
    }

    /// Makes the plan of a call through memory of the hosts.
    fn through_host(
        &self,
        hosts: &dyn HostCalls,
        chosen: &Chosen,
        call: Call,
    ) -> Result<ProcessPlan, Error> {
        let nranks = self.rank.nranks();
        let (proved, count) = chosen.of_shape(&call.into(), nranks)?;
        let (kind, options) = ((call.dtype, call.op), self.options);
        let levels = match hosts.inside() {
            HostKernels::None => None,
            HostKernels::Alone | HostKernels::Of(_) => {
                chosen.levels(&call, self.rank.rank().0, nranks)
            }
        };
        let Some([reduce, _, broadcast]) = levels else {
            let prepared = hosts.prepare(call)?;
            let made =
                ProcessPlan::through_host(&self.rank, (&proved, count), kind, options, prepared);
            return Ok(made?);
        };
        let made = || {
            let between = hosts.prepare_between(call)?;
            let inside = match hosts.inside() {
                HostKernels::Of(rank) => Some(rank),
                HostKernels::None | HostKernels::Alone => None,
            };
            let here = inside.map_or(1, |rank| rank.nranks());
            let proofs = (plans::proved(&*reduce, here)?, plans::proved(&*broadcast, here)?);
            let algorithms = [reduce.configured(), broadcast.configured()];
            let [reduce, broadcast] = &algorithms;
            let inside = inside.map(|rank| (rank, [(reduce, &proofs.0), (broadcast, &proofs.1)]));
            let parts = (inside, between);
            let plan = ProcessPlan::on_levels(&self.rank, (&proved, count), kind, options, parts);
            Ok(plan?)
        };
        made().inspect_err(|error: &Error| {
            // The ranks of other hosts may have their parts, and would wait for this host. A forked child has none.
            let _ = hosts.abort(&error.to_string());
        })
    }

    /// Makes the plan of a call as a kernel.
    fn kernel_of(&self, chosen: &Chosen, call: Call) -> Result<ProcessPlan, Error> {
        let nranks = self.rank.nranks();
        chosen.keeps_promises(&call, nranks)?;
        let found = chosen.with(&call, nranks, |algorithm| {
            let proved = proved(algorithm, nranks)?;
            Ok::<_, Error>((algorithm.configured(), proved))
        })?;
        let (algorithm, proved) = found?;
        rooted(proved.schedule(), &call)?;
        let Call { count, dtype, op, .. } = call;
        let (kind, mut options) = ((dtype, op), self.options);
        if self.rank.has_switch_for(&proved, kind) {
            options = options.form(Form::Switch);
        }
        Ok(ProcessPlan::new(&self.rank, &algorithm, &proved, count, kind, options)?)
    }

    /// Ends the launches of all ranks for a reason of the caller's: they and later ones fail with E0413.
    ///
    /// # Errors
    /// E0427 in a forked child.
    pub fn abort(&self, why: &str) -> Result<(), Error> {
        if let Some(hosts) = &self.hosts {
            hosts.abort(why)?;
        }
        Ok(self.rank.abort(why)?)
    }

    /// Returns the plan of a call if the ranks have made it.
    pub fn find(&self, call: Call) -> Option<Arc<ProcessPlan>> {
        let call = call.of(self.rank.nranks()).ok()?;
        let (choice, _) = *self.chosen.read().unwrap_or_else(PoisonError::into_inner);
        self.plans.lock().unwrap_or_else(PoisonError::into_inner).get(&(choice, call)).cloned()
    }

    /// Checks that the processes of all ranks are there; any thread may call it. Where one has ended, it waits for the launches
    /// that are under way, which end soon, for the lines at which they waited for that rank.
    ///
    /// # Errors
    /// E0428 where one has ended before it left; the first cause where the ranks have failed before.
    pub fn check(&self) -> Result<(), Error> {
        if self.rank.has_lost() {
            self.wait()?;
        }
        Ok(self.rank.check()?)
    }

    /// Waits until the last launch of every plan is over.
    ///
    /// # Errors
    /// The errors of [`RankPlan::wait`](super::RankPlan::wait).
    pub fn wait(&self) -> Result<(), Error> {
        let plans = self.plans.lock().unwrap_or_else(PoisonError::into_inner);
        plans.plans().try_for_each(|plan| plan.wait().map_err(Error::from))
    }
}
