//! The run that a model predicts, beside a recorded one in a trace.

use std::sync::Arc;

use roundelay::select::{Costs, GivenCosts};
use roundelay_core::optimize::join;
use roundelay_core::schedule::Schedule;
use roundelay_core::syntax::Source;
use roundelay_core::topology::Topology;
use roundelay_core::trace::{Data, TraceText};
use roundelay_simulate::trace::add_simulation;
use roundelay_simulate::{Machine, on_topology, simulate};

/// Adds the run that the constants of `select` predict on the topology, or on this host, from the nanosecond `start`.
///
/// # Errors
/// The reason why the run is not simulated.
pub fn add_prediction(
    text: &mut TraceText,
    schedule: &Schedule,
    data: Data,
    topology: Option<&Arc<Topology>>,
    (source, start): (Option<&Source>, u64),
) -> Result<(), String> {
    let nranks = schedule.nranks;
    let costs =
        Costs::for_topology(topology.map(|topology| &**topology), nranks, &GivenCosts::default());
    // Regions that lie side by side are one piece, as in other simulated runs.
    let machine = Machine::for_ranks(&costs, topology, nranks);
    let machine = machine.ok_or_else(|| format!("{nranks} ranks are too many"))?;
    let joined = join(&on_topology(schedule, &machine.topology, data.dtype));
    let run = simulate(&joined, &machine, data.count, data.dtype, true);
    let timeline = run.map_err(|found| found[0].title.clone())?.timeline.unwrap_or_default();
    add_simulation(text, (&joined, &timeline), data, source, start);
    Ok(())
}
