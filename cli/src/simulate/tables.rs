//! A simulated run for people.

use std::fmt::Write as _;

use roundelay::select::{rate, time};
use roundelay_simulate::{SignalCost, Streams};

use super::{Run, path};
use crate::report::within_a_page;
use crate::topo::{aligned, count};

/// Rows of a table; the rest is counted.
const ROWS: usize = 8;

pub(super) fn print(run: &Run<'_>, every_step: bool) -> String {
    let (done, schedule) = (&run.simulated, run.schedule);
    let mut text = String::new();
    let _ = writeln!(
        text,
        "{} ({}) of {} on {} of {}",
        schedule.algorithm,
        schedule.collective,
        run.size.text,
        count(schedule.nranks as usize, "rank"),
        run.machine.topology.name(),
    );
    let bus = done.algbw * schedule.collective.bus_factor(schedule.nranks);
    let mut rows = Vec::new();
    let mut row = |name: &str, value: String| rows.push(vec![name.to_owned(), value]);
    row("time", format!("{}, algbw {}, busbw {}", time(done.seconds), rate(done.algbw), rate(bus)));
    if let (Some((bound, binding)), Some(share)) = (&run.bound, run.share()) {
        let share = 100.0 * share;
        row("bound", format!("{share:.1} % of the bandwidth bound: {} ({binding})", time(*bound)));
    }
    if let Some(closed) = run.closed {
        row("closed form", time(closed));
    }
    let signals = match run.machine.signals {
        SignalCost::Free => "signals take no time",
        SignalCost::Messages => "signals are messages too",
    };
    let streams = match run.machine.streams {
        Streams::ByData => "streams go by data",
        Streams::InOrder => "streams do one op after the other",
    };
    let [messages, pieces] = [(done.messages, "message"), (done.pieces, "piece")]
        .map(|(number, what)| count(number as usize, what));
    let traffic = format!("{}, {messages} of {pieces}", count(run.steps as usize, "step"));
    row("constants", run.constants.costs.source());
    row("traffic", format!("{traffic}; {streams}, {signals}"));
    row("critical path", path::summary(run));
    let mut report = String::new();
    aligned(&rows, &mut report);
    // Below the value of the first line.
    let indent = 2 + "critical path".len() + 2;
    for line in report.lines() {
        let _ = writeln!(text, "{}", within_a_page(line, indent));
    }
    if done.seconds > 0.0 {
        links(run, &mut text);
        ports(run, &mut text);
        if every_step {
            steps(run, &mut text);
        } else {
            lines(run, &mut text);
        }
    }
    text
}

fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

/// Prints the first rows of a table under a title, and how many there are more.
fn table(title: &str, mut rows: Vec<Vec<String>>, what: &str, text: &mut String) {
    let more = rows.len().saturating_sub(ROWS);
    rows.truncate(ROWS);
    let _ = writeln!(text, "\n{title}");
    aligned(&rows, text);
    if more > 0 {
        let _ = writeln!(text, "  … and {}", count(more, &format!("more {what}")));
    }
}

fn links(run: &Run<'_>, text: &mut String) {
    let mut links: Vec<_> = run.simulated.links.iter().filter(|link| link.bytes > 0.0).collect();
    links.sort_by(|a, b| b.used.total_cmp(&a.used));
    let title =
        format!("links: {} of {} used, the busiest", links.len(), run.simulated.links.len());
    let row = |link: &&roundelay_simulate::Usage| {
        let ends = format!("{} -> {}", run.name(link.from), run.name(link.to));
        vec![ends, percent(link.used), format!("of {}", rate(link.capacity))]
    };
    table(&title, links.iter().map(row).collect(), "link", text);
}

fn ports(run: &Run<'_>, text: &mut String) {
    let mut ports: Vec<_> = run.simulated.ports.iter().enumerate().collect();
    let busy = |port: &roundelay_simulate::PortUsage| port.sending.max(port.receiving);
    ports.sort_by(|(_, a), (_, b)| busy(b).total_cmp(&busy(a)));
    let row = |(rank, port): &(usize, &roundelay_simulate::PortUsage)| {
        let sends = format!("sends {}", percent(port.sending));
        vec![rank.to_string(), sends, format!("receives {}", percent(port.receiving))]
    };
    let rows = ports.iter().map(row).collect();
    table("ranks: of what all their links could carry, the busiest", rows, "rank", text);
}

/// Prints the path by statements.
fn lines(run: &Run<'_>, text: &mut String) {
    let row = |line: &path::PathLine| {
        vec![
            format!("{}:{}", run.source.name(), line.number),
            format!("{} x", line.times),
            time(line.seconds),
            percent(line.seconds / run.simulated.seconds),
            path::statement(run, line.number),
        ]
    };
    let rows = path::lines(run).iter().map(row).collect();
    table("critical path, by statement (--path has every step)", rows, "statement", text);
}

/// Prints the path step by step. Signals that take no time explain the start of a step.
fn steps(run: &Run<'_>, text: &mut String) {
    let _ = writeln!(text, "\ncritical path");
    let row = |step: &roundelay_simulate::Step| {
        vec![
            time(step.start),
            format!("+ {}", time(step.end - step.start)),
            format!("rank {}", step.rank),
            format!("line {}", path::line(run.schedule, step)),
            path::words(run.schedule, step),
        ]
    };
    aligned(&run.simulated.critical.iter().map(row).collect::<Vec<_>>(), text);
}
