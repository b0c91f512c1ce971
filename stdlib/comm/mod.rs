//! A communicator: ranks of one process, and plans for their calls, made once for each shape.
//!
//! Unless it is told which algorithms to use, it takes the library's algorithm that is the quickest to lay out and
//! prove: on one host the optimizer brings all algorithms to the same data flow.

mod blocks;
pub(crate) mod call;
pub(crate) mod choices;
pub(crate) mod collectives;
mod on_host;
pub(crate) mod plan_cache;
mod rank;
pub(crate) mod spread;
pub(crate) mod using;
pub(crate) mod wire;

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use roundelay_core::ids::RankId;
use roundelay_core::verify::Signals;
use roundelay_kernels::shared_memory::BlocksPlan;
use roundelay_kernels::{AnyRankPlan, Calls, SpmdPlan};

use call::{Call, Shape};
use choices::Chosen;
use plan_cache::Kept;
pub(crate) use rank::Home;
pub use rank::Rank;
use using::using;

use crate::{Algorithm, Certificate, Collective, Element, Error, Options, Plan, ReduceOp};

/// Ranks of this process that run collectives together.
///
/// Either one caller drives all ranks, with a slice per rank, or each rank has a thread of its own, which calls through
/// [`Comm::rank`]. Ranks with threads of their own must make the same calls in the same order, as in MPI and NCCL.
///
/// A plan is made, and its algorithm proved, at the first call of a *shape*: collective, root, count, element type
/// and reduce op. It is kept for later calls of the same shape ([`Comm::keeping`]). The algorithm is the library's
/// unless [`Comm::using`] and its kin name another.
///
/// # Lengths
///
/// Lengths are in elements, and n is the number of ranks. The count c is NCCL's, the elements of one block, and is
/// taken from the buffers of the call; it is equal on all ranks. A buffer that a rank does not have is an empty slice.
///
/// | collective | each input | each output |
/// |---|---|---|
/// | `all_reduce`, `broadcast`, `reduce` (in place) | one buffer of c | the same buffer |
/// | `all_reduce_into` | c | c |
/// | `reduce_scatter` | n * c | c |
/// | `all_gather` | c | n * c |
/// | `scatter` | n * c at the root, else empty | c |
/// | `gather` | c | n * c at the root, else empty |
/// | `all_to_all` | n * c | n * c |
///
/// # Errors of calls
///
/// Buffers are checked before data moves, and a call that is refused for its buffers is no call of a rank that is a
/// thread; other ranks of a [`World`](crate::World) are told of it (E0414), and it counts as a call there: E0401
/// (not one buffer for each rank), E0402 (a wrong length), E0411 (a root that is no rank), E0412 (a second thread calls
/// for a rank). The first call of a shape may also fail with the errors of making its plan: E02xx and E03xx for a wrong
/// algorithm, E0211 for an algorithm with another root, E0407 for buffers that are too large, E0408 for an algorithm
/// without an in-place form, E0431 for an op that the elements do not have ([`ReduceOp::takes`]).
///
/// A call of [`Rank`] in which ranks differ is refused (E0414): it is void for all ranks, each rank gets the error
/// once, and later calls work. After any other failure, for example a rank that does not come within the deadline of
/// the options (E0405), no later call works: each fails at once and says why (E0413). Where one caller drives all
/// ranks, a run that fails (E0405, E0410) leaves its outputs undefined, and later calls work. Where the options ask
/// for a [`Check`](crate::Check), the first call of a shape that gives wrong data on known data is not made (E0433), and
/// later calls work.
///
/// # Example
///
/// ```
/// use roundelay::{Comm, ReduceOp};
///
/// let comm = Comm::new(2)?;
/// std::thread::scope(|threads| {
///     for rank in 0..2 {
///         let mut mine = comm.rank(rank).expect("a rank of two");
///         threads.spawn(move || {
///             let mut buffer = [rank as f32 + 1.0; 1000];
///             mine.all_reduce(&mut buffer, ReduceOp::Sum).expect("both ranks call");
///             assert_eq!(buffer, [3.0; 1000]);
///         });
///     }
/// });
/// # Ok::<(), roundelay::Error>(())
/// ```
#[derive(Debug)]
pub struct Comm {
    nranks: u32,
    options: Options,
    chosen: Chosen,
    plans: Mutex<Kept<Call, Arc<Plan>>>,
    spmd: RwLock<Kept<Shape, Arc<SpmdPlan>>>,
    /// The calls of ranks that call by themselves.
    calls: Arc<Calls>,
}

impl Comm {
    /// Makes a communicator of `nranks` ranks with the default [`Options`].
    ///
    /// # Errors
    /// E0409 for 0 ranks, or more than a schedule can have.
    pub fn new(nranks: u32) -> Result<Self, Error> {
        Self::with_options(nranks, Options::default())
    }

    /// Makes a communicator of `nranks` ranks whose plans are all made and run with `options`: deadline, workers, level
    /// of the optimizer.
    ///
    /// # Errors
    /// E0409 for 0 ranks, or more than a schedule can have; E0406 for options that no run can have.
    pub fn with_options(nranks: u32, options: Options) -> Result<Self, Error> {
        let calls = Calls::new(nranks, options)?;
        let (plans, spmd) = (Kept::new(Self::PLANS), Kept::new(Self::PLANS));
        let chosen = Chosen::default();
        Ok(Self {
            nranks,
            options,
            chosen,
            plans: Mutex::new(plans),
            spmd: RwLock::new(spmd),
            calls,
        })
    }

    /// The number of plans that a communicator keeps by default.
    pub const PLANS: NonZeroUsize = NonZeroUsize::new(256).expect("it is not 0");

    using!("");

    /// Drops the kept plans: their algorithms may no longer be the ones chosen for their calls.
    fn forgotten(self) -> Self {
        let most = self.plans.lock().unwrap_or_else(PoisonError::into_inner).most();
        self.keeping(most)
    }

    /// Keeps at most `plans` plans that one caller runs, and at most `plans` plans of ranks that call by themselves;
    /// the default is 256 of each. Beyond the bound, the plan whose last call is the oldest goes, and is made again
    /// when it is called again. A plan stays beyond the bound if it is the last that a rank called, or if some ranks
    /// have called it and other ranks are still to call it.
    #[must_use]
    pub fn keeping(mut self, plans: NonZeroUsize) -> Self {
        (self.plans, self.spmd) = (Mutex::new(Kept::new(plans)), RwLock::new(Kept::new(plans)));
        self
    }

    /// Returns the numbers of plans that are kept: of one caller, and of ranks that call by themselves.
    #[doc(hidden)]
    pub fn kept_plans(&self) -> [usize; 2] {
        let plans = self.plans.lock().unwrap_or_else(PoisonError::into_inner).len();
        [plans, self.spmd.read().unwrap_or_else(PoisonError::into_inner).len()]
    }

    /// Returns the number of ranks.
    pub fn nranks(&self) -> u32 {
        self.nranks
    }

    /// Returns the certificate of the algorithm that a call runs, as [`Plan::certificate`] does. This proves the algorithm.
    ///
    /// ```
    /// use roundelay::{Call, Collective, Comm, DType, ReduceOp, library::RingAllGather};
    ///
    /// let comm = Comm::new(4)?.using(RingAllGather::new());
    /// let (collective, op) = (Collective::AllGather, ReduceOp::Sum);
    /// let call = Call { collective, root: 0, count: 1000, dtype: DType::F32, op };
    /// assert_eq!(comm.certificate_of(&call)?.ideal.steps, 3);
    /// # Ok::<(), roundelay::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of the call.
    pub fn certificate_of(&self, call: &Call) -> Result<Certificate, Error> {
        let proved = self.chosen.of(&call.of(self.nranks)?, self.nranks)?;
        Ok(Certificate::direct(proved.schedule(), proved.proof(), Signals::default()))
    }

    /// Returns rank `rank`, counted from 0, for the one thread that calls for it.
    ///
    /// # Errors
    /// E0411 for a rank beyond the last one. A second thread that calls for a rank while the first is in a call gets
    /// E0412.
    pub fn rank(&self, rank: u32) -> Result<Rank<'_>, Error> {
        let nranks = self.nranks;
        if rank >= nranks {
            let rank = RankId(rank);
            return Err(roundelay_kernels::Error::NoSuchRank { rank, nranks }.into());
        }
        Ok(Rank::new(self, RankId(rank)))
    }

    fn plan(&self, call: Call) -> Result<Arc<Plan>, Error> {
        let mut plans = self.plans.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(plan) = plans.get(&call) {
            return Ok(plan.clone());
        }
        let Call { count, dtype, op, .. } = call;
        let proved = self.chosen.of(&call, self.nranks)?;
        let plan = Arc::new(Plan::for_options(&proved, count, dtype, op, self.options)?);
        plans.make_room(|_| true);
        plans.insert(call, plan.clone());
        Ok(plan)
    }

    /// Returns the one plan of a shape: while a rank holds it, or is still to make a call that another rank made with
    /// it, no second plan is made.
    fn spmd_plan(&self, shape: Shape) -> Result<Arc<SpmdPlan>, Error> {
        let spmd = self.spmd.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(plan) = spmd.get(&shape) {
            return Ok(plan.clone());
        }
        drop(spmd);
        // Held while the plan is made: the other ranks are about to ask for the same plan.
        let mut spmd = self.spmd.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(plan) = spmd.get(&shape) {
            return Ok(plan.clone());
        }
        let Call { dtype, op, .. } = shape.call;
        let (proved, count) = self.chosen.of_shape(&shape, self.nranks)?;
        let plan = SpmdPlan::among(&self.calls, &proved, count, dtype, op, self.options)?;
        let plan = Arc::new(plan);
        // A plan may go only if no rank holds it: a rank that does may still make calls with it.
        spmd.make_room(|plan| Arc::get_mut(plan).is_some_and(|plan| !plan.is_awaited()));
        spmd.insert(shape, plan.clone());
        Ok(plan)
    }
}

impl Home for Comm {
    fn ranks(&self) -> u32 {
        self.nranks
    }

    fn settled(&self) -> Result<(), Error> {
        Ok(())
    }

    fn plan_of(&self, shape: Shape, rank: RankId) -> Result<Arc<AnyRankPlan>, Error> {
        Ok(Arc::new(self.spmd_plan(shape)?.into_rank(rank)?))
    }

    fn plan_of_blocks(&self, _: Call) -> Result<Option<Arc<BlocksPlan>>, Error> {
        Ok(None)
    }
}

impl Comm {
    fn in_place<T: Element>(
        &self,
        called: (Collective, u32),
        op: ReduceOp,
        buffers: &mut [&mut [T]],
    ) -> Result<(), Error> {
        let count = buffers.first().map_or(0, |buffer| buffer.len());
        self.plan(Call::new::<T>(self.nranks, called, count, op)?)?.run_in_place(buffers)?;
        Ok(())
    }

    fn apart<T: Element>(
        &self,
        called: (Collective, u32),
        op: ReduceOp,
        inputs: &[&[T]],
        outputs: &mut [&mut [T]],
    ) -> Result<(), Error> {
        let input = inputs.first().map_or(0, |input| input.len());
        let output = outputs.first().map_or(0, |output| output.len());
        let call = Call::apart::<T>(self.nranks, called, [input, output], op)?;
        self.plan(call)?.run(inputs, outputs)?;
        Ok(())
    }

    /// Reduces the buffers of all ranks, one of c elements each, and leaves the result in every one of them.
    /// [Errors](Comm#errors-of-calls): E0402 where lengths differ.
    pub fn all_reduce<T: Element>(
        &self,
        buffers: &mut [&mut [T]],
        op: ReduceOp,
    ) -> Result<(), Error> {
        self.in_place((Collective::AllReduce, 0), op, buffers)
    }

    /// Reduces all inputs into every output: each rank has an input and an output of c elements.
    /// [Errors](Comm#errors-of-calls): E0402 where lengths differ.
    pub fn all_reduce_into<T: Element>(
        &self,
        inputs: &[&[T]],
        outputs: &mut [&mut [T]],
        op: ReduceOp,
    ) -> Result<(), Error> {
        self.apart((Collective::AllReduce, 0), op, inputs, outputs)
    }

    /// Reduces block r of all inputs into output r. Outputs have c elements, and inputs n blocks of c.
    /// [Errors](Comm#errors-of-calls): E0402 where an input is not n times as long as an output.
    pub fn reduce_scatter<T: Element>(
        &self,
        inputs: &[&[T]],
        outputs: &mut [&mut [T]],
        op: ReduceOp,
    ) -> Result<(), Error> {
        self.apart((Collective::ReduceScatter, 0), op, inputs, outputs)
    }

    /// Copies input r to block r of every output. Inputs have c elements, and outputs n blocks of c.
    /// [Errors](Comm#errors-of-calls): E0402 where an output is not n times as long as an input.
    pub fn all_gather<T: Element>(
        &self,
        inputs: &[&[T]],
        outputs: &mut [&mut [T]],
    ) -> Result<(), Error> {
        self.apart((Collective::AllGather, 0), ReduceOp::Sum, inputs, outputs)
    }

    /// Copies the buffer of rank `root` to the buffers of all other ranks; each has c elements.
    /// [Errors](Comm#errors-of-calls): E0402 where lengths differ, E0411 for a root that is no rank.
    pub fn broadcast<T: Element>(&self, buffers: &mut [&mut [T]], root: u32) -> Result<(), Error> {
        self.in_place((Collective::Broadcast, root), ReduceOp::Sum, buffers)
    }

    /// Reduces the buffers of all ranks, of c elements each, into the buffer of rank `root`; the other buffers do not
    /// change. [Errors](Comm#errors-of-calls): E0402 where lengths differ, E0411 for a root that is no rank.
    pub fn reduce<T: Element>(
        &self,
        buffers: &mut [&mut [T]],
        op: ReduceOp,
        root: u32,
    ) -> Result<(), Error> {
        self.in_place((Collective::Reduce, root), op, buffers)
    }

    /// Copies block r of the root's input to output r. Outputs have c elements, the root's input n blocks of c, and the
    /// inputs of the other ranks are empty. [Errors](Comm#errors-of-calls): E0402 for another length, E0411 for a root
    /// that is no rank.
    pub fn scatter<T: Element>(
        &self,
        inputs: &[&[T]],
        outputs: &mut [&mut [T]],
        root: u32,
    ) -> Result<(), Error> {
        self.apart((Collective::Scatter, root), ReduceOp::Sum, inputs, outputs)
    }

    /// Copies input r to block r of the root's output. Inputs have c elements, the root's output n blocks of c, and the
    /// outputs of the other ranks are empty. [Errors](Comm#errors-of-calls): E0402 for another length, E0411 for a root
    /// that is no rank.
    pub fn gather<T: Element>(
        &self,
        inputs: &[&[T]],
        outputs: &mut [&mut [T]],
        root: u32,
    ) -> Result<(), Error> {
        self.apart((Collective::Gather, root), ReduceOp::Sum, inputs, outputs)
    }

    /// Copies block s of input r to block r of output s. Inputs and outputs have n blocks of c elements.
    /// [Errors](Comm#errors-of-calls): E0402 where lengths differ, or are no multiple of n.
    pub fn all_to_all<T: Element>(
        &self,
        inputs: &[&[T]],
        outputs: &mut [&mut [T]],
    ) -> Result<(), Error> {
        self.apart((Collective::AllToAll, 0), ReduceOp::Sum, inputs, outputs)
    }
}
