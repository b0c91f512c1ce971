//! The traces of `--trace`: what ran, and beside it what the model of the machine predicts.

use std::sync::Arc;

use clap::Args;
use roundelay::select::{Costs, GivenCosts};
use roundelay_core::optimize::join;
use roundelay_core::schedule::Schedule;
use roundelay_core::syntax::Source;
use roundelay_core::topology::Topology;
use roundelay_core::trace::{Data, TraceText};
use roundelay_simulate::trace::simulated;
use roundelay_simulate::{Machine, simulate};

use crate::output;
use crate::report::Failure;
use crate::streams::say;

#[derive(Args)]
pub(crate) struct TraceFlag {
    /// Write a trace for Perfetto and Chrome: calls, steps with line and peer, waits and bytes, with a row for each stream
    /// of each rank, and the simulated run beside it
    #[arg(long, value_name = "FILE")]
    pub(crate) trace: Option<String>,
}

impl TraceFlag {
    /// Returns an empty trace, if one is wanted.
    pub(crate) fn begin(&self) -> Option<TraceText> {
        self.trace.is_some().then(TraceText::default)
    }

    /// Writes the trace, if one is wanted.
    pub(crate) fn write(&self, text: Option<&TraceText>) -> Result<(), Failure> {
        match (&self.trace, text) {
            (Some(path), Some(text)) => output::write(path, &text.file()),
            _ => Ok(()),
        }
    }
}

/// Adds the run that the constants of `select` predict on the topology, or on this host, from the nanosecond `start`; a
/// run that is not simulated is told.
pub(crate) fn predict(
    text: &mut TraceText,
    schedule: &Schedule,
    data: Data,
    topology: Option<&Arc<Topology>>,
    source: Option<&Source>,
    start: u64,
) {
    let nranks = schedule.nranks;
    let costs = Costs::of(topology.map(|topology| &**topology), nranks, &GivenCosts::default());
    // Regions that lie side by side are one piece, as `simulate` has them.
    let joined = join(schedule);
    let machine = Machine::of(&costs, topology, nranks);
    let run = machine.ok_or_else(|| format!("{nranks} ranks are too many")).and_then(|machine| {
        let run = simulate(&joined, &machine, data.count, data.dtype, true);
        run.map_err(|found| found[0].title.clone())
    });
    match run {
        Ok(run) => {
            let timeline = run.timeline.unwrap_or_default();
            simulated(text, (&joined, &timeline), data, source, start);
        }
        Err(why) => {
            say(format!("note: the trace of {} has no simulated run: {why}", schedule.algorithm));
        }
    }
}
