//! Executors that were compiled from an `executor` block of the language.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use roundelay_core::collective::Collective;
use roundelay_core::dtype::{DType, ReduceOp};
use roundelay_core::executor;
use roundelay_core::ids::RankId;

use super::{CommInfo, ExecMem, Executor, Flags, OpParam};
use crate::error::Error;
use crate::options::Options;
use crate::threads::{Plan, Stats};

/// The number of plans that are kept; a caller with more sizes lowers some plans again.
const KEPT: usize = 16;

/// The key of a plan: size class, count, dtype, op.
type Key = (usize, u64, DType, ReduceOp);

/// An executor of the language, ready to run.
pub struct CompiledExecutor {
    spec: executor::Executor,
    options: Options,
    plans: Mutex<HashMap<Key, Arc<Plan>>>,
}

impl CompiledExecutor {
    /// An executor that runs `spec` with the default [`Options`].
    pub fn new(spec: executor::Executor) -> Self {
        Self::with_options(spec, Options::default())
    }

    /// An executor that runs `spec`, with plans made and run as `options` say.
    pub fn with_options(spec: executor::Executor, options: Options) -> Self {
        Self { spec, options, plans: Mutex::default() }
    }

    /// The compiled executor: its topology, settings and size classes.
    pub fn spec(&self) -> &executor::Executor {
        &self.spec
    }

    /// The plan for a run of `param`, made at the first run with these sizes and types.
    pub fn plan(&self, param: &OpParam) -> Result<Arc<Plan>, Error> {
        let OpParam { total, count, dtype, op } = *param;
        let bytes = self.spec.collective.bytes(total, self.spec.nranks(), dtype.size() as u64);
        let class = self.spec.class_index(bytes);
        let plans = || self.plans.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (class, count, dtype, op);
        if let Some(known) = plans().get(&key) {
            return Ok(known.clone());
        }
        let proved = &self.spec.classes[class].proved;
        let plan = Arc::new(Plan::for_options(proved, count, dtype, op, self.options)?);
        let mut plans = plans();
        if plans.len() >= KEPT {
            plans.clear();
        }
        plans.insert(key, plan.clone());
        Ok(plan)
    }
}

impl fmt::Debug for CompiledExecutor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CompiledExecutor").field(&self.spec.name).finish()
    }
}

impl Executor for CompiledExecutor {
    fn name(&self) -> &str {
        &self.spec.name
    }

    fn collective(&self) -> Collective {
        self.spec.collective
    }

    fn nranks(&self) -> u32 {
        self.spec.nranks()
    }

    fn root_rank(&self) -> RankId {
        self.spec.root()
    }

    fn flags(&self) -> Flags {
        Flags { dma_reduce: self.spec.dma_reduce }
    }

    fn ccl_buffer_size(&self) -> u64 {
        self.spec.ccl_buffer
    }

    fn calc_scratch_mem_size(&self, ccl_buff_size: u64) -> u64 {
        self.spec.scratch_bytes(ccl_buff_size)
    }

    fn calc_stream_num(&self) -> u32 {
        self.spec.needs.slave_streams
    }

    fn calc_comm_info(&self) -> CommInfo {
        CommInfo { links: self.spec.needs.links.clone(), exposed: self.spec.needs.exposed }
    }

    fn calc_loop_max_count(&self, ccl_buff_size: u64, unit_size: u64) -> u64 {
        self.spec.loop_max_count(ccl_buff_size, unit_size)
    }

    fn kernel_run(&self, param: &OpParam, mem: &mut ExecMem<'_, '_>) -> Result<Stats, Error> {
        mem.run(&*self.plan(param)?)
    }
}

/// A type that `executor!` makes: all its values are one executor.
pub trait Compiled: Send + Sync {
    /// The executor, compiled at the first call.
    fn compiled(&self) -> &'static CompiledExecutor;
}

impl<C: Compiled> Executor for C {
    fn name(&self) -> &str {
        self.compiled().name()
    }

    fn collective(&self) -> Collective {
        self.compiled().collective()
    }

    fn nranks(&self) -> u32 {
        self.compiled().nranks()
    }

    fn root_rank(&self) -> RankId {
        self.compiled().root_rank()
    }

    fn flags(&self) -> Flags {
        self.compiled().flags()
    }

    fn ccl_buffer_size(&self) -> u64 {
        self.compiled().ccl_buffer_size()
    }

    fn calc_scratch_mem_size(&self, ccl_buff_size: u64) -> u64 {
        self.compiled().calc_scratch_mem_size(ccl_buff_size)
    }

    fn calc_stream_num(&self) -> u32 {
        self.compiled().calc_stream_num()
    }

    fn calc_comm_info(&self) -> CommInfo {
        self.compiled().calc_comm_info()
    }

    fn calc_loop_max_count(&self, ccl_buff_size: u64, unit_size: u64) -> u64 {
        self.compiled().calc_loop_max_count(ccl_buff_size, unit_size)
    }

    fn kernel_run(&self, param: &OpParam, mem: &mut ExecMem<'_, '_>) -> Result<Stats, Error> {
        self.compiled().kernel_run(param, mem)
    }
}
