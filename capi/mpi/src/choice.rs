//! Which calls we make faster than MPI does: the table of choices.

use roundelay_kernels::mpi::Abi;

use crate::call::What;

/// What the choice goes by. It is the same on all ranks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) what: What,
    pub(crate) nranks: u32,
    /// Bytes of the larger of a rank's two buffers.
    pub(crate) bytes: u64,
    /// Hosts that the ranks are on.
    pub(crate) hosts: usize,
}

impl Shape {
    /// Whether it is worth taking; `crowded` says whether ranks outnumber cores.
    pub(crate) fn is_faster(self, _: Abi, _: bool) -> bool {
        self.bytes >= 32 << 10
    }
}
