//! The simulated time of a call of an executor, and the least time of any.

use roundelay_core::cost::has_latency;
use roundelay_core::diagnostics::Code;
use roundelay_core::dtype::DType;
use roundelay_core::executor::{Executor, holds_no_element};
use roundelay_core::simulate::{Machine, SignalCost, Streams, simulate};
use roundelay_core::topology::bounds::{Rounds, bound};

use super::flags::LinkFlags;
use super::size;
use crate::report::Failure;

/// Returns the seconds of a call of `bytes` bytes, in the loops of the framework: streams do their ops in order, and
/// signals are messages.
pub(super) fn seconds(
    executor: &Executor,
    bytes: u64,
    ccl_buffer: u64,
    dtype: DType,
    links: &LinkFlags,
) -> Result<f64, Failure> {
    let schedule = executor.class(bytes).proved.schedule();
    let machine = Machine {
        bandwidth: links.bandwidth,
        latency: links.latency,
        signals: SignalCost::Messages,
        streams: Streams::InOrder,
        ..Machine::new(executor.topology.clone())
    };
    let time = |(count, times): (u64, u64)| {
        let simulated = simulate(schedule, &machine, count, dtype, false).map_err(|all| {
            let found = all.into_iter().next();
            found.map_or(Failure::Program, |f| Failure::usage(f.code, f.title))
        })?;
        Ok(simulated.seconds * times as f64)
    };
    loops(executor, bytes, ccl_buffer, dtype)?.into_iter().map(time).sum()
}

/// Returns the least seconds of any algorithm for the whole elements of a size, by bandwidth or by latency, whichever is
/// more.
pub(super) fn least(
    executor: &Executor,
    bytes: u64,
    dtype: DType,
    links: &LinkFlags,
) -> Result<f64, Failure> {
    let (n, topology) = (executor.nranks(), &executor.topology);
    let element = executor.units() * dtype.size() as u64;
    let bytes = bytes / element * element;
    let unit = if topology.is_relative() { links.bandwidth } else { 1.0 };
    let by_bandwidth =
        bound(topology, n, executor.collective, executor.root())?.seconds(bytes) / unit;
    // The time of a message over the fastest link, for each message of the longest chain.
    let given = topology.links().iter().map(|link| link.latency).min().unwrap_or(0);
    let hop = if has_latency(topology) { given as f64 * 1e-9 } else { links.latency };
    let by_latency = f64::from(Rounds::new(topology, n).diameter) * hop;
    Ok(by_bandwidth.max(by_latency))
}

/// Refuses a size that no call has, before anything is printed.
pub(super) fn check_size(
    executor: &Executor,
    bytes: u64,
    ccl_buffer: u64,
    dtype: DType,
) -> Result<(), Failure> {
    let element = executor.units() * dtype.size() as u64;
    if bytes < element {
        let least = size(element);
        let title =
            format!("a call of {bytes} bytes holds no {dtype} of every unit: nothing to score");
        return Err(Failure::usage(Code::BadFlag, title)
            .with_help(format!("name sizes of at least {least}")));
    }
    loops(executor, bytes, ccl_buffer, dtype).map(drop)
}

/// Returns the framework's loops for a call of `bytes` bytes: elements a unit, and the number of loops with as many.
/// Sizes that `run` refuses have no loops.
fn loops(
    executor: &Executor,
    bytes: u64,
    ccl_buffer: u64,
    dtype: DType,
) -> Result<Vec<(u64, u64)>, Failure> {
    let unit = dtype.size() as u64;
    let total = bytes / (executor.units() * unit);
    let most = executor.loop_max_count(ccl_buffer, unit);
    if most == 0 {
        return Err(Failure::usage(Code::OverBudget, holds_no_element(ccl_buffer, unit)));
    }
    let mut loops = vec![(most, total / most), (total % most, 1)];
    loops.retain(|(count, times)| *count > 0 && *times > 0);
    Ok(loops)
}
