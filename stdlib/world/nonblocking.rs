//! Calls that do not block, on buffers that are given away until then, or lent for a scope.

use std::fmt;
use std::ops::{Deref, DerefMut};

use roundelay_kernels::AnyRankPlan;

use super::World;
use super::progress::{Pending, Queue};
use crate::comm::call::Call;
use crate::{Collective, Element, Error, ReduceOp};

/// Calls of a rank that return at once: [`World::nonblocking`] makes it.
///
/// Each call takes its buffers and returns a [`Pending`], whose [`wait`](Pending::wait) gives them back. A buffer is
/// anything that is a slice of elements and may go to another thread, such as a `Vec`, a `Box<[T]>` and a
/// [`Lent`](crate::Lent). The calls are those of [`Rank`](crate::Rank), with the same lengths and errors.
///
/// Any number of calls may be under way. They are made one after the other in the order in which they were asked for,
/// by a thread of the world that the first of them starts. All ranks must make the same calls in the same order,
/// whether each of them blocks or not; a call of [`Rank`](crate::Rank) first waits for those under way. What a plan's
/// making says (E02xx, E0402, E0411 and others) is said by `wait`, too.
pub struct Nonblocking<'w> {
    world: &'w World,
}

/// Calls of a rank that return at once and borrow their buffers: [`World::scope`] makes it.
///
/// The calls are those of [`Nonblocking`], on slices that outlive the scope.
pub struct Scope<'w, 'env> {
    world: &'w World,
    queue: Queue<'env>,
}

impl World {
    /// What `run` makes of the plan of a call, on the thread of `queue`.
    fn later<'env, R: Send + 'env>(
        &self,
        queue: Result<&Queue<'env>, Error>,
        call: Result<Call, Error>,
        run: impl FnOnce(&AnyRankPlan) -> Result<R, Error> + Send + 'env,
    ) -> Pending<R> {
        let plan = call.and_then(|call| self.plan(call));
        match queue.and_then(|queue| Ok((queue, plan?))) {
            Ok((queue, plan)) => queue.call(move || run(&plan)),
            Err(error) => Pending::failed(&self.turns, error),
        }
    }

    /// A call in place, for the thread of `queue`.
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

    /// A call with two buffers, for the thread of `queue`.
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

    /// A call on bytes, for the thread of `queue`.
    fn bytes<'env, R: Send + 'env>(
        &self,
        queue: Result<&Queue<'env>, Error>,
        call: Call,
        run: impl FnOnce(&AnyRankPlan) -> Result<R, Error> + Send + 'env,
    ) -> Pending<R> {
        self.later(queue, call.of(self.nranks()), run)
    }

    fn later_barrier(&self, queue: Result<&Queue<'_>, Error>) -> Pending<()> {
        let call = Call::new::<u8>(self.nranks(), (Collective::AllReduce, 0), 1, ReduceOp::Max);
        self.later(queue, call, |plan| Ok(plan.run_in_place(&mut [0_u8])?))
    }
}

impl<'w> Nonblocking<'w> {
    pub(super) fn new(world: &'w World) -> Self {
        Self { world }
    }

    fn queue(&self) -> Result<&'w Queue<'static>, Error> {
        self.world.queue()
    }

    /// [`Rank::all_reduce`](crate::Rank::all_reduce), which gives its buffer back.
    #[must_use = "the buffers and the errors come from `wait`"]
    pub fn all_reduce<T: Element, B: DerefMut<Target = [T]> + Send + 'static>(
        &self,
        buffer: B,
        op: ReduceOp,
    ) -> Pending<B> {
        self.world.in_place(self.queue(), (Collective::AllReduce, 0), op, buffer)
    }

    /// [`Rank::all_reduce_into`](crate::Rank::all_reduce_into), which gives both buffers back.
    #[must_use = "the buffers and the errors come from `wait`"]
    pub fn all_reduce_into<T: Element, I, O>(
        &self,
        input: I,
        output: O,
        op: ReduceOp,
    ) -> Pending<(I, O)>
    where
        I: Deref<Target = [T]> + Send + 'static,
        O: DerefMut<Target = [T]> + Send + 'static,
    {
        self.world.apart(self.queue(), (Collective::AllReduce, 0), op, (input, output))
    }

    /// [`Rank::reduce_scatter`](crate::Rank::reduce_scatter), which gives both buffers back.
    #[must_use = "the buffers and the errors come from `wait`"]
    pub fn reduce_scatter<T: Element, I, O>(
        &self,
        input: I,
        output: O,
        op: ReduceOp,
    ) -> Pending<(I, O)>
    where
        I: Deref<Target = [T]> + Send + 'static,
        O: DerefMut<Target = [T]> + Send + 'static,
    {
        self.world.apart(self.queue(), (Collective::ReduceScatter, 0), op, (input, output))
    }

    /// [`Rank::all_gather`](crate::Rank::all_gather), which gives both buffers back.
    #[must_use = "the buffers and the errors come from `wait`"]
    pub fn all_gather<T: Element, I, O>(&self, input: I, output: O) -> Pending<(I, O)>
    where
        I: Deref<Target = [T]> + Send + 'static,
        O: DerefMut<Target = [T]> + Send + 'static,
    {
        self.world.apart(self.queue(), (Collective::AllGather, 0), ReduceOp::Sum, (input, output))
    }

    /// [`Rank::broadcast`](crate::Rank::broadcast), which gives its buffer back.
    #[must_use = "the buffers and the errors come from `wait`"]
    pub fn broadcast<T: Element, B: DerefMut<Target = [T]> + Send + 'static>(
        &self,
        buffer: B,
        root: u32,
    ) -> Pending<B> {
        self.world.in_place(self.queue(), (Collective::Broadcast, root), ReduceOp::Sum, buffer)
    }

    /// [`Rank::reduce`](crate::Rank::reduce), which gives its buffer back.
    #[must_use = "the buffers and the errors come from `wait`"]
    pub fn reduce<T: Element, B: DerefMut<Target = [T]> + Send + 'static>(
        &self,
        buffer: B,
        op: ReduceOp,
        root: u32,
    ) -> Pending<B> {
        self.world.in_place(self.queue(), (Collective::Reduce, root), op, buffer)
    }

    /// [`Rank::scatter`](crate::Rank::scatter), which gives both buffers back.
    #[must_use = "the buffers and the errors come from `wait`"]
    pub fn scatter<T: Element, I, O>(&self, input: I, output: O, root: u32) -> Pending<(I, O)>
    where
        I: Deref<Target = [T]> + Send + 'static,
        O: DerefMut<Target = [T]> + Send + 'static,
    {
        self.world.apart(self.queue(), (Collective::Scatter, root), ReduceOp::Sum, (input, output))
    }

    /// [`Rank::gather`](crate::Rank::gather), which gives both buffers back.
    #[must_use = "the buffers and the errors come from `wait`"]
    pub fn gather<T: Element, I, O>(&self, input: I, output: O, root: u32) -> Pending<(I, O)>
    where
        I: Deref<Target = [T]> + Send + 'static,
        O: DerefMut<Target = [T]> + Send + 'static,
    {
        self.world.apart(self.queue(), (Collective::Gather, root), ReduceOp::Sum, (input, output))
    }

    /// [`Rank::all_to_all`](crate::Rank::all_to_all), which gives both buffers back.
    #[must_use = "the buffers and the errors come from `wait`"]
    pub fn all_to_all<T: Element, I, O>(&self, input: I, output: O) -> Pending<(I, O)>
    where
        I: Deref<Target = [T]> + Send + 'static,
        O: DerefMut<Target = [T]> + Send + 'static,
    {
        self.world.apart(self.queue(), (Collective::AllToAll, 0), ReduceOp::Sum, (input, output))
    }

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

    #[allow(clippy::unnecessary_wraps, reason = "as that of calls whose buffers are given away")]
    fn queue(&self) -> Result<&Queue<'env>, Error> {
        Ok(&self.queue)
    }

    /// [`Rank::all_reduce`](crate::Rank::all_reduce), on a borrowed slice.
    pub fn all_reduce<T: Element>(
        &self,
        buffer: &'env mut [T],
        op: ReduceOp,
    ) -> Pending<&'env mut [T]> {
        self.world.in_place(self.queue(), (Collective::AllReduce, 0), op, buffer)
    }

    /// [`Rank::all_reduce_into`](crate::Rank::all_reduce_into), on borrowed slices.
    pub fn all_reduce_into<T: Element>(
        &self,
        input: &'env [T],
        output: &'env mut [T],
        op: ReduceOp,
    ) -> Pending<(&'env [T], &'env mut [T])> {
        self.world.apart(self.queue(), (Collective::AllReduce, 0), op, (input, output))
    }

    /// [`Rank::reduce_scatter`](crate::Rank::reduce_scatter), on borrowed slices.
    pub fn reduce_scatter<T: Element>(
        &self,
        input: &'env [T],
        output: &'env mut [T],
        op: ReduceOp,
    ) -> Pending<(&'env [T], &'env mut [T])> {
        self.world.apart(self.queue(), (Collective::ReduceScatter, 0), op, (input, output))
    }

    /// [`Rank::all_gather`](crate::Rank::all_gather), on borrowed slices.
    pub fn all_gather<T: Element>(
        &self,
        input: &'env [T],
        output: &'env mut [T],
    ) -> Pending<(&'env [T], &'env mut [T])> {
        self.world.apart(self.queue(), (Collective::AllGather, 0), ReduceOp::Sum, (input, output))
    }

    /// [`Rank::broadcast`](crate::Rank::broadcast), on a borrowed slice.
    pub fn broadcast<T: Element>(
        &self,
        buffer: &'env mut [T],
        root: u32,
    ) -> Pending<&'env mut [T]> {
        self.world.in_place(self.queue(), (Collective::Broadcast, root), ReduceOp::Sum, buffer)
    }

    /// [`Rank::reduce`](crate::Rank::reduce), on a borrowed slice.
    pub fn reduce<T: Element>(
        &self,
        buffer: &'env mut [T],
        op: ReduceOp,
        root: u32,
    ) -> Pending<&'env mut [T]> {
        self.world.in_place(self.queue(), (Collective::Reduce, root), op, buffer)
    }

    /// [`Rank::scatter`](crate::Rank::scatter), on borrowed slices.
    pub fn scatter<T: Element>(
        &self,
        input: &'env [T],
        output: &'env mut [T],
        root: u32,
    ) -> Pending<(&'env [T], &'env mut [T])> {
        self.world.apart(self.queue(), (Collective::Scatter, root), ReduceOp::Sum, (input, output))
    }

    /// [`Rank::gather`](crate::Rank::gather), on borrowed slices.
    pub fn gather<T: Element>(
        &self,
        input: &'env [T],
        output: &'env mut [T],
        root: u32,
    ) -> Pending<(&'env [T], &'env mut [T])> {
        self.world.apart(self.queue(), (Collective::Gather, root), ReduceOp::Sum, (input, output))
    }

    /// [`Rank::all_to_all`](crate::Rank::all_to_all), on borrowed slices.
    pub fn all_to_all<T: Element>(
        &self,
        input: &'env [T],
        output: &'env mut [T],
    ) -> Pending<(&'env [T], &'env mut [T])> {
        self.world.apart(self.queue(), (Collective::AllToAll, 0), ReduceOp::Sum, (input, output))
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
