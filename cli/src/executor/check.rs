//! `executor check`: the proof of each size class, and the resources of the executor.

use roundelay_core::executor::{Asset, Executor, ExecutorLink};
use roundelay_core::json::Json;
use roundelay_core::layout::Algorithm as _;
use roundelay_core::verdict::Optimum;
use roundelay_core::verify::Signals;
use roundelay_export::contest::operator::OperatorNeeds;
use serde::{Serialize, Serializer};

use super::executor_flags::CheckFlags;
use super::list::{Listed, ListedClass};
use super::size;
use crate::facts::part;
use crate::report::{Failure, Format, refuse, wrong};
use crate::streams::{print, print_json};
use crate::topo::count;

#[derive(Serialize)]
struct ExecutorCheckReport {
    ok: bool,
    #[serde(flatten)]
    executor: Listed,
    /// The root of a rooted collective, for which alone the executor is proved.
    #[serde(skip_serializing_if = "Option::is_none")]
    root: Option<u32>,
    /// Bytes of a rank, beside two CCL buffers.
    scratch: u64,
    slave_streams: u32,
    notifies: u32,
    /// The notifies from one rank to another that a link keeps apart.
    link_notifies: u32,
    /// The links of a rank, at each level.
    links: Vec<Level>,
    exposed: Vec<&'static str>,
    /// Elements a unit in a loop, for elements of 4 bytes.
    loop_max_count: u64,
    signals: String,
    classes_proved: Vec<Proved>,
    /// The resources that it takes as an operator.
    #[serde(skip_serializing_if = "Option::is_none")]
    hcomm: Option<ListedNeeds>,
}

/// The resources that an operator takes of a communicator.
#[derive(Serialize)]
pub(super) struct ListedNeeds {
    threads: u32,
    thread_notifies: u32,
    channel_notifies: u32,
    /// For each class, the notifies that a lane's signals take in turn.
    in_turn: Vec<u32>,
    /// Needed, and not documented.
    pub(super) assumptions: Vec<String>,
}

impl From<OperatorNeeds> for ListedNeeds {
    fn from(needs: OperatorNeeds) -> Self {
        Self {
            threads: needs.threads,
            thread_notifies: needs.thread_notifies,
            channel_notifies: needs.channel_notifies,
            assumptions: needs.assumptions.iter().map(ToString::to_string).collect(),
            in_turn: needs.in_turn,
        }
    }
}

#[derive(Serialize)]
struct Level {
    #[serde(rename = "level")]
    number: u32,
    links: usize,
    most_of_a_rank: usize,
}

#[derive(Serialize)]
struct Proved {
    algorithm: String,
    ops: usize,
    slave_streams: u32,
    rounds: u32,
    /// The bound on the links of the topology.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "bound")]
    optimum: Option<Optimum>,
}

pub(super) fn main(flags: &CheckFlags) -> Result<bool, Failure> {
    let (source, executor) = flags.asked.load_with_source()?;
    executor
        .prove_with(flags.signals)
        .map_err(|errors| refuse(flags.asked.format, &errors, &source, wrong))?;
    let needs = flags.interface.needs(&executor);
    let needs = needs.map_err(|errors| refuse(flags.asked.format, &errors, &source, wrong))?;
    let hcomm = needs.map(ListedNeeds::from);
    let report =
        ExecutorCheckReport { hcomm, ..ExecutorCheckReport::new(&executor, flags.signals) };
    match flags.asked.format {
        Format::Json => print_json(&report),
        Format::Human => report.print(),
    }
    Ok(true)
}

#[expect(clippy::ref_option, reason = "serde hands over the field")]
fn bound<S: Serializer>(optimum: &Option<Optimum>, serializer: S) -> Result<S::Ok, S::Error> {
    part(&optimum.as_ref().map_or(Json::Null, Optimum::json), serializer)
}

impl ExecutorCheckReport {
    fn new(executor: &Executor, signals: Signals) -> Self {
        let needs = &executor.needs;
        let exposed = [
            (needs.exposed.input, "CCL_IN"),
            (needs.exposed.output, "CCL_OUT"),
            (needs.exposed.scratch, "scratch"),
        ];
        let level = |level: u32| {
            let links: Vec<&ExecutorLink> =
                needs.links.iter().filter(|l| l.level == level).collect();
            let of = |rank| links.iter().filter(|link| link.from == rank).count();
            let most = executor.topology.ranks().map(of).max().unwrap_or(0);
            Level { number: level, links: links.len(), most_of_a_rank: most }
        };
        Self {
            ok: true,
            hcomm: None,
            executor: Listed::new(executor),
            root: executor.collective.is_rooted().then_some(executor.root().0),
            scratch: executor.scratch_bytes(executor.ccl_buffer),
            slave_streams: needs.slave_streams,
            notifies: needs.notifies,
            link_notifies: needs.link_notifies,
            links: (0..needs.levels()).map(level).collect(),
            exposed: exposed.into_iter().filter(|(is, _)| *is).map(|(_, name)| name).collect(),
            loop_max_count: executor.loop_max_count(executor.ccl_buffer, 4),
            signals: signals.to_string(),
            classes_proved: executor
                .classes
                .iter()
                .map(|class| Proved {
                    algorithm: class.algorithm.name().to_owned(),
                    ops: class.proved.schedule().ops.len(),
                    slave_streams: class.needs.slave_streams,
                    rounds: class.proved.proof().steps,
                    optimum: Optimum::new(&class.proved, &executor.topology),
                })
                .collect(),
        }
    }

    fn print(&self) {
        let Listed { name, collective, topology, nranks, ccl_buffer, classes } = &self.executor;
        print(&format!(
            "\x1b[1;92mproved\x1b[0m {name} ({collective}) on {topology}, {} signals",
            self.signals
        ));
        let line = |name: &str, what: &str| print(&format!("  {name:<15} {what}"));
        line("ranks", &nranks.to_string());
        if let Some(root) = self.root {
            line("root", &root.to_string());
        }
        line("CCL buffers", &format!("2 x {}", size(*ccl_buffer)));
        line("scratch", &size(self.scratch));
        line(
            "streams",
            &format!(
                "1 main and {}, joined by {}",
                count(self.slave_streams as usize, "slave"),
                Asset::Notifies.words(self.notifies.into())
            ),
        );
        for Level { number, links, most_of_a_rank } in &self.links {
            let what = format!("{links} in all, at most {most_of_a_rank} of a rank");
            line(&format!("links, level {number}"), &what);
        }
        line("exposed", &self.exposed.join(", "));
        line("loop", &format!("at most {} elements of 4 bytes a unit", self.loop_max_count));
        if let Some(needs) = &self.hcomm {
            let ListedNeeds { threads, thread_notifies, channel_notifies, .. } = needs;
            line(
                "HCOMM",
                &format!(
                    "{threads} threads with {thread_notifies} notifies, {channel_notifies} at an end of a channel"
                ),
            );
            let turns = needs.in_turn.iter().max().filter(|most| **most > 1);
            let turns = turns
                .map_or(String::new(), |most| format!(", where up to {most} of a lane take turns"));
            line("", &format!("no one-shot notify loses a signal{turns}"));
            for (nth, assumption) in needs.assumptions.iter().enumerate() {
                line(if nth == 0 { "relies on" } else { "" }, assumption);
            }
        }
        for (class, proved) in classes.iter().zip(&self.classes_proved) {
            let ListedClass { algorithm, .. } = class;
            let streams = count(proved.slave_streams as usize, "slave stream");
            print(&format!("  {:<15} {algorithm}, {} ops, {streams}", class.when(), proved.ops));
            if let Some(optimum) = &proved.optimum {
                for line in optimum.lines() {
                    print(&format!("  {:15} {line}", ""));
                }
            }
        }
    }
}
