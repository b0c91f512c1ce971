//! A simulated run as one JSON document. Times are seconds, rates bytes a second.

use roundelay_simulate::{PortUsage, Spent, Step, Task, Usage};
use serde::Serialize;

use super::{Run, path};
use crate::constants::ConstantsJson;

#[derive(Serialize)]
pub(super) struct SimulationJson<'r> {
    ok: bool,
    algorithm: &'r str,
    collective: &'static str,
    nranks: u32,
    topology: &'r str,
    count: u64,
    bytes: u64,
    seconds: f64,
    algbw: f64,
    busbw: f64,
    /// Ops and messages.
    tasks: u64,
    steps: u32,
    messages: u64,
    pieces: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    bound: Option<SimulationBound<'r>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    closed_form_seconds: Option<f64>,
    constants: ConstantsJson<'r>,
    links: Vec<UsedLink<'r>>,
    /// By rank.
    ports: Vec<Port>,
    critical: Vec<Critical>,
}

#[derive(Serialize)]
struct SimulationBound<'r> {
    seconds: f64,
    /// The bound over the time; 1 is the best.
    share: f64,
    binding: &'r str,
}

/// A link that a simulated run used, and how much of it.
#[derive(Serialize)]
struct UsedLink<'r> {
    from: &'r str,
    to: &'r str,
    bytes: f64,
    capacity: f64,
    used: f64,
}

#[derive(Serialize)]
struct Port {
    sent: f64,
    received: f64,
    sending: f64,
    receiving: f64,
}

#[derive(Serialize)]
struct Critical {
    start: f64,
    end: f64,
    rank: u32,
    stream: u32,
    line: u32,
    /// `transfer`, `fold`, `local` or `signal`.
    task: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    transfer: Option<Transfer>,
    /// The rank that sent the signal.
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<u32>,
    what: String,
}

#[derive(Serialize)]
struct Transfer {
    latency: f64,
    pieces: f64,
    flowing: f64,
    sharing: f64,
    reducing: f64,
}

impl<'r> SimulationJson<'r> {
    pub(super) fn new(run: &'r Run<'_>) -> Self {
        let (done, schedule) = (&run.simulated, run.schedule);
        let bound = run.bound.as_ref().zip(run.share());
        let link = |link: &Usage| UsedLink {
            from: run.name(link.from),
            to: run.name(link.to),
            bytes: link.bytes,
            capacity: link.capacity,
            used: link.used,
        };
        let port = |port: &PortUsage| Port {
            sent: port.sent,
            received: port.received,
            sending: port.sending,
            receiving: port.receiving,
        };
        Self {
            ok: true,
            algorithm: &schedule.algorithm,
            collective: schedule.collective.name(),
            nranks: schedule.nranks,
            topology: run.machine.topology.name(),
            count: run.count,
            bytes: done.bytes,
            seconds: done.seconds,
            algbw: done.algbw,
            busbw: done.algbw * schedule.collective.bus_factor(schedule.nranks),
            tasks: done.tasks,
            steps: run.steps,
            messages: done.messages,
            pieces: done.pieces,
            bound: bound.map(|((seconds, binding), share)| SimulationBound {
                seconds: *seconds,
                share,
                binding,
            }),
            closed_form_seconds: run.closed,
            constants: run.constants.json(Some(&run.machine.topology)),
            links: done.links.iter().map(link).collect(),
            ports: done.ports.iter().map(port).collect(),
            critical: done.critical.iter().map(|step| critical(run, step)).collect(),
        }
    }
}

fn critical(run: &Run<'_>, step: &Step) -> Critical {
    let (task, transfer, from) = match step.task {
        Task::Transfer { .. } => {
            let Spent { latency, pieces, flowing, sharing, reducing, .. } = Spent::sum(&[*step]);
            ("transfer", Some(Transfer { latency, pieces, flowing, sharing, reducing }), None)
        }
        Task::Fold => ("fold", None, None),
        Task::Local => ("local", None, None),
        Task::Signal { from, .. } => ("signal", None, Some(from.0)),
    };
    Critical {
        start: step.start,
        end: step.end,
        rank: step.rank.0,
        stream: run.schedule.streams[step.stream.index()].index,
        line: path::line(run.schedule, step),
        task,
        transfer,
        from,
        what: path::words(run.schedule, step),
    }
}
