//! The critical path in the words of the source.

use std::collections::BTreeMap;

use roundelay::select::time;
use roundelay_core::schedule::{OpKind, Schedule, SignalKind};
use roundelay_core::simulate::{Step, Task};

use super::Run;
use crate::topo::count;

/// Seconds on the critical path, by what they are spent on.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Spent {
    /// Moves between ranks.
    pub(super) transfers: usize,
    pub(super) latency: f64,
    pub(super) flowing: f64,
    pub(super) sharing: f64,
    pub(super) reducing: f64,
    pub(super) local: f64,
    pub(super) signals: f64,
}

impl Spent {
    pub(super) fn new(path: &[Step]) -> Self {
        let mut all = Self::default();
        for step in path {
            all.add(step);
        }
        all
    }

    fn add(&mut self, step: &Step) {
        let took = step.end - step.start;
        match step.task {
            Task::Transfer { latency, flowing, work } => {
                self.transfers += 1;
                self.latency += latency;
                self.flowing += flowing;
                self.reducing += work;
                self.sharing += shared(took, latency, flowing, work);
            }
            Task::Local => self.local += took,
            Task::Signal { .. } => self.signals += took,
        }
    }

    /// What is not nothing.
    pub(super) fn parts(&self) -> Vec<String> {
        let parts = [
            (self.latency, "latency"),
            (self.flowing, "bytes"),
            (self.sharing, "sharing links"),
            (self.reducing, "reducing"),
            (self.local, "moves within a rank"),
            (self.signals, "signals"),
        ];
        let some = parts.into_iter().filter(|(seconds, _)| *seconds > 0.0);
        some.map(|(seconds, what)| format!("{} of {what}", time(seconds))).collect()
    }
}

/// What a transfer took beyond what it would have alone; sums of times are rounded.
pub(super) fn shared(took: f64, latency: f64, flowing: f64, work: f64) -> f64 {
    let alone = latency + flowing + work;
    if took > alone * (1.0 + 1e-6) { took - alone } else { 0.0 }
}

/// A statement of the source, and what the path spends there.
pub(super) struct Line {
    pub(super) number: u32,
    pub(super) times: usize,
    pub(super) seconds: f64,
}

/// The statements that take time, in the order of the source.
pub(super) fn lines(run: &Run<'_>) -> Vec<Line> {
    let mut lines: BTreeMap<u32, (usize, f64)> = BTreeMap::new();
    for step in run.simulated.critical.iter().filter(|step| step.end > step.start) {
        let (times, seconds) = lines.entry(line(run.schedule, step)).or_default();
        *times += 1;
        *seconds += step.end - step.start;
    }
    lines.into_iter().map(|(number, (times, seconds))| Line { number, times, seconds }).collect()
}

/// The line of a step's statement.
pub(super) fn line(schedule: &Schedule, step: &Step) -> u32 {
    schedule.location(schedule.op(step.op).at).line
}

/// What is written there, without its comment.
pub(super) fn statement(run: &Run<'_>, line: u32) -> String {
    const SHOWN: usize = 55;
    let text = run.source.line(line).unwrap_or_default();
    let text = text.split("//").next().unwrap_or_default().trim();
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// What a step was, and why it could not begin before.
pub(super) fn words(schedule: &Schedule, step: &Step) -> String {
    let op = schedule.op(step.op);
    match step.task {
        Task::Transfer { latency, flowing, work } => {
            let ranks = |ranks: &mut dyn Iterator<Item = u32>| {
                let mut ranks: Vec<u32> = ranks.filter(|rank| *rank != step.rank.0).collect();
                ranks.dedup();
                ranks.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
            };
            let from = ranks(&mut schedule.srcs(op).iter().map(|src| src.rank.0));
            let to = ranks(&mut schedule.dsts(op).iter().map(|dst| dst.rank.0));
            let mut ways = Vec::new();
            if !from.is_empty() {
                ways.push(format!("pulls from {from}"));
            }
            if !to.is_empty() {
                ways.push(format!("pushes to {to}"));
            }
            let one = Spent {
                latency,
                flowing,
                reducing: work,
                sharing: shared(step.end - step.start, latency, flowing, work),
                ..Spent::default()
            };
            format!("{}: {}", ways.join(" and "), one.parts().join(", "))
        }
        Task::Local if op.srcs > 1 => "reduces".to_owned(),
        Task::Local => "copies".to_owned(),
        Task::Signal { post, from } => {
            debug_assert_eq!(op.kind, OpKind::Wait);
            let line = schedule.location(schedule.op(post).at).line;
            let what = match schedule.channel(op).kind {
                SignalKind::Ack => "TxAck",
                SignalKind::Data => "TxDataSignal",
                SignalKind::Head => "a free slot",
                SignalKind::Tail => "data in the fifo",
                SignalKind::Fork => return "is forked".to_owned(),
                SignalKind::Join => return "waits for the stream it joins".to_owned(),
            };
            format!("waits for {what} of rank {from}, line {line}")
        }
    }
}

/// One line on all of it.
pub(super) fn summary(run: &Run<'_>) -> String {
    let spent = Spent::new(&run.simulated.critical);
    let parts = spent.parts();
    let parts = if parts.is_empty() { String::new() } else { format!(": {}", parts.join(", ")) };
    format!("{} in a row{parts}", count(spent.transfers, "message"))
}
