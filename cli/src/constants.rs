//! The constants of a prediction: those that flags give, or those of the machine; and what is said about them.

use clap::Args;
use roundelay::select::{Costs, GivenCosts, rate};
use roundelay_core::diagnostics::Code;
use roundelay_core::topology::Topology;
use roundelay_simulate::cost::has_latency;
use serde::Serialize;

use crate::report::{Failure, within_a_page};
use crate::streams::{self, say};
use crate::values::{rate as rate_value, time as time_value};

/// The largest size in bytes of a file of constants.
const LARGEST: u64 = 1 << 16;
/// The value of `--costs` for messages alone.
const MESSAGES: &str = "messages";

/// The names of the flags of [`CostFlags`].
pub(crate) const COSTS: [&str; 6] = ["costs", "bandwidth", "latency", "reduce", "copy", "piece"];

/// The flags that set or switch off a cost.
#[derive(Args, Clone, Default)]
pub(crate) struct CostFlags {
    /// A file of constants that calibrate wrote; or messages: messages alone take time, as in the literature
    /// [default: those of the topology's GPUs, else those of the host engine]
    #[arg(long, value_name = "FILE|messages")]
    costs: Option<String>,
    /// B, the bandwidth of one link, for a topology without bandwidths, such as 25GB/s [default: of the constants]
    #[arg(long, value_name = "RATE", value_parser = rate_value)]
    bandwidth: Option<f64>,
    /// Latency of a link, for a topology without latencies, such as 2us; of a whole path between GPUs [default: of
    /// the constants]
    #[arg(long, value_name = "TIME", value_parser = time_value)]
    latency: Option<f64>,
    /// How fast a rank reduces, such as 400GB/s [default: of the constants]
    #[arg(long, value_name = "RATE", value_parser = rate_value)]
    reduce: Option<f64>,
    /// How fast a rank copies within its memory, such as 400GB/s [default: of the constants]
    #[arg(long, value_name = "RATE", value_parser = rate_value)]
    copy: Option<f64>,
    /// The time that each piece of a message but the first costs, such as 495ns [default: of the constants]
    #[arg(long, value_name = "TIME", value_parser = time_value)]
    piece: Option<f64>,
}

/// The constants of a prediction.
pub(crate) struct Constants {
    pub(crate) costs: Costs,
    /// The doubt about the prediction, and the remedy.
    note: Option<String>,
}

impl CostFlags {
    /// Returns the constants of the first `nranks` ranks of a topology.
    pub(crate) fn of(
        &self,
        topology: Option<&Topology>,
        nranks: u32,
    ) -> Result<Constants, Failure> {
        self.check(topology)?;
        let given = GivenCosts {
            all: match self.costs.as_deref() {
                None => None,
                Some(MESSAGES) => Some(Costs::of_messages()),
                Some(path) => Some(read(path)?),
            },
            latency: self.latency,
            message: self.piece,
            bandwidth: self.bandwidth,
            reduce: self.reduce,
            copy: self.copy,
        };
        let costs = Costs::for_topology(topology, nranks, &given);
        let outrun = topology.filter(|_| self.copy.is_none()).and_then(|t| costs.outrun(t));
        let note = outrun.zip(topology).map(|(links, topology)| {
            format!(
                "links of `{}` carry {}, and a rank is assumed to copy {} as a processor does: name its GPUs by \
                 `--assume sm=90`, or by `gpus(sm=90)` at the end of the text, or give --copy and --reduce",
                topology.name(),
                rate(links),
                rate(costs.copy)
            )
        });
        Ok(Constants { costs, note })
    }

    /// Refuses what topology and flags say both, and what neither says.
    fn check(&self, topology: Option<&Topology>) -> Result<(), Failure> {
        let wrong = |title: String, help: &str| {
            Err(Failure::usage(Code::BadFlag, title).with_help(help.to_owned()))
        };
        let relative = topology.is_none_or(|topology| topology.is_relative());
        let name = topology.map_or("", |topology| topology.name());
        if self.costs.as_deref() == Some(MESSAGES) && relative && self.bandwidth.is_none() {
            let title = match topology {
                Some(_) => format!("`{name}` says no bandwidth, and --bandwidth is not given"),
                None => "messages alone take time, and --bandwidth is not given".to_owned(),
            };
            return wrong(title, "give that of one link in one direction: --bandwidth 25GB/s");
        }
        if self.bandwidth.is_some() && !relative {
            let title = format!("`{name}` says its bandwidths, and so does --bandwidth");
            return wrong(title, "give one of them");
        }
        if self.latency.is_some() && topology.is_some_and(|topology| has_latency(topology)) {
            let title = format!("`{name}` says its latencies, and so does --latency");
            return wrong(title, "give one of them");
        }
        Ok(())
    }

    /// Returns the words of a command line that give the same constants.
    pub(crate) fn words(&self) -> Vec<String> {
        let rate = |name: &str, value: Option<f64>| {
            value.map(|rate| format!("--{name} {}B/s", rate as u64))
        };
        let time = |name: &str, value: Option<f64>| {
            value.map(|time| format!("--{name} {}ns", (time * 1e9).round() as u64))
        };
        let costs = self.costs.as_ref().map(|costs| format!("--costs {costs}"));
        let all = [
            costs,
            rate("bandwidth", self.bandwidth),
            time("latency", self.latency),
            rate("reduce", self.reduce),
            rate("copy", self.copy),
            time("piece", self.piece),
        ];
        all.into_iter().flatten().collect()
    }
}

impl Constants {
    /// Says the note, if there is one.
    pub(crate) fn tell(&self) {
        if let Some(note) = &self.note {
            say(within_a_page(&format!("note: {note}"), 4));
        }
    }

    /// Returns the constants as JSON has them.
    pub(crate) fn json(&self, topology: Option<&Topology>) -> ConstantsJson<'_> {
        let Costs { name, origin, latency, message, bandwidth, reduce, copy, cores } = &self.costs;
        let known = |rate: f64| Some(rate).filter(|rate| rate.is_finite());
        ConstantsJson {
            origin: origin.to_string(),
            name,
            latency_seconds: Some(*latency)
                .filter(|_| !topology.is_some_and(|topology| has_latency(topology))),
            message_seconds: *message,
            bandwidth: topology.and_then(|topology| topology.fastest_link()).unwrap_or(*bandwidth),
            reduce: known(*reduce),
            copy: known(*copy),
            cores: cores.filter(|_| topology.is_none()),
            note: self.note.as_deref(),
        }
    }
}

/// The constants of a prediction: seconds, and bytes a second.
#[derive(Serialize)]
pub(crate) struct ConstantsJson<'c> {
    /// `given`, `measured`, `published` or `assumed`.
    origin: String,
    name: &'c str,
    /// Null where latencies are those of the links.
    latency_seconds: Option<f64>,
    message_seconds: f64,
    bandwidth: f64,
    /// Null where reductions take no time of their own.
    reduce: Option<f64>,
    /// Null where copies take no time.
    copy: Option<f64>,
    cores: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<&'c str>,
}

/// Reads constants from a file.
fn read(path: &str) -> Result<Costs, Failure> {
    let unreadable = |why: String| {
        Failure::usage(Code::UnreadableSource, format!("`{path}` cannot be read: {why}"))
    };
    let bytes = streams::bytes(path, LARGEST).map_err(|error| unreadable(error.to_string()))?;
    let bytes = bytes.ok_or_else(|| {
        unreadable(format!("more than {LARGEST} bytes are more than constants have"))
    })?;
    let text = String::from_utf8(bytes).map_err(|error| unreadable(error.to_string()))?;
    Ok(Costs::parse(path, &text)?)
}
