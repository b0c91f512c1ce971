//! What is called: everything that a plan depends on.

use roundelay_core::ids::RankId;

use crate::{Collective, DType, Element, Error, ReduceOp};

/// The shape of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Call {
    pub(crate) collective: Collective,
    pub(crate) root: u32,
    /// Elements a unit.
    pub(crate) count: u64,
    pub(crate) dtype: DType,
    pub(crate) op: ReduceOp,
}

impl Call {
    /// A call of `nranks` ranks.
    pub(crate) fn new<T: Element>(
        nranks: u32,
        (collective, root): (Collective, u32),
        count: usize,
        op: ReduceOp,
    ) -> Result<Self, Error> {
        if root >= nranks {
            let rank = RankId(root);
            return Err(roundelay_kernels::Error::NoSuchRank { rank, nranks }.into());
        }
        Ok(Self { collective, root, count: count as u64, dtype: T::DTYPE, op })
    }

    /// A call of `nranks` ranks with an input and an output of these lengths.
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

/// Elements a unit of a buffer of `nranks` units.
fn unit(what: &'static str, len: usize, nranks: u32) -> Result<usize, Error> {
    let n = nranks as usize;
    if len.is_multiple_of(n) { Ok(len / n) } else { Err(Error::NotInBlocks { what, len, nranks }) }
}
