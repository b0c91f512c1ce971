//! The traces of `--trace`: what ran, and beside it what the model of the machine predicts.

use std::sync::Arc;

use clap::Args;
use roundelay_core::schedule::Schedule;
use roundelay_core::syntax::Source;
use roundelay_core::topology::Topology;
use roundelay_core::trace::{Data, TraceText};
use roundelay_runner::prediction::add_prediction;

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
    if let Err(why) = add_prediction(text, schedule, data, topology, (source, start)) {
        say(format!("note: the trace of {} has no simulated run: {why}", schedule.algorithm));
    }
}
