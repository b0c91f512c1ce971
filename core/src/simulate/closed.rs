//! Times by formula, where nothing shares a link unless its stream does: on a full mesh and on a crossbar of links
//! that are all alike.

use super::machine::{Machine, SignalCost};
use crate::cost::Form;

/// Seconds by a family's form for `bytes` bytes, nccl-tests' size, on `n` ranks, where no piece is rounded: as
/// many latencies as a stream has messages, and what it sends, or the port of its rank.
///
/// `None` where the form does not hold: for that rank count, on another topology, with other costs than messages
/// between ranks that are all alike.
pub fn closed(form: &Form, n: u32, bytes: u64, machine: &Machine) -> Option<f64> {
    let plain = machine.reduce.is_none()
        && machine.copy.is_none()
        && machine.signals == SignalCost::Free
        && machine.stragglers.is_empty()
        && machine.degraded.is_empty();
    let topology = &machine.topology;
    let ranks = topology.nranks() as usize;
    let (capacity, latency) = machine.links();
    let (rate, link) = (*capacity.first()?, *latency.first()?);
    let alike = capacity.iter().all(|c| *c == rate) && latency.iter().all(|l| *l == link);
    let switches = topology.nodes().len() - ranks;
    let mesh = switches == 0 && capacity.len() == ranks * (ranks - 1);
    let crossbar = switches == 1 && capacity.len() == 2 * ranks;
    if !plain || !alike || !(mesh || crossbar) {
        return None;
    }
    let hops = if mesh { 1.0 } else { 2.0 };
    form.seconds_in_order(n, bytes, hops * link, rate, mesh)
}
