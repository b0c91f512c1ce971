//! Calls as values: all properties that a plan depends on.

use std::sync::Arc;

use roundelay_core::ids::RankId;

use crate::{Collective, DType, Element, Error, ReduceOp};

/// A call of a collective as a value, for bindings of other languages, whose buffers are bytes.
/// [`Rank::call_bytes`](crate::Rank::call_bytes) makes the call. The lengths of buffers are those that [`Collective`]
/// lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Call {
    /// The collective that is called.
    pub collective: Collective,
    /// The root, which has a meaning for rooted collectives only.
    pub root: u32,
    /// Elements a unit: c in the lengths of [`Collective`].
    pub count: u64,
    /// The type of the elements.
    pub dtype: DType,
    /// The operator that combines contributions; it has a meaning for collectives that reduce only.
    pub op: ReduceOp,
}

/// The facts of which a plan is made: a call, and the counts of its blocks where each has its own.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Shape {
    pub(crate) call: Call,
    pub(crate) counts: Option<Arc<[u64]>>,
}

impl From<Call> for Shape {
    fn from(call: Call) -> Self {
        Self { call, counts: None }
    }
}

impl Call {
    /// Returns the call with unused fields set to fixed values: calls with the same meaning are then equal.
    pub(crate) fn of(mut self, nranks: u32) -> Result<Self, Error> {
        if !self.collective.is_rooted() {
            self.root = 0;
        }
        if !self.collective.reduces() {
            self.op = ReduceOp::Sum;
        }
        if self.root >= nranks {
            let rank = RankId(self.root);
            return Err(roundelay_kernels::Error::NoSuchRank { rank, nranks }.into());
        }
        Ok(self)
    }

    /// Makes a call of `nranks` ranks.
    pub(crate) fn new<T: Element>(
        nranks: u32,
        (collective, root): (Collective, u32),
        count: usize,
        op: ReduceOp,
    ) -> Result<Self, Error> {
        Self { collective, root, count: count as u64, dtype: T::DTYPE, op }.of(nranks)
    }

    /// Makes a call of `nranks` ranks with an input and an output of these lengths.
    pub(crate) fn apart<T: Element>(
        nranks: u32,
        called: (Collective, u32),
        [input, output]: [usize; 2],
        op: ReduceOp,
    ) -> Result<Self, Error> {
        let count = match called.0 {
            Collective::AllReduce
            | Collective::AllGather
            | Collective::Broadcast
            | Collective::Reduce
            | Collective::Gather => input,
            Collective::ReduceScatter | Collective::Scatter => output,
            Collective::AllToAll => unit("input", input, nranks)?,
        };
        Self::new::<T>(nranks, called, count, op)
    }
}

/// Returns the elements a unit of a buffer of `nranks` units.
fn unit(what: &'static str, len: usize, nranks: u32) -> Result<usize, Error> {
    let n = nranks as usize;
    if len.is_multiple_of(n) { Ok(len / n) } else { Err(Error::NotInBlocks { what, len, nranks }) }
}
