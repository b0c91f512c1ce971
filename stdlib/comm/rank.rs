//! One rank of a communicator, whose thread calls by itself.

use std::sync::Arc;

use roundelay_core::ids::RankId;
use roundelay_kernels::SpmdPlan;

use super::{Call, Comm, unit};
use crate::{Collective, Element, Error, ReduceOp};

/// One rank of a communicator, for the thread that calls for it.
#[derive(Debug)]
pub struct Rank<'c> {
    pub(super) comm: &'c Comm,
    pub(super) id: RankId,
    /// The call before: the next one is often the same.
    pub(super) last: Option<(Call, Arc<SpmdPlan>)>,
}

impl Rank<'_> {
    /// Which rank it is.
    pub fn id(&self) -> u32 {
        self.id.0
    }

    /// Number of ranks.
    pub fn nranks(&self) -> u32 {
        self.comm.nranks
    }

    /// Makes one call, with the plan of the last one if that was the same.
    fn make(
        &mut self,
        call: Result<Call, Error>,
        run: impl FnOnce(&SpmdPlan, RankId) -> Result<(), roundelay_kernels::Error>,
    ) -> Result<(), Error> {
        let call = call?;
        if self.last.as_ref().is_none_or(|(last, _)| *last != call) {
            // Before another one is asked for: it may have to go.
            self.last = None;
            self.last = Some((call, self.comm.spmd_plan(call)?));
        }
        let Some((_, plan)) = &self.last else { unreachable!("it was just set") };
        Ok(run(plan, self.id)?)
    }

    fn in_place<T: Element>(
        &mut self,
        (collective, root): (Collective, u32),
        count: usize,
        op: ReduceOp,
        buffer: &mut [T],
    ) -> Result<(), Error> {
        let call = self.comm.call::<T>(collective, root, count, op);
        self.make(call, |plan, rank| plan.rank(rank)?.run_in_place(buffer))
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
        self.make(call, |plan, rank| plan.rank(rank)?.run(input, output))
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
