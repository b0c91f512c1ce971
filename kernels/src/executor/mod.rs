//! Contest-style executors: their life cycle as a trait, and the small framework that runs them.
//!
//! Before it sees any data, the framework asks an executor for its resources: scratch, slave streams, notifies, links,
//! and the most data of one run. Then it loops, and each [`Executor::kernel_run`] gets its part of the data. The
//! framework compares the use of a run with the resources that were asked for: an executor that asked for too little is
//! refused, not helped out.

mod compiled_executor;
mod executor_memory;
mod framework;

use std::collections::BTreeSet;

use roundelay_core::collective::Collective;
use roundelay_core::dtype::{DType, ReduceOp};
pub use roundelay_core::executor::{ExecutorLink, Exposed};
use roundelay_core::ids::RankId;

use crate::error::Error;
use crate::threads::Stats;

pub use compiled_executor::{Compiled, CompiledExecutor};
pub use executor_memory::ExecMem;
pub use framework::{Framework, Ran};

/// One collective on one machine, with an algorithm for each size of the data. An `executor` block of the language
/// becomes one, and a [`Framework`] runs it.
pub trait Executor: Send + Sync {
    /// The name under which the executor is registered.
    fn name(&self) -> &str;

    /// The collective that the executor implements.
    fn collective(&self) -> Collective;

    /// The number of ranks that the executor is for.
    fn nranks(&self) -> u32;

    /// The root of a rooted collective; rank 0 for others.
    // The name is no parameter's name: rustc would advise to implement this trait where an algorithm without a `root`
    // is given one.
    fn root_rank(&self) -> RankId {
        RankId(0)
    }

    /// The way in which the executor takes its data; by default through the CCL buffers where they are too small for
    /// it.
    fn flags(&self) -> Flags {
        Flags::default()
    }

    /// Bytes of each of a rank's two CCL buffers, unless the framework is given another size.
    fn ccl_buffer_size(&self) -> u64;

    /// Bytes of scratch of a rank beside its CCL buffers, where each of these has `ccl_buff_size` bytes.
    fn calc_scratch_mem_size(&self, ccl_buff_size: u64) -> u64;

    /// The number of streams that a rank takes beside its main stream.
    fn calc_stream_num(&self) -> u32;

    /// The number of notifies between the main stream of a rank and its `slave_streams` other streams.
    fn calc_notify_num(&self, slave_streams: u32) -> u32 {
        2 * slave_streams
    }

    /// The links that are needed, and the memory of a rank that its peers touch.
    fn calc_comm_info(&self) -> CommInfo;

    /// The most elements a unit (NCCL's count), of `unit_size` bytes each, that one run takes with CCL buffers of
    /// `ccl_buff_size` bytes.
    fn calc_loop_max_count(&self, ccl_buff_size: u64, unit_size: u64) -> u64;

    /// Runs all ranks once, on their part of the data.
    ///
    /// # Errors
    /// E0315 where the run takes more than the methods above said; otherwise the errors of a plan's run.
    fn kernel_run(&self, param: &OpParam, mem: &mut ExecMem<'_, '_>) -> Result<Stats, Error>;
}

/// The way in which an executor takes its data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags {
    /// The executor moves the caller's memory itself, however large it is; otherwise the framework copies data larger
    /// than the CCL buffers in and out.
    pub dma_reduce: bool,
}

/// The links that an executor uses, and the memory of a rank that its peers touch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommInfo {
    /// Every link that is used, by level.
    pub links: BTreeSet<ExecutorLink>,
    /// The memory of a rank that its peers touch.
    pub exposed: Exposed,
}

/// The sizes and types of one run of an executor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpParam {
    /// Elements a unit (NCCL's count) of the whole call.
    pub total: u64,
    /// Elements a unit of this run, which may be a part of the call.
    pub count: u64,
    /// The element type.
    pub dtype: DType,
    /// The reduce op.
    pub op: ReduceOp,
}

impl OpParam {
    /// A call on `count` elements a unit that is one run.
    pub fn new(count: u64, dtype: DType, op: ReduceOp) -> Self {
        Self { total: count, count, dtype, op }
    }
}
