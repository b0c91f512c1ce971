//! Contest-style executors: their life cycle as a trait, and the small framework that runs them.
//!
//! Before any data is seen the framework asks an executor what it takes: scratch, slave streams, notifies, links, and how
//! much one run may work on. Then it loops, and each [`Executor::kernel_run`] gets its part of the data. What a run uses
//! is held against what was asked for: an executor that asked for too little is refused, not helped out.

mod compiled;
mod framework;
mod memory;

use std::collections::BTreeSet;

use roundelay_core::collective::Collective;
use roundelay_core::dtype::{DType, ReduceOp};
pub use roundelay_core::executor::{Exposed, Link};
use roundelay_core::ids::RankId;

use crate::host::{Error, Stats};

pub use compiled::{Compiled, CompiledExecutor};
pub use framework::{Framework, Ran};
pub use memory::ExecMem;

/// One collective on one machine, with an algorithm for each size.
pub trait Executor: Send + Sync {
    /// What it is registered as.
    fn name(&self) -> &str;

    /// The collective it implements.
    fn collective(&self) -> Collective;

    /// How many ranks it is for.
    fn nranks(&self) -> u32;

    /// The root of a rooted collective. Its name is no parameter's: rustc would advise to implement this trait where
    /// an algorithm without a `root` is given one.
    fn root_rank(&self) -> RankId {
        RankId(0)
    }

    /// The constructor's flags.
    fn flags(&self) -> Flags {
        Flags::default()
    }

    /// Bytes of each of a rank's two CCL buffers, unless the framework is given others.
    fn ccl_buffer_size(&self) -> u64;

    /// Bytes of scratch of a rank beside its CCL buffers, where each of these has `ccl_buff_size` bytes.
    fn calc_scratch_mem_size(&self, ccl_buff_size: u64) -> u64;

    /// Streams of a rank beside the main one.
    fn calc_stream_num(&self) -> u32;

    /// Notifies between the main stream of a rank and its slaves.
    fn calc_notify_num(&self, slave_streams: u32) -> u32 {
        2 * slave_streams
    }

    /// The links that are needed, and which memory of a rank its peers touch.
    fn calc_comm_info(&self) -> CommInfo;

    /// Elements a unit (NCCL's count) that one run may take, of `unit_size` bytes each.
    fn calc_loop_max_count(&self, ccl_buff_size: u64, unit_size: u64) -> u64;

    /// One run on its part of the data, by all ranks.
    fn kernel_run(&self, param: &OpParam, mem: &mut ExecMem<'_, '_>) -> Result<Stats, Error>;
}

/// The constructor's flags.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags {
    /// The executor moves the caller's memory itself, however large it is; otherwise what is larger than the CCL
    /// buffers is copied in and out by the framework.
    pub dma_reduce: bool,
}

/// Links and exposed memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommInfo {
    /// Every link that is used, by level.
    pub links: BTreeSet<Link>,
    /// Which memory peers touch.
    pub exposed: Exposed,
}

/// What is to be done in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpParam {
    /// Elements a unit of the whole call.
    pub total: u64,
    /// Of this run.
    pub count: u64,
    /// The element type.
    pub dtype: DType,
    /// The reduce op.
    pub op: ReduceOp,
}

impl OpParam {
    /// A call on `count` elements a unit.
    pub fn new(count: u64, dtype: DType, op: ReduceOp) -> Self {
        Self { total: count, count, dtype, op }
    }
}
