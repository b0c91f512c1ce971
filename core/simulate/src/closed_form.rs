//! Times by formula, where only the messages of one stream share a link: on a full mesh and on a crossbar of equal
//! links.

use super::machine::{Machine, SignalCost, Streams};
use crate::cost::CostForm;
use roundelay_base::ids::RankId;
use roundelay_topology::Link;

/// Returns the seconds by a family's form for `bytes` bytes, nccl-tests' size, on `n` ranks, where no piece is
/// rounded: a latency for each step, and the bytes that pass one after another over the links or the port of a rank.
///
/// `None` where the form is not exact: for this rank count, on another topology, or with costs other than those of
/// equal messages between ranks.
pub fn closed_form(form: &CostForm, n: u32, bytes: u64, machine: &Machine) -> Option<f64> {
    let plain = machine.streams == Streams::ByData
        && machine.reduce.is_none()
        && machine.copy.is_none()
        && machine.piece == 0.0
        && machine.signals == SignalCost::Free
        && machine.stragglers.is_empty()
        && machine.degraded.is_empty();
    let topology = &machine.topology;
    let ranks = topology.nranks() as usize;
    let (capacity, latency) = machine.links();
    let alike =
        |pair: &[Link]| (pair[0].capacity, pair[0].latency) == (pair[1].capacity, pair[1].latency);
    let alike = topology.links().windows(2).all(alike);
    let switches = topology.nodes().len() - ranks;
    let mesh = switches == 0 && capacity.len() == ranks * (ranks - 1);
    let crossbar = switches == 1 && capacity.len() == 2 * ranks;
    if !plain || !alike || !(mesh || crossbar) || !form.exact(n) {
        return None;
    }
    let hops = if mesh { 1.0 } else { 2.0 };
    let latency = machine.on_path(hops * latency.first()?, (RankId(0), RankId(1)));
    form.seconds(n, bytes, latency, *capacity.first()?, mesh)
}
