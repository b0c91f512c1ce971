//! Calls that do not block, on buffers that are given away until then, or lent for a scope.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use roundelay_core::counts::RankBlocks;
use roundelay_kernels::{AnyRankPlan, Error as EngineError, bytes_of, bytes_of_mut};

use super::World;
use super::progress::{Pending, Queue};
use super::refusals::refused;
use crate::comm::call::Call;
use crate::comm::collectives::collectives;
use crate::{Collective, Element, Error, ReduceOp};

/// Calls of a rank that return at once: [`World::nonblocking`] makes it.
///
/// Each call takes its buffers and returns a [`Pending`], whose [`wait`](Pending::wait) gives them back. A buffer is
/// any value that is a slice of elements and may go to another thread, such as a `Vec`, a `Box<[T]>` and a
/// [`Lent`](crate::Lent). The calls are the methods of [`Rank`](crate::Rank), with the same lengths and errors.
///
/// Any number of calls may be under way. They are made one after the other in the order in which they were asked for,
/// by a thread of the world that the first of them starts. All ranks must make the same calls in the same order,
/// whether each of them blocks or not; a call of [`Rank`](crate::Rank) first waits for the calls under way. `wait` also
/// returns the errors of making the plan (E02xx, E0402, E0411 and others).
pub struct Nonblocking<'w> {
    world: &'w World,
}

/// Calls of a rank that return at once and borrow their buffers: [`World::scope`] makes it.
///
/// The calls are the methods of [`Nonblocking`], on slices that outlive the scope.
pub struct Scope<'w, 'env> {
    world: &'w World,
    queue: Queue<'env>,
}

impl World {
    /// Queues a call for the thread of `queue`, which runs `run` on the plan of the call.
    fn later<'env, R: Send + 'env>(
        &self,
        queue: Result<&Queue<'env>, Error>,
        call: Result<Call, Error>,
        run: impl FnOnce(&AnyRankPlan) -> Result<R, Error> + Send + 'env,
    ) -> Pending<R> {
        let plan = call.and_then(|call| self.plan(call.into()));
        match queue.and_then(|queue| Ok((queue, plan?))) {
            Ok((queue, plan)) => {
                let engine = self.hosts.is_none().then(|| self.engine.clone());
                queue.call(move || run(&plan).map_err(|error| refused(engine.as_deref(), error)))
            }
            Err(error) => Pending::failed(&self.turns, self.tell(error)),
        }
    }

    /// Makes a call in place, for the thread of `queue`.
    fn in_place<'env, T: Element, B: DerefMut<Target = [T]> + Send + 'env>(
        &self,
        queue: Result<&Queue<'env>, Error>,
        called: (Collective, u32),
        op: ReduceOp,
        mut buffer: B,
    ) -> Pending<B> {
        let call = Call::new::<T>(self.nranks(), called, buffer.len(), op);
        self.later(queue, call, move |plan| {
            plan.run_in_place(&mut buffer)?;
            Ok(buffer)
        })
    }

    /// Makes a call with two buffers, for the thread of `queue`.
    fn apart<'env, T: Element, I, O>(
        &self,
        queue: Result<&Queue<'env>, Error>,
        called: (Collective, u32),
        op: ReduceOp,
        (input, mut output): (I, O),
    ) -> Pending<(I, O)>
    where
        I: Deref<Target = [T]> + Send + 'env,
        O: DerefMut<Target = [T]> + Send + 'env,
    {
        let call = Call::apart::<T>(self.nranks(), called, [input.len(), output.len()], op);
        self.later(queue, call, move |plan| {
            plan.run(&input, &mut output)?;
            Ok((input, output))
        })
    }

    /// Makes a call on bytes, for the thread of `queue`.
    fn bytes<'env, R: Send + 'env>(
        &self,
        queue: Result<&Queue<'env>, Error>,
        call: Call,
        run: impl FnOnce(&AnyRankPlan) -> Result<R, Error> + Send + 'env,
    ) -> Pending<R> {
        self.later(queue, call.of(self.nranks()), run)
    }

    /// Makes a value of this rank for the thread of a queue: its calls wait for no calls under way, of which they are one.
    #[doc(hidden)]
    #[must_use]
    pub fn share_with_queue(&self) -> Self {
        let (plans, blocks) = (self.plans.clone(), self.blocks.clone());
        Self { progress: Arc::default(), turns: Arc::default(), plans, blocks, ..self.share() }
    }

    /// Makes a call with a count for each block, for the thread of `queue`.
    fn blocks<'env, T: Element, I, O>(
        &self,
        queue: Result<&Queue<'env>, Error>,
        (call, blocks): (Call, RankBlocks),
        (input, mut output): (I, O),
    ) -> Pending<(I, O)>
    where
        I: Deref<Target = [T]> + Send + 'env,
        O: DerefMut<Target = [T]> + Send + 'env,
    {
        let (given, expected) = (T::DTYPE, call.dtype);
        if given != expected {
            let error = self.tell(EngineError::WrongDType { given, expected }.into());
            return Pending::failed(&self.turns, error);
        }
        match queue.and_then(|queue| Ok((queue, self.blocks_plan(call)?))) {
            Ok((queue, Some(plan))) => {
                let engine = self.engine.clone();
                queue.call(move || {
                    let made = plan.run_bytes(&blocks, bytes_of(&input), bytes_of_mut(&mut output));
                    made.map_err(|error| refused(Some(&engine), error.into()))?;
                    Ok((input, output))
                })
            }
            // Between hosts, the counts of all ranks are brought together by a call of its own.
            Ok((queue, None)) => {
                let beside = self.share_with_queue();
                queue.call(move || {
                    beside.rank().call_blocks(call, &blocks, &input, &mut output)?;
                    Ok((input, output))
                })
            }
            Err(error) => Pending::failed(&self.turns, self.tell(error)),
        }
    }

    fn later_barrier(&self, queue: Result<&Queue<'_>, Error>) -> Pending<()> {
        let call = Call::new::<u8>(self.nranks(), (Collective::AllReduce, 0), 1, ReduceOp::Max);
        self.later(queue, call, |plan| Ok(plan.run_in_place(&mut [0_u8])?))
    }
}

/// A method for a row of the table; it takes its buffers by value.
macro_rules! given_away {
    ($(#[$_:meta])* in_place $name:ident($($arg:ident: $of:ty),*) $call:ident, $root:expr, $op:expr) => {
        #[doc = concat!("[`Rank::", stringify!($name), "`](crate::Rank::", stringify!($name), "), which gives its buffer back.")]
        #[must_use = "the buffers and the errors come from `wait`"]
        pub fn $name<T: Element, B: DerefMut<Target = [T]> + Send + 'static>(
            &self,
            buffer: B,
            $($arg: $of),*
        ) -> Pending<B> {
            self.world.in_place(self.queue(), (Collective::$call, $root), $op, buffer)
        }
    };
    ($(#[$_:meta])* apart $name:ident($($arg:ident: $of:ty),*) $call:ident, $root:expr, $op:expr) => {
        #[doc = concat!("[`Rank::", stringify!($name), "`](crate::Rank::", stringify!($name), "), which gives both buffers back.")]
        #[must_use = "the buffers and the errors come from `wait`"]
        pub fn $name<T: Element, I, O>(&self, input: I, output: O, $($arg: $of),*) -> Pending<(I, O)>
        where
            I: Deref<Target = [T]> + Send + 'static,
            O: DerefMut<Target = [T]> + Send + 'static,
        {
            self.world.apart(self.queue(), (Collective::$call, $root), $op, (input, output))
        }
    };
}

/// A method of a row of the table, on borrowed slices.
macro_rules! lent {
    ($(#[$_:meta])* in_place $name:ident($($arg:ident: $of:ty),*) $call:ident, $root:expr, $op:expr) => {
        #[doc = concat!("[`Rank::", stringify!($name), "`](crate::Rank::", stringify!($name), "), on a borrowed slice.")]
        pub fn $name<T: Element>(&self, buffer: &'env mut [T], $($arg: $of),*) -> Pending<&'env mut [T]> {
            self.world.in_place(self.queue(), (Collective::$call, $root), $op, buffer)
        }
    };
    ($(#[$_:meta])* apart $name:ident($($arg:ident: $of:ty),*) $call:ident, $root:expr, $op:expr) => {
        #[doc = concat!("[`Rank::", stringify!($name), "`](crate::Rank::", stringify!($name), "), on borrowed slices.")]
        pub fn $name<T: Element>(
            &self,
            input: &'env [T],
            output: &'env mut [T],
            $($arg: $of),*
        ) -> Pending<(&'env [T], &'env mut [T])> {
            self.world.apart(self.queue(), (Collective::$call, $root), $op, (input, output))
        }
    };
}

impl<'w> Nonblocking<'w> {
    pub(super) fn new(world: &'w World) -> Self {
        Self { world }
    }

    fn queue(&self) -> Result<&'w Queue<'static>, Error> {
        self.world.queue()
    }

    collectives!(given_away);

    /// [`Rank::call_bytes`](crate::Rank::call_bytes), which gives both buffers back.
    #[must_use = "the buffers and the errors come from `wait`"]
    pub fn call_bytes<I, O>(&self, call: Call, input: I, mut output: O) -> Pending<(I, O)>
    where
        I: Deref<Target = [u8]> + Send + 'static,
        O: DerefMut<Target = [u8]> + Send + 'static,
    {
        self.world.bytes(self.queue(), call, move |plan| {
            plan.run_bytes(&input, &mut output)?;
            Ok((input, output))
        })
    }

    /// [`Rank::call_blocks`](crate::Rank::call_blocks), which gives both buffers back.
    ///
    /// ```
    /// use roundelay::compiler::counts::{Block, RankBlocks};
    /// use roundelay::{Call, Collective, DType, ReduceOp, UniqueId, World};
    ///
    /// let world = World::join(&UniqueId::new()?, 1, 0)?;
    /// let (collective, dtype, op) = (Collective::AllGather, DType::U8, ReduceOp::Sum);
    /// let call = Call { collective, root: 0, count: 0, dtype, op };
    /// let (own, all) = (Block::pack([3]), Block::pack([3]));
    /// let blocks = RankBlocks::new(collective, 0.into(), 0.into(), 1, own, all)?;
    /// let pending = world.nonblocking().call_blocks(call, blocks, vec![1_u8, 2, 3], vec![0; 3]);
    /// let (_, all) = pending.wait()?;
    /// assert_eq!(all, [1, 2, 3]);
    /// # Ok::<(), roundelay::Error>(())
    /// ```
    #[must_use = "the buffers and the errors come from `wait`"]
    pub fn call_blocks<T: Element, I, O>(
        &self,
        call: Call,
        blocks: RankBlocks,
        input: I,
        output: O,
    ) -> Pending<(I, O)>
    where
        I: Deref<Target = [T]> + Send + 'static,
        O: DerefMut<Target = [T]> + Send + 'static,
    {
        self.world.blocks(self.queue(), (call, blocks), (input, output))
    }

    /// [`Rank::call_bytes_in_place`](crate::Rank::call_bytes_in_place), which gives its buffer back.
    #[must_use = "the buffers and the errors come from `wait`"]
    pub fn call_bytes_in_place<B: DerefMut<Target = [u8]> + Send + 'static>(
        &self,
        call: Call,
        mut buffer: B,
    ) -> Pending<B> {
        self.world.bytes(self.queue(), call, move |plan| {
            plan.run_bytes_in_place(&mut buffer)?;
            Ok(buffer)
        })
    }

    /// Makes a call of any kind in the order of the others.
    #[doc(hidden)]
    #[must_use = "the errors come from `wait`"]
    pub fn job<R: Send + 'static>(
        &self,
        job: impl FnOnce() -> Result<R, Error> + Send + 'static,
    ) -> Pending<R> {
        let engine = self.world.hosts.is_none().then(|| self.world.engine.clone());
        match self.queue() {
            Ok(queue) => {
                queue.call(move || job().map_err(|error| refused(engine.as_deref(), error)))
            }
            Err(error) => Pending::failed(&self.world.turns, error),
        }
    }

    /// [`Rank::barrier`](crate::Rank::barrier).
    #[must_use = "the errors come from `wait`"]
    pub fn barrier(&self) -> Pending<()> {
        self.world.later_barrier(self.queue())
    }
}

impl<'w, 'env> Scope<'w, 'env> {
    pub(super) fn new(world: &'w World, queue: Queue<'env>) -> Self {
        Self { world, queue }
    }

    #[allow(clippy::unnecessary_wraps, reason = "as in the calls that take their buffers by value")]
    fn queue(&self) -> Result<&Queue<'env>, Error> {
        Ok(&self.queue)
    }

    collectives!(lent);

    /// [`Rank::call_blocks`](crate::Rank::call_blocks), on borrowed slices.
    pub fn call_blocks<T: Element>(
        &self,
        call: Call,
        blocks: RankBlocks,
        input: &'env [T],
        output: &'env mut [T],
    ) -> Pending<(&'env [T], &'env mut [T])> {
        self.world.blocks(self.queue(), (call, blocks), (input, output))
    }

    /// [`Rank::barrier`](crate::Rank::barrier).
    pub fn barrier(&self) -> Pending<()> {
        self.world.later_barrier(self.queue())
    }
}

impl fmt::Debug for Nonblocking<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Nonblocking").field("world", self.world).finish()
    }
}

impl fmt::Debug for Scope<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scope").field("world", self.world).finish_non_exhaustive()
    }
}
