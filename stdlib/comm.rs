//! A communicator: ranks of one process, and plans for what they call, made once for each shape.
//!
//! Algorithms are chosen for one host: there the optimizer brings all of them to the same data flow, so the one
//! taken is the quickest to lay out and prove. For an algorithm of your own make a [`Plan`] or a [`Team`].

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use roundelay_core::ids::RankId;
use roundelay_kernels::Team;

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
/// through [`Comm::rank`]. Ranks of their own must make the same calls in the same order, as in MPI and NCCL; a call
/// that not all make ends at the deadline of the options with E0405 or E0414.
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
    plans: Mutex<HashMap<Call, Arc<Plan>>>,
    teams: RwLock<Teams>,
    /// What each rank's thread is in: one more than a team's number, or 0.
    doing: Box<[Line]>,
}

#[derive(Debug, Default)]
struct Teams {
    numbers: HashMap<Call, usize>,
    all: Vec<(Call, Arc<Team>)>,
}

/// A number in a cache line of its own.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Line(AtomicUsize);

/// One rank of a communicator, for the thread that calls for it.
#[derive(Debug)]
pub struct Rank<'c> {
    comm: &'c Comm,
    id: RankId,
    /// The call before: the next one is often the same.
    last: Option<(Call, usize, Arc<Team>)>,
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
        if nranks == 0 {
            return Err(roundelay_kernels::Error::NoRanks.into());
        }
        let doing = (0..nranks).map(|_| Line::default()).collect();
        Ok(Self { nranks, options, plans: Mutex::default(), teams: RwLock::default(), doing })
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
        plans.insert(call, plan.clone());
        Ok(plan)
    }

    fn team(&self, call: Call) -> Result<(usize, Arc<Team>), Error> {
        let known = |teams: &Teams| {
            let number = *teams.numbers.get(&call)?;
            Some((number, teams.all[number].1.clone()))
        };
        if let Some(known) = known(&self.teams.read().unwrap_or_else(PoisonError::into_inner)) {
            return Ok(known);
        }
        // Held while the team is made: the other ranks are about to ask for the same.
        let mut teams = self.teams.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = known(&teams) {
            return Ok(known);
        }
        let Call { count, dtype, op, .. } = call;
        let algorithm = self.algorithm(&call);
        let team = Arc::new(algorithm.team_with(self.nranks, count, dtype, op, self.options)?);
        let number = teams.all.len();
        teams.numbers.insert(call, number);
        teams.all.push((call, team.clone()));
        Ok((number, team))
    }

    /// Another rank's call that is under way and is not this one.
    fn other_call(&self, rank: RankId, number: usize) -> Option<(RankId, Call)> {
        let teams = self.teams.read().unwrap_or_else(PoisonError::into_inner);
        let doing = self.doing.iter().map(|doing| doing.0.load(Ordering::Relaxed).checked_sub(1));
        let mut others = (0..).map(RankId).zip(doing).filter(|(other, _)| *other != rank);
        others.find_map(|(other, doing)| {
            let doing = doing.filter(|doing| *doing != number)?;
            Some((other, teams.all[doing].0))
        })
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

impl Rank<'_> {
    /// Which rank it is.
    pub fn id(&self) -> u32 {
        self.id.0
    }

    /// Makes one call, with the plan of the last one if that was the same.
    fn make(
        &mut self,
        call: Result<Call, Error>,
        run: impl FnOnce(&Team, RankId) -> Result<(), roundelay_kernels::Error>,
    ) -> Result<(), Error> {
        let call = call?;
        if self.last.as_ref().is_none_or(|(last, ..)| *last != call) {
            let (number, team) = self.comm.team(call)?;
            self.last = Some((call, number, team));
        }
        let Some((_, number, team)) = &self.last else { unreachable!("it was just set") };
        let doing = &self.comm.doing[self.id.index()].0;
        doing.store(number + 1, Ordering::Relaxed);
        let done = run(team, self.id);
        if let Err(roundelay_kernels::Error::Timeout(_)) = done
            && let Some((other, theirs)) = self.comm.other_call(self.id, *number)
        {
            let (mine, theirs) = (call.to_string(), theirs.to_string());
            return Err(Error::CallsDiffer { rank: self.id.0, mine, other: other.0, theirs });
        }
        doing.store(0, Ordering::Relaxed);
        Ok(done?)
    }

    fn in_place<T: Element>(
        &mut self,
        (collective, root): (Collective, u32),
        count: usize,
        op: ReduceOp,
        buffer: &mut [T],
    ) -> Result<(), Error> {
        let call = self.comm.call::<T>(collective, root, count, op);
        self.make(call, |team, rank| team.rank(rank)?.run_in_place(buffer))
    }

    fn apart<T: Element>(
        &mut self,
        (collective, root): (Collective, u32),
        count: usize,
        op: ReduceOp,
        input: &[T],
        output: &mut [T],
    ) -> Result<(), Error> {
        let call = self.comm.call::<T>(collective, root, count, op);
        self.make(call, |team, rank| team.rank(rank)?.run(input, output))
    }

    /// Reduces all ranks' buffers into every one of them.
    pub fn all_reduce<T: Element>(&mut self, buffer: &mut [T], op: ReduceOp) -> Result<(), Error> {
        self.in_place((Collective::AllReduce, 0), buffer.len(), op, buffer)
    }

    /// Reduces all ranks' inputs into every output.
    pub fn all_reduce_into<T: Element>(
        &mut self,
        input: &[T],
        output: &mut [T],
        op: ReduceOp,
    ) -> Result<(), Error> {
        self.apart((Collective::AllReduce, 0), input.len(), op, input, output)
    }

    /// Reduces block r of all inputs into rank r's output.
    pub fn reduce_scatter<T: Element>(
        &mut self,
        input: &[T],
        output: &mut [T],
        op: ReduceOp,
    ) -> Result<(), Error> {
        self.apart((Collective::ReduceScatter, 0), output.len(), op, input, output)
    }

    /// Copies rank r's input to block r of every output.
    pub fn all_gather<T: Element>(&mut self, input: &[T], output: &mut [T]) -> Result<(), Error> {
        self.apart((Collective::AllGather, 0), input.len(), ReduceOp::Sum, input, output)
    }

    /// Copies the root's buffer to all others.
    pub fn broadcast<T: Element>(&mut self, buffer: &mut [T], root: u32) -> Result<(), Error> {
        self.in_place((Collective::Broadcast, root), buffer.len(), ReduceOp::Sum, buffer)
    }

    /// Reduces all ranks' buffers into the root's.
    pub fn reduce<T: Element>(
        &mut self,
        buffer: &mut [T],
        op: ReduceOp,
        root: u32,
    ) -> Result<(), Error> {
        self.in_place((Collective::Reduce, root), buffer.len(), op, buffer)
    }

    /// Copies block r of the root's input to rank r's output; inputs of the others are empty.
    pub fn scatter<T: Element>(
        &mut self,
        input: &[T],
        output: &mut [T],
        root: u32,
    ) -> Result<(), Error> {
        self.apart((Collective::Scatter, root), output.len(), ReduceOp::Sum, input, output)
    }

    /// Copies rank r's input to block r of the root's output; outputs of the others are empty.
    pub fn gather<T: Element>(
        &mut self,
        input: &[T],
        output: &mut [T],
        root: u32,
    ) -> Result<(), Error> {
        self.apart((Collective::Gather, root), input.len(), ReduceOp::Sum, input, output)
    }

    /// Copies block s of rank r's input to block r of rank s's output.
    pub fn all_to_all<T: Element>(&mut self, input: &[T], output: &mut [T]) -> Result<(), Error> {
        let count = unit("input", input.len(), self.comm.nranks)? as usize;
        self.apart((Collective::AllToAll, 0), count, ReduceOp::Sum, input, output)
    }
}

impl std::fmt::Display for Call {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { collective, root, count, dtype, op } = self;
        write!(f, "{collective} of {count} {dtype}")?;
        if collective.reduces() {
            write!(f, ", {op}")?;
        }
        if collective.is_rooted() {
            write!(f, ", root {root}")?;
        }
        Ok(())
    }
}
