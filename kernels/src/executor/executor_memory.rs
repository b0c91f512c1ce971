//! The memory of a run, and the resources that the framework granted for it.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use roundelay_core::executor::Asset;
use roundelay_core::ids::RankId;
use roundelay_core::schedule::Schedule;

use super::Executor;
use crate::error::Error;
use crate::threads::{Plan, Stats};

/// The resources that an executor asked for, and gets.
pub(super) struct Granted {
    slave_streams: u32,
    notifies: u32,
    scratch: u64,
    links: BTreeSet<(RankId, RankId)>,
    /// Schedules that are known to keep to the resources.
    fit: Mutex<Vec<Arc<Schedule>>>,
}

impl Granted {
    /// Asks `executor` for its resources; its CCL buffers have `ccl_buffer` bytes.
    pub(super) fn new<E: Executor + ?Sized>(executor: &E, ccl_buffer: u64) -> Self {
        let slave_streams = executor.calc_stream_num();
        let links = executor.calc_comm_info().links.into_iter();
        Self {
            slave_streams,
            notifies: executor.calc_notify_num(slave_streams),
            scratch: executor.calc_scratch_mem_size(ccl_buffer),
            links: links.map(|link| (link.from, link.to)).collect(),
            fit: Mutex::default(),
        }
    }

    /// Checks that `plan` keeps to the resources.
    fn covers(&self, plan: &Plan) -> Result<(), Error> {
        let schedule = plan.schedule();
        let fit = || self.fit.lock().unwrap_or_else(PoisonError::into_inner);
        let scratch = schedule.scratch.iter().map(|s| s.elements(plan.count()));
        let size = plan.dtype().size() as u64;
        let scratch = scratch.fold(0, u64::saturating_add).saturating_mul(size);
        within(Asset::Scratch, self.scratch, scratch)?;
        if fit().iter().any(|known| Arc::ptr_eq(known, schedule)) {
            return Ok(());
        }
        let taken = schedule.needs();
        within(Asset::SlaveStreams, self.slave_streams.into(), (taken.streams - 1).into())?;
        within(Asset::Notifies, self.notifies.into(), taken.joins.into())?;
        let missing = schedule.traffic().filter(|used| used.from != used.to).find(|used| {
            let peer = if used.by == used.from { used.to } else { used.from };
            !self.links.contains(&(used.by, peer))
        });
        if let Some(used) = missing {
            let peer = if used.by == used.from { used.to } else { used.from };
            let what =
                format!("rank {} uses its link to rank {peer}, which was not asked for", used.by);
            return Err(Error::Exceeded { what });
        }
        fit().push(schedule.clone());
        Ok(())
    }
}

/// Checks that `used` is at most `asked`.
fn within(what: Asset, asked: u64, used: u64) -> Result<(), Error> {
    if used <= asked {
        return Ok(());
    }
    let what = format!("asked for {}, and uses {used}", what.words(asked));
    Err(Error::Exceeded { what })
}

/// The buffers of all ranks, in bytes.
pub(super) enum CallBuffers<'m, 'b> {
    /// Input and output apart.
    Apart(&'m [&'m [u8]], &'m mut [&'b mut [u8]]),
    /// One buffer of each rank for input and output.
    InPlace(&'m mut [&'b mut [u8]]),
}

/// The memory that a run works on, of all ranks.
pub struct ExecMem<'m, 'b> {
    pub(super) memory: CallBuffers<'m, 'b>,
    pub(super) granted: &'m Granted,
}

impl ExecMem<'_, '_> {
    /// Runs `plan` on the memory: forks the slave streams off each rank's main stream, and joins them.
    ///
    /// # Errors
    ///
    /// [`Error::Exceeded`] where the plan takes more than the executor asked for; otherwise the errors of
    /// [`Plan::run`].
    pub fn run(&mut self, plan: &Plan) -> Result<Stats, Error> {
        self.granted.covers(plan)?;
        match &mut self.memory {
            CallBuffers::Apart(inputs, outputs) => plan.run_bytes(inputs, outputs),
            CallBuffers::InPlace(buffers) => plan.run_bytes_in_place(buffers),
        }
    }
}
