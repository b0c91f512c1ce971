//! A call of a program, as it was made.

use std::ffi::{c_int, c_void};
use std::fmt;

use roundelay::Collective;
use roundelay_kernels::mpi::Handle;

/// A collective of MPI.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum MpiCollective {
    Allreduce,
    Allgather,
    ReduceScatterBlock,
    Bcast,
    Reduce,
    Scatter,
    Gather,
    Alltoall,
    Barrier,
}

impl MpiCollective {
    /// Returns the collective that does it; a barrier is an `AllReduce` of a byte.
    pub(crate) fn collective(self) -> Collective {
        match self {
            Self::Allreduce | Self::Barrier => Collective::AllReduce,
            Self::Allgather => Collective::AllGather,
            Self::ReduceScatterBlock => Collective::ReduceScatter,
            Self::Bcast => Collective::Broadcast,
            Self::Reduce => Collective::Reduce,
            Self::Scatter => Collective::Scatter,
            Self::Gather => Collective::Gather,
            Self::Alltoall => Collective::AllToAll,
        }
    }
}

impl fmt::Display for MpiCollective {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Allreduce => "Allreduce",
            Self::Allgather => "Allgather",
            Self::ReduceScatterBlock => "Reduce_scatter_block",
            Self::Bcast => "Bcast",
            Self::Reduce => "Reduce",
            Self::Scatter => "Scatter",
            Self::Gather => "Gather",
            Self::Alltoall => "Alltoall",
            Self::Barrier => "Barrier",
        })
    }
}

/// The values of a buffer: address, number, and type.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Values {
    pub(crate) at: *mut c_void,
    pub(crate) count: i64,
    pub(crate) of: Handle,
}

/// A call: the values that a rank sends and receives, the op, and the root. An argument that the collective does not
/// have is ignored.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MpiCall {
    pub(crate) what: MpiCollective,
    pub(crate) send: Values,
    pub(crate) recv: Values,
    pub(crate) op: Handle,
    pub(crate) root: c_int,
    pub(crate) comm: Handle,
}
