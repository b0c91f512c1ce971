//! A call of a program, as it was made.

use std::ffi::{c_int, c_void};
use std::fmt;

use roundelay::Collective;
use roundelay_core::dtype::named_enum;
use roundelay_kernels::mpi::Handle;

named_enum! {
    /// A collective of MPI.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub(crate) enum MpiCollective {
        Allreduce = "Allreduce",
        Allgather = "Allgather",
        ReduceScatterBlock = "Reduce_scatter_block",
        Bcast = "Bcast",
        Reduce = "Reduce",
        Scatter = "Scatter",
        Gather = "Gather",
        Alltoall = "Alltoall",
        Allgatherv = "Allgatherv",
        ReduceScatter = "Reduce_scatter",
        Gatherv = "Gatherv",
        Scatterv = "Scatterv",
        Alltoallv = "Alltoallv",
        Barrier = "Barrier",
    }
}

impl MpiCollective {
    /// Whether it combines values by an op.
    pub(crate) fn combines(self) -> bool {
        self != Self::Barrier && self.collective().reduces()
    }

    /// Returns the collective that does it; a barrier is an `AllReduce` of a byte.
    pub(crate) fn collective(self) -> Collective {
        match self {
            Self::Allreduce | Self::Barrier => Collective::AllReduce,
            Self::Allgather | Self::Allgatherv => Collective::AllGather,
            Self::ReduceScatterBlock | Self::ReduceScatter => Collective::ReduceScatter,
            Self::Bcast => Collective::Broadcast,
            Self::Reduce => Collective::Reduce,
            Self::Scatter | Self::Scatterv => Collective::Scatter,
            Self::Gather | Self::Gatherv => Collective::Gather,
            Self::Alltoall | Self::Alltoallv => Collective::AllToAll,
        }
    }

    /// Returns the collective with one count that a collective with a count for each block is most like.
    pub(crate) fn even(self) -> Self {
        match self {
            Self::Allgatherv => Self::Allgather,
            Self::ReduceScatter => Self::ReduceScatterBlock,
            Self::Gatherv => Self::Gather,
            Self::Scatterv => Self::Scatter,
            Self::Alltoallv => Self::Alltoall,
            even => even,
        }
    }
}

impl fmt::Display for MpiCollective {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The values of a buffer: address, number, and type.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Values {
    pub(crate) at: *mut c_void,
    pub(crate) count: i64,
    pub(crate) of: Handle,
}

/// A number for each rank, as the program gives it: of 32 bits, or of 64 bits in calls with wide counts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RankNumbers {
    pub(crate) at: *const c_void,
    pub(crate) wide: bool,
}

impl RankNumbers {
    pub(crate) const NONE: Self = Self { at: std::ptr::null(), wide: false };

    /// Returns the numbers of `n` ranks; `None` for a null address.
    ///
    /// # Safety
    /// The address is null, or there are `n` numbers.
    pub(crate) unsafe fn read(self, n: u32) -> Option<Vec<i64>> {
        if self.at.is_null() {
            return None;
        }
        let each = 0..n as usize;
        // SAFETY: the caller's promise.
        Some(unsafe {
            if self.wide {
                each.map(|rank| self.at.cast::<i64>().add(rank).read_unaligned()).collect()
            } else {
                each.map(|rank| self.at.cast::<c_int>().add(rank).read_unaligned().into()).collect()
            }
        })
    }
}

/// The counts of blocks, and their places in extents of their type.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BlockArrays {
    pub(crate) counts: RankNumbers,
    pub(crate) places: RankNumbers,
}

impl BlockArrays {
    pub(crate) const NONE: Self = Self { counts: RankNumbers::NONE, places: RankNumbers::NONE };
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
    /// The blocks that are sent and received, in a collective with a count for each block.
    pub(crate) arrays: [BlockArrays; 2],
}

impl MpiCall {
    /// Whether the collective has a count for each block.
    pub(crate) fn has_blocks(&self) -> bool {
        self.what.even() != self.what
    }
}
