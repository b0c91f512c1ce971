//! The score of an executor as the contest counts it: the simulated time of a call, and the least time of any.

use roundelay_core::diagnostics::Code;
use roundelay_core::dtype::DType;
use roundelay_core::executor::{Executor, holds_no_element};
use roundelay_core::units::size;
use roundelay_simulate::cost::has_latency;
use roundelay_simulate::{Machine, SignalCost, Streams, simulate};
use roundelay_topology::Problem;
use roundelay_topology::bounds::{Rounds, bound};

/// The links of a simulated run, where the topology says nothing about them.
#[derive(Clone, Copy, Debug)]
pub struct Links {
    /// Bytes a second in one direction.
    pub bandwidth: f64,
    /// Seconds.
    pub latency: f64,
}

/// A call of an executor: its size, the elements, and the room for a loop of the framework.
#[derive(Clone, Copy, Debug)]
pub struct ScoredCall {
    /// The size in bytes, as nccl-tests counts it.
    pub bytes: u64,
    /// The bytes of a CCL buffer.
    pub ccl_buffer: u64,
    /// The type of elements.
    pub dtype: DType,
}

impl ScoredCall {
    /// Returns the seconds of the call, in the loops of the framework: streams do their ops in order, and signals are
    /// messages.
    ///
    /// # Errors
    /// E0315 for a CCL buffer that holds no element, and a schedule that is too large to be simulated.
    pub fn seconds(&self, executor: &Executor, links: Links) -> Result<f64, Problem> {
        let schedule = executor.class(self.bytes).proved.schedule();
        let machine = Machine {
            bandwidth: links.bandwidth,
            latency: links.latency,
            signals: SignalCost::Messages,
            streams: Streams::InOrder,
            ..Machine::new(executor.topology.clone())
        };
        let time = |(count, times): (u64, u64)| {
            let simulated = simulate(schedule, &machine, count, self.dtype, false);
            let simulated = simulated.map_err(|all| {
                let found = all.into_iter().next().expect("a failed simulation has a reason");
                Problem::new(found.code, found.title)
            })?;
            Ok(simulated.seconds * times as f64)
        };
        self.loops(executor)?.into_iter().map(time).sum()
    }

    /// Returns the least seconds of any algorithm for the whole elements of the size, by bandwidth or by latency,
    /// whichever is more.
    ///
    /// # Errors
    /// A topology that does not join all ranks.
    pub fn least(&self, executor: &Executor, links: Links) -> Result<f64, Problem> {
        let (n, topology) = (executor.nranks(), &executor.topology);
        let element = executor.units() * self.dtype.size() as u64;
        let bytes = self.bytes / element * element;
        let unit = if topology.is_relative() { links.bandwidth } else { 1.0 };
        let by_bandwidth =
            bound(topology, n, executor.collective, executor.root())?.seconds(bytes) / unit;
        // The time of a message over the fastest link, for each message of the longest chain.
        let given = topology.links().iter().map(|link| link.latency).min().unwrap_or(0);
        let hop = if has_latency(topology) { given as f64 * 1e-9 } else { links.latency };
        let by_latency = f64::from(Rounds::new(topology, n).diameter) * hop;
        Ok(by_bandwidth.max(by_latency))
    }

    /// Refuses a size that no call has.
    ///
    /// # Errors
    /// E0501 for a size without an element of every unit, E0315 for a CCL buffer that holds none.
    pub fn check(&self, executor: &Executor) -> Result<(), Problem> {
        let Self { bytes, dtype, .. } = self;
        let element = executor.units() * dtype.size() as u64;
        if *bytes < element {
            let least = size(element);
            let title =
                format!("a call of {bytes} bytes holds no {dtype} of every unit: nothing to score");
            return Err(
                Problem::new(Code::BadFlag, title).help(format!("name sizes of at least {least}"))
            );
        }
        self.loops(executor).map(drop)
    }

    /// Returns the framework's loops for the call: elements a unit, and the number of loops with as many. Sizes that a
    /// run refuses have no loops.
    fn loops(&self, executor: &Executor) -> Result<Vec<(u64, u64)>, Problem> {
        let unit = self.dtype.size() as u64;
        let total = self.bytes / (executor.units() * unit);
        let most = executor.loop_max_count(self.ccl_buffer, unit);
        if most == 0 {
            return Err(Problem::new(Code::OverBudget, holds_no_element(self.ccl_buffer, unit)));
        }
        let mut loops = vec![(most, total / most), (total % most, 1)];
        loops.retain(|(count, times)| *count > 0 && *times > 0);
        Ok(loops)
    }
}
