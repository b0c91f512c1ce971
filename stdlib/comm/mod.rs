//! A communicator: ranks of one process, and plans for what they call, made once for each shape.
//!
//! Algorithms are chosen for one host: there the optimizer brings all of them to the same data flow, so the one
//! taken is the quickest to lay out and prove. For an algorithm of your own make a [`Plan`] or a [`Team`].

mod kept;
mod rank;

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use roundelay_core::ids::RankId;
use roundelay_kernels::{Calls, Team};

use kept::Kept;
pub use rank::Rank;

use crate::library::{
    MeshAllGather, MeshAllToAll, MeshGather, MeshReduceScatter, MeshScatter, NhrAllReduce,
    NhrBroadcast, OneShotMeshAllReduce, RingReduce,
};
use crate::{Algorithm, Collective, DType, Element, Error, Options, Plan, ReduceOp, Run as _};

/// From here on a direct exchange takes longer to prove than to run.
const MESH: u32 = 64;

/// What is called: everything that a plan depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Call {
    collective: Collective,
    root: u32,
    /// Elements a unit.
    count: u64,
    dtype: DType,
    op: ReduceOp,
}

/// Ranks of this process that run collectives together.
///
/// Either one caller drives all of them, with a slice per rank, or each rank has a thread of its own, which calls
/// through [`Comm::rank`]. Ranks of their own must make the same calls in the same order, as in MPI and NCCL.
///
/// A call in which ranks differ is refused (E0414): it is void for all of them, each is told once, and everything works
/// as before. After any other failure, such as a rank that does not come within the deadline of the options (E0405),
/// nothing works any more: each later call fails at once and says why (E0413). Wrong buffers and the like are found
/// before a rank makes a call, and are no call.
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
    plans: Mutex<Kept<Arc<Plan>>>,
    teams: RwLock<Kept<Arc<Team>>>,
    /// Of ranks that call by themselves.
    calls: Arc<Calls>,
}

impl Comm {
    /// A communicator of so many ranks.
    ///
    /// # Errors
    /// E0409 for none, or more than a schedule can have.
    pub fn new(nranks: u32) -> Result<Self, Error> {
        Self::with(nranks, Options::default())
    }

    /// The same, with options for all that it runs.
    pub fn with(nranks: u32, options: Options) -> Result<Self, Error> {
        let calls = Calls::new(nranks, options)?;
        let (plans, teams) = (Kept::new(Self::PLANS), Kept::new(Self::PLANS));
        Ok(Self { nranks, options, plans: Mutex::new(plans), teams: RwLock::new(teams), calls })
    }

    /// Plans that a communicator keeps unless it is told otherwise.
    pub const PLANS: NonZeroUsize = NonZeroUsize::new(256).expect("it is not 0");

    /// The same, with so many plans kept: of one caller, and as many of ranks that call by themselves. One more, and
    /// the plan that was not called for the longest time goes, and is made again when it is called again. Those stay
    /// beyond the bound that a rank called last, or that some ranks have called and others are still to call.
    #[must_use]
    pub fn keeping(mut self, plans: NonZeroUsize) -> Self {
        (self.plans, self.teams) = (Mutex::new(Kept::new(plans)), RwLock::new(Kept::new(plans)));
        self
    }

    /// Plans that are kept: of one caller, and of ranks that call by themselves.
    #[doc(hidden)]
    pub fn kept(&self) -> [usize; 2] {
        let plans = self.plans.lock().unwrap_or_else(PoisonError::into_inner).len();
        [plans, self.teams.read().unwrap_or_else(PoisonError::into_inner).len()]
    }

    /// Number of ranks.
    pub fn nranks(&self) -> u32 {
        self.nranks
    }

    /// Rank `rank`, for one thread.
    ///
    /// # Errors
    /// E0411 beyond the last rank. A second thread that calls for a rank while the first is in a call gets E0412.
    pub fn rank(&self, rank: u32) -> Result<Rank<'_>, Error> {
        let nranks = self.nranks;
        if rank >= nranks {
            let rank = RankId(rank);
            return Err(roundelay_kernels::Error::NoSuchRank { rank, nranks }.into());
        }
        Ok(Rank { comm: self, id: RankId(rank), last: None })
    }

    fn algorithm(&self, call: &Call) -> Box<dyn Algorithm> {
        let root = i64::from(call.root);
        match call.collective {
            Collective::AllReduce if self.nranks <= MESH => Box::new(OneShotMeshAllReduce::new()),
            Collective::AllReduce => Box::new(NhrAllReduce::new()),
            Collective::ReduceScatter => Box::new(MeshReduceScatter::new()),
            Collective::AllGather => Box::new(MeshAllGather::new()),
            Collective::Broadcast => Box::new(NhrBroadcast::new().root(root)),
            Collective::Reduce => Box::new(RingReduce::new().root(root).slices(1)),
            Collective::Scatter => Box::new(MeshScatter::new().root(root)),
            Collective::Gather => Box::new(MeshGather::new().root(root)),
            Collective::AllToAll => Box::new(MeshAllToAll::new()),
        }
    }

    fn plan(&self, call: Call) -> Result<Arc<Plan>, Error> {
        let mut plans = self.plans.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(plan) = plans.get(&call) {
            return Ok(plan.clone());
        }
        let Call { count, dtype, op, .. } = call;
        let algorithm = self.algorithm(&call);
        let plan = Arc::new(algorithm.plan_with(self.nranks, count, dtype, op, self.options)?);
        plans.make_room(|_| true);
        plans.insert(call, plan.clone());
        Ok(plan)
    }

    /// The one plan of a shape: while a rank holds it, or is still to come to a call that another made with it,
    /// there is no second one.
    fn team(&self, call: Call) -> Result<Arc<Team>, Error> {
        let teams = self.teams.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(team) = teams.get(&call) {
            return Ok(team.clone());
        }
        drop(teams);
        // Held while the team is made: the other ranks are about to ask for the same.
        let mut teams = self.teams.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(team) = teams.get(&call) {
            return Ok(team.clone());
        }
        let Call { count, dtype, op, .. } = call;
        let proved = crate::proved(&*self.algorithm(&call), self.nranks)?;
        let team = Team::among(&self.calls, &proved, count, dtype, op, self.options)?;
        let team = Arc::new(team);
        // To have it alone is to know of all calls that were made with it.
        teams.make_room(|team| Arc::get_mut(team).is_some_and(|team| !team.awaited()));
        teams.insert(call, team.clone());
        Ok(team)
    }
}

/// Elements a unit of a buffer of `nranks` units.
fn unit(what: &'static str, len: usize, nranks: u32) -> Result<u64, Error> {
    let n = nranks as usize;
    if len.is_multiple_of(n) {
        Ok((len / n) as u64)
    } else {
        Err(Error::NotInBlocks { what, len, nranks })
    }
}

impl Comm {
    fn call<T: Element>(
        &self,
        collective: Collective,
        root: u32,
        count: usize,
        op: ReduceOp,
    ) -> Result<Call, Error> {
        if root >= self.nranks {
            let (rank, nranks) = (RankId(root), self.nranks);
            return Err(roundelay_kernels::Error::NoSuchRank { rank, nranks }.into());
        }
        Ok(Call { collective, root, count: count as u64, dtype: T::DTYPE, op })
    }

    fn in_place<T: Element>(&self, call: Call, buffers: &mut [&mut [T]]) -> Result<(), Error> {
        self.plan(call)?.run_in_place(buffers)?;
        Ok(())
    }

    fn apart<T: Element>(
        &self,
        call: Call,
        inputs: &[&[T]],
        outputs: &mut [&mut [T]],
    ) -> Result<(), Error> {
        self.plan(call)?.run(inputs, outputs)?;
        Ok(())
    }

    /// Reduces all ranks' buffers into every one of them.
    pub fn all_reduce<T: Element>(
        &self,
        buffers: &mut [&mut [T]],
        op: ReduceOp,
    ) -> Result<(), Error> {
        let count = buffers.first().map_or(0, |buffer| buffer.len());
        self.in_place(self.call::<T>(Collective::AllReduce, 0, count, op)?, buffers)
    }

    /// Reduces all inputs into every output.
    pub fn all_reduce_into<T: Element>(
        &self,
        inputs: &[&[T]],
        outputs: &mut [&mut [T]],
        op: ReduceOp,
    ) -> Result<(), Error> {
        let count = inputs.first().map_or(0, |input| input.len());
        self.apart(self.call::<T>(Collective::AllReduce, 0, count, op)?, inputs, outputs)
    }

    /// Reduces block r of all inputs into output r; inputs have nranks blocks of an output's length.
    pub fn reduce_scatter<T: Element>(
        &self,
        inputs: &[&[T]],
        outputs: &mut [&mut [T]],
        op: ReduceOp,
    ) -> Result<(), Error> {
        let count = outputs.first().map_or(0, |output| output.len());
        self.apart(self.call::<T>(Collective::ReduceScatter, 0, count, op)?, inputs, outputs)
    }

    /// Copies input r to block r of every output; outputs have nranks blocks of an input's length.
    pub fn all_gather<T: Element>(
        &self,
        inputs: &[&[T]],
        outputs: &mut [&mut [T]],
    ) -> Result<(), Error> {
        let count = inputs.first().map_or(0, |input| input.len());
        self.apart(self.call::<T>(Collective::AllGather, 0, count, ReduceOp::Sum)?, inputs, outputs)
    }

    /// Copies the root's buffer to all others.
    pub fn broadcast<T: Element>(&self, buffers: &mut [&mut [T]], root: u32) -> Result<(), Error> {
        let count = buffers.first().map_or(0, |buffer| buffer.len());
        self.in_place(self.call::<T>(Collective::Broadcast, root, count, ReduceOp::Sum)?, buffers)
    }

    /// Reduces all ranks' buffers into the root's; the others keep what they hold.
    pub fn reduce<T: Element>(
        &self,
        buffers: &mut [&mut [T]],
        op: ReduceOp,
        root: u32,
    ) -> Result<(), Error> {
        let count = buffers.first().map_or(0, |buffer| buffer.len());
        self.in_place(self.call::<T>(Collective::Reduce, root, count, op)?, buffers)
    }

    /// Copies block r of the root's input to output r; the others' inputs are empty.
    pub fn scatter<T: Element>(
        &self,
        inputs: &[&[T]],
        outputs: &mut [&mut [T]],
        root: u32,
    ) -> Result<(), Error> {
        let count = outputs.first().map_or(0, |output| output.len());
        self.apart(
            self.call::<T>(Collective::Scatter, root, count, ReduceOp::Sum)?,
            inputs,
            outputs,
        )
    }

    /// Copies input r to block r of the root's output; the others' outputs are empty.
    pub fn gather<T: Element>(
        &self,
        inputs: &[&[T]],
        outputs: &mut [&mut [T]],
        root: u32,
    ) -> Result<(), Error> {
        let count = inputs.first().map_or(0, |input| input.len());
        self.apart(self.call::<T>(Collective::Gather, root, count, ReduceOp::Sum)?, inputs, outputs)
    }

    /// Copies block s of input r to block r of output s.
    pub fn all_to_all<T: Element>(
        &self,
        inputs: &[&[T]],
        outputs: &mut [&mut [T]],
    ) -> Result<(), Error> {
        let len = inputs.first().map_or(0, |input| input.len());
        let count = unit("input", len, self.nranks)? as usize;
        self.apart(self.call::<T>(Collective::AllToAll, 0, count, ReduceOp::Sum)?, inputs, outputs)
    }
}
