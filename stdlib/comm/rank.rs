//! One rank of a communicator, whose thread makes its calls.

use std::fmt;
use std::sync::Arc;

use roundelay_core::ids::RankId;
use roundelay_kernels::AnyRankPlan;
use roundelay_kernels::shared_memory::BlocksPlan;

use super::call::{Call, Shape};
use super::collectives::collectives;
use crate::{Collective, Element, EngineError, Error, ReduceOp};

/// One rank, for the thread that calls for it: [`Comm::rank`](crate::Comm::rank) makes it for ranks that are threads of
/// this process, and [`World::rank`](crate::World::rank) for ranks that are processes. Both have the same calls.
///
/// All ranks make the same calls in the same order, each by itself, as in MPI and NCCL. A call returns when this rank
/// is done; other ranks may still be in it. [`Comm`](crate::Comm) has an example, the lengths of buffers, and the
/// errors of calls: E0402 for a wrong length, E0405 where another rank does not come, E0413 after a failure, E0414
/// where ranks made different calls.
#[derive(Debug)]
pub struct Rank<'c> {
    pub(super) home: &'c dyn Home,
    pub(super) id: RankId,
    /// The last call and its plan: the next call is often the same.
    pub(super) last: Option<(Call, Arc<AnyRankPlan>)>,
}

/// The side that makes the plans of ranks: a communicator of threads or a world of processes.
pub(crate) trait Home: fmt::Debug + Sync {
    /// Returns the number of ranks.
    fn ranks(&self) -> u32;

    /// Returns when all earlier calls are done, including nonblocking ones.
    fn settled(&self) -> Result<(), Error>;

    /// Returns the plan of calls of a shape for rank `rank`.
    fn plan_of(&self, shape: Shape, rank: RankId) -> Result<Arc<AnyRankPlan>, Error>;

    /// Returns the plan that serves every vector of counts, if the engine has one: else a plan is made for each vector.
    fn plan_of_blocks(&self, call: Call) -> Result<Option<Arc<BlocksPlan>>, Error>;

    /// Returns the error of a call; an error for which a rank does not make a call is told to the other ranks, where they
    /// can be told.
    fn refused(&self, error: Error) -> Error {
        error
    }
}

/// A method of a row of the table.
macro_rules! row {
    ($(#[$doc:meta])* in_place $name:ident($($arg:ident: $of:ty),*) $call:ident, $root:expr, $op:expr) => {
        $(#[$doc])*
        pub fn $name<T: Element>(&mut self, buffer: &mut [T], $($arg: $of),*) -> Result<(), Error> {
            self.in_place((Collective::$call, $root), $op, buffer)
        }
    };
    ($(#[$doc:meta])* apart $name:ident($($arg:ident: $of:ty),*) $call:ident, $root:expr, $op:expr) => {
        $(#[$doc])*
        pub fn $name<T: Element>(
            &mut self,
            input: &[T],
            output: &mut [T],
            $($arg: $of),*
        ) -> Result<(), Error> {
            self.apart((Collective::$call, $root), $op, input, output)
        }
    };
}

impl<'c> Rank<'c> {
    pub(crate) fn new(home: &'c dyn Home, id: RankId) -> Self {
        Self { home, id, last: None }
    }

    /// Returns the number of this rank, counted from 0.
    pub fn id(&self) -> u32 {
        self.id.0
    }

    /// Returns the number of ranks.
    pub fn nranks(&self) -> u32 {
        self.home.ranks()
    }

    /// Returns the plan of a call: the last call's plan if the calls are equal.
    fn plan(&mut self, call: Call) -> Result<&AnyRankPlan, Error> {
        self.home.settled()?;
        if self.last.as_ref().is_none_or(|(last, _)| *last != call) {
            // Dropped before another plan is asked for: the home may have to drop it, too.
            self.last = None;
            self.last = Some((call, self.home.plan_of(call.into(), self.id)?));
        }
        let Some((_, plan)) = &self.last else { unreachable!("the last call was just set") };
        Ok(plan)
    }

    fn in_place<T: Element>(
        &mut self,
        called: (Collective, u32),
        op: ReduceOp,
        buffer: &mut [T],
    ) -> Result<(), Error> {
        let call = Call::new::<T>(self.nranks(), called, buffer.len(), op);
        self.made(call, |plan| plan.run_in_place(buffer))
    }

    fn apart<T: Element>(
        &mut self,
        called: (Collective, u32),
        op: ReduceOp,
        input: &[T],
        output: &mut [T],
    ) -> Result<(), Error> {
        let lens = [input.len(), output.len()];
        let call = Call::apart::<T>(self.nranks(), called, lens, op);
        self.made(call, |plan| plan.run(input, output))
    }

    /// Makes a call by `run`, or has its home tell the other ranks that this rank cannot make it.
    fn made(
        &mut self,
        call: Result<Call, Error>,
        run: impl FnOnce(&AnyRankPlan) -> Result<(), EngineError>,
    ) -> Result<(), Error> {
        let home = self.home;
        let made = call.and_then(|call| Ok(run(self.plan(call)?)?));
        made.map_err(|error| home.refused(error))
    }

    /// Makes a call that is a value, on bytes: the lengths of `input` and `output` are those that [`Collective`] lists,
    /// in elements of the call's type. [Errors](crate::Comm#errors-of-calls): E0404 for bytes that are not aligned for
    /// the type.
    ///
    /// ```
    /// use roundelay::{Call, Collective, Comm, DType, ReduceOp};
    ///
    /// let comm = Comm::new(1)?;
    /// let (collective, dtype, op) = (Collective::AllGather, DType::U8, ReduceOp::Sum);
    /// let call = Call { collective, root: 0, count: 3, dtype, op };
    /// let mut output = [0; 3];
    /// comm.rank(0)?.call_bytes(call, &[1, 2, 3], &mut output)?;
    /// assert_eq!(output, [1, 2, 3]);
    /// # Ok::<(), roundelay::Error>(())
    /// ```
    pub fn call_bytes(&mut self, call: Call, input: &[u8], output: &mut [u8]) -> Result<(), Error> {
        self.made(call.of(self.nranks()), |plan| plan.run_bytes(input, output))
    }

    /// Makes a call that is a value, in place, on bytes: `buffer` holds the rank's input before and its output after,
    /// and is as long as the larger of the two. Where the input is a block of the output or the output a block of the
    /// input, as in `AllGather`, it is block r of rank r. [Errors](crate::Comm#errors-of-calls): E0408 where there is
    /// no form in place; the errors of [`Self::call_bytes`].
    pub fn call_bytes_in_place(&mut self, call: Call, buffer: &mut [u8]) -> Result<(), Error> {
        self.made(call.of(self.nranks()), |plan| plan.run_bytes_in_place(buffer))
    }

    /// Returns when all ranks have called it. It is an `AllReduce` of one byte. [Errors](crate::Comm#errors-of-calls):
    /// E0414 where another rank makes another call.
    pub fn barrier(&mut self) -> Result<(), Error> {
        self.all_reduce(&mut [0_u8], ReduceOp::Max)
    }

    collectives!(row);
}
