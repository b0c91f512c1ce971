//! The critical path in the words of the source.

use std::collections::BTreeMap;

use roundelay::select::time;
use roundelay_core::schedule::{OpKind, Schedule, SignalKind};
use roundelay_simulate::{Spent, Step, Task};

use super::Run;
use crate::topo::count;

/// Returns the parts of the time that are not zero, as words.
pub(super) fn parts(spent: &Spent) -> Vec<String> {
    let parts = [
        (spent.latency, "latency"),
        (spent.pieces, "pieces"),
        (spent.flowing, "bytes"),
        (spent.sharing, "sharing links"),
        (spent.reducing, "reducing"),
        (spent.local, "moves within a rank"),
        (spent.signals, "signals"),
    ];
    let some = parts.into_iter().filter(|(seconds, _)| *seconds > 0.0);
    some.map(|(seconds, what)| format!("{} of {what}", time(seconds))).collect()
}

/// A statement of the source, and the time that the path spends there.
pub(super) struct PathLine {
    pub(super) number: u32,
    pub(super) times: usize,
    pub(super) seconds: f64,
}

/// Returns the statements that take time, in the order of the source.
pub(super) fn lines(run: &Run<'_>) -> Vec<PathLine> {
    let mut lines: BTreeMap<u32, (usize, f64)> = BTreeMap::new();
    for step in run.simulated.critical.iter().filter(|step| step.end > step.start) {
        let (times, seconds) = lines.entry(line(run.schedule, step)).or_default();
        *times += 1;
        *seconds += step.end - step.start;
    }
    lines
        .into_iter()
        .map(|(number, (times, seconds))| PathLine { number, times, seconds })
        .collect()
}

/// Returns the line of a step's statement.
pub(super) fn line(schedule: &Schedule, step: &Step) -> u32 {
    schedule.location(schedule.op(step.op).at).line
}

/// Returns the text of a line, without its comment.
pub(super) fn statement(run: &Run<'_>, line: u32) -> String {
    const SHOWN: usize = 55;
    let text = run.source.line(line).unwrap_or_default();
    let text = text.split("//").next().unwrap_or_default().trim();
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Returns the meaning of a step, and why it could not begin before.
pub(super) fn words(schedule: &Schedule, step: &Step) -> String {
    let op = schedule.op(step.op);
    match step.task {
        Task::Transfer { .. } => {
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
            format!("{}: {}", ways.join(" and "), parts(&Spent::sum(&[*step])).join(", "))
        }
        Task::Fold => "folds what has come".to_owned(),
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
                SignalKind::Local => return "waits for another stream of its rank".to_owned(),
            };
            format!("waits for {what} of rank {from}, line {line}")
        }
    }
}

/// Returns one line on the whole path.
pub(super) fn summary(run: &Run<'_>) -> String {
    let spent = Spent::sum(&run.simulated.critical);
    let parts = parts(&spent);
    let parts = if parts.is_empty() { String::new() } else { format!(": {}", parts.join(", ")) };
    format!("{} in a row{parts}", count(spent.transfers, "message"))
}
