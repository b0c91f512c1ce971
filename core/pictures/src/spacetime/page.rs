//! The page: the picture, and tables of the messages in each round.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::legend::counted;
use super::scale::{stretch_text, time_text};
use super::{Diagram, Drawing};
use crate::picture::escape;
use roundelay_core::ids::{OpId, SpanId};
use roundelay_core::schedule::{Schedule, text};
use roundelay_core::units::count;
use roundelay_simulate::{Timeline, TimelineState};

/// The most rows of all tables together; a shortened table says the number of its missing rows.
const ROWS: usize = 10_000;
/// The style of the page.
const STYLE: &str = include_str!("page.css");
/// The script of the page.
const SCRIPT: &str = include_str!("page.js");

/// Returns a page with the picture of a run of `schedule`. It steps through the rounds and lists the content of each:
/// the author's statements, and every message with the statement that sends it.
///
/// The round of a message is the number of messages that must precede it, one after another.
pub fn html(schedule: &Schedule, timeline: &Timeline, drawing: &Drawing<'_>) -> String {
    let diagram = Diagram::new(schedule, timeline, drawing);
    let name = escape(drawing.title);
    let rounds = diagram.shown.rounds.len();
    let mut sections = String::new();
    for (number, rows) in (0..).zip(rows(&diagram)) {
        section(&mut sections, &diagram, number, &rows);
    }
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>{name}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n\
         <main>\n<h1>{name}</h1>\n\
         <div id=\"picture\" role=\"region\" aria-label=\"Space-time diagram\" tabindex=\"0\">\n{svg}</div>\n\
         <div id=\"controls\" role=\"group\" aria-label=\"Rounds\" hidden>\n\
         <button type=\"button\" id=\"first\" aria-label=\"Whole run\" title=\"Whole run (Home)\">&#x21E4;</button>\n\
         <button type=\"button\" id=\"back\" aria-label=\"Previous round\" title=\"Previous round (Left)\">&#x2190;</button>\n\
         <input type=\"range\" id=\"round\" aria-label=\"Round\" min=\"0\" max=\"{rounds}\" value=\"0\">\n\
         <button type=\"button\" id=\"next\" aria-label=\"Next round\" title=\"Next round (Right)\">&#x2192;</button>\n\
         <button type=\"button\" id=\"last\" aria-label=\"Last round\" title=\"Last round (End)\">&#x21E5;</button>\n\
         <p id=\"status\" role=\"status\">{status}</p>\n\
         <span class=\"zoom\">\n\
         <button type=\"button\" id=\"out\" aria-label=\"Zoom out\" title=\"Zoom out (-)\">&#x2212;</button>\n\
         <button type=\"button\" id=\"in\" aria-label=\"Zoom in\" title=\"Zoom in (+)\">+</button>\n\
         <button type=\"button\" id=\"fit\" title=\"All of the picture (0)\">Fit</button>\n\
         <button type=\"button\" id=\"full\" title=\"As it was drawn (1)\">100 %</button>\n</span>\n</div>\n\
         <div id=\"rounds\" role=\"region\" aria-label=\"Messages and work\" tabindex=\"0\">\n{sections}</div>\n</main>\n\
         <script>\n{SCRIPT}</script>\n</body>\n</html>\n",
        svg = diagram.svg(true),
        status = escape(&counted(&diagram)),
    )
}

/// A row of a round's table.
struct PageRow {
    start: f64,
    end: f64,
    who: String,
    bytes: Option<u64>,
    op: OpId,
}

/// Returns the rows of each round: its messages, and the local work of ranks that began while it was the latest round.
fn rows(diagram: &Diagram<'_>) -> Vec<Vec<PageRow>> {
    let (shown, rounds) = (&diagram.shown, &diagram.rounds);
    let mut all: Vec<Vec<PageRow>> = Vec::new();
    all.resize_with(shown.rounds.len().max(1), Vec::new);
    let mut place = |round: usize, row: PageRow| {
        let at = round.checked_sub(shown.rounds.start as usize);
        if let Some(rows) = at.and_then(|at| all.get_mut(at)) {
            rows.push(row);
        }
    };
    for (message, round) in diagram.timeline.messages.iter().zip(&rounds.of) {
        let Some(round) = round.filter(|_| shown.ends(message) == 2) else { continue };
        let row = PageRow {
            start: message.flows,
            end: message.end,
            who: format!("{} to {}", message.from, message.to),
            bytes: Some(message.bytes),
            op: message.op,
        };
        place(round as usize, row);
    }
    for span in diagram.timeline.spans.iter().filter(|span| span.state == TimelineState::Local) {
        let rank = diagram.schedule.streams[span.stream.index()].rank;
        if shown.row(rank).is_none() {
            continue;
        }
        let row = PageRow {
            start: span.start,
            end: span.end,
            who: format!("{rank}"),
            bytes: None,
            op: span.op,
        };
        place(rounds.at(span.start), row);
    }
    for rows in &mut all {
        rows.sort_by(|a, b| a.start.total_cmp(&b.start));
    }
    all
}

fn section(out: &mut String, diagram: &Diagram<'_>, number: usize, rows: &[PageRow]) {
    let round = diagram.shown.rounds.start as usize + number;
    let units = diagram.drawing.units;
    let (name, says, from, to) = match diagram.rounds.all.get(round) {
        Some(of) => (
            format!("Round {} of {}", round + 1, diagram.rounds.all.len()),
            format!(
                "{}, {}, {}",
                count(of.messages, "message"),
                units.text(of.bytes),
                stretch_text(of.start, of.end)
            ),
            diagram.scale.x(of.start),
            diagram.scale.x(of.end),
        ),
        None => (
            "No rounds".to_owned(),
            format!("nothing travels, {}", time_text(diagram.timeline.seconds)),
            0.0,
            0.0,
        ),
    };
    let id = number + 1;
    let _ = writeln!(
        out,
        "<section id=\"round-{id}\" data-from=\"{from:.1}\" data-to=\"{to:.1}\" aria-labelledby=\"name-{id}\">\n\
         <h2 id=\"name-{id}\">{name}: {says}</h2>"
    );
    statements(out, diagram, rows);
    out.push_str(
        "<table>\n<thead><tr><th scope=\"col\">When</th><th scope=\"col\">Ranks</th><th scope=\"col\">Size</th>\
         <th scope=\"col\">Statement</th><th scope=\"col\">On these parts</th></tr></thead>\n<tbody>\n",
    );
    let most = (ROWS / diagram.shown.rounds.len().max(1)).max(1);
    for row in &rows[..rows.len().min(most)] {
        let op = diagram.schedule.op(row.op);
        let _ = writeln!(
            out,
            "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td><code>{}</code></td></tr>",
            stretch_text(row.start, row.end),
            row.who,
            row.bytes.map(|bytes| units.text(bytes)).unwrap_or_default(),
            statement(diagram, op.at),
            escape(&text::op(diagram.schedule, op))
        );
    }
    out.push_str("</tbody>\n</table>\n");
    if rows.len() > most {
        let _ = writeln!(out, "<p>{} more are not listed.</p>", rows.len() - most);
    }
    out.push_str("</section>\n");
}

/// Writes the statements of a round, each once, in the order of the source.
fn statements(out: &mut String, diagram: &Diagram<'_>, rows: &[PageRow]) {
    let mut times: BTreeMap<SpanId, usize> = BTreeMap::new();
    for row in rows {
        *times.entry(diagram.schedule.op(row.op).at).or_default() += 1;
    }
    let mut times: Vec<_> = times.into_iter().collect();
    times.sort_by_key(|(at, _)| {
        let at = diagram.schedule.location(*at);
        (at.line, at.column)
    });
    for (at, times) in times {
        let written = statement(diagram, at);
        let times = if times == 1 { "once".to_owned() } else { format!("{times} times") };
        if !written.is_empty() {
            let _ = writeln!(out, "<p class=\"statement\">{written}<b>, {times}</b></p>");
        }
    }
}

/// Returns a statement with its place: `reduce(left.block[b], local.block[b]); ring.coll:27`
fn statement(diagram: &Diagram<'_>, at: SpanId) -> String {
    let Some(statement) = diagram.statements.get(at) else { return String::new() };
    let place = format!("<span class=\"place\">{}</span>", escape(&statement.place));
    match &*statement.text {
        "" => place,
        text => format!("<code>{}</code> {place}", escape(text)),
    }
}
