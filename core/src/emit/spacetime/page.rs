//! The page: the picture, and the messages of each round.

use std::fmt::Write as _;

use super::Diagram;
use super::legend::{counted, plural};
use super::scale::{stretch_text, time_text};
use crate::emit::picture::escaped;
use crate::ids::OpId;
use crate::schedule::{Schedule, text};
use crate::simulate::{State, Timeline};
use crate::topology::shape::data_text;

/// Rows of all tables together; beyond, each says how many it leaves out.
const ROWS: usize = 10_000;
/// What it looks like.
const STYLE: &str = include_str!("page.css");
/// What it does.
const SCRIPT: &str = include_str!("page.js");

/// A page with the picture of a run of `schedule`, one that steps through its rounds and lists what each does.
///
/// A round holds the messages before which as many others must have passed, one after another.
pub fn html(schedule: &Schedule, timeline: &Timeline, title: &str) -> String {
    let diagram = Diagram::new(schedule, timeline);
    let name = escaped(title);
    let rounds = diagram.rounds.all.len();
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
         <p id=\"status\" role=\"status\">{status}</p>\n</div>\n\
         <div id=\"rounds\" role=\"region\" aria-label=\"Messages and work\" tabindex=\"0\">\n{sections}</div>\n</main>\n\
         <script>\n{SCRIPT}</script>\n</body>\n</html>\n",
        svg = diagram.svg(title),
        status = escaped(&counted(&diagram)),
    )
}

/// A row of a round's table.
struct Row {
    start: f64,
    end: f64,
    who: String,
    bytes: Option<u64>,
    op: OpId,
}

/// What every round lists: its messages, and what ranks did at home while it was the latest.
fn rows(diagram: &Diagram<'_>) -> Vec<Vec<Row>> {
    let mut all: Vec<Vec<Row>> = Vec::new();
    all.resize_with(diagram.rounds.all.len().max(1), Vec::new);
    for (message, round) in diagram.timeline.messages.iter().zip(&diagram.rounds.of) {
        let Some(round) = round else { continue };
        all[*round as usize].push(Row {
            start: message.start,
            end: message.end,
            who: format!("{} to {}", message.from, message.to),
            bytes: Some(message.bytes),
            op: message.op,
        });
    }
    for span in diagram.timeline.spans.iter().filter(|span| span.state == State::Local) {
        let rank = diagram.schedule.streams[span.stream.index()].rank;
        all[diagram.rounds.at(span.start)].push(Row {
            start: span.start,
            end: span.end,
            who: format!("{rank}"),
            bytes: None,
            op: span.op,
        });
    }
    for rows in &mut all {
        rows.sort_by(|a, b| a.start.total_cmp(&b.start));
    }
    all
}

fn section(out: &mut String, diagram: &Diagram<'_>, number: usize, rows: &[Row]) {
    let (name, says, from, to) = match diagram.rounds.all.get(number) {
        Some(round) => (
            format!("Round {} of {}", number + 1, diagram.rounds.all.len()),
            format!(
                "{}, {}, {}",
                plural(round.messages, "message"),
                data_text(round.bytes),
                stretch_text(round.start, round.end)
            ),
            diagram.scale.x(round.start),
            diagram.scale.x(round.end),
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
         <h2 id=\"name-{id}\">{name}: {says}</h2>\n<table>\n\
         <thead><tr><th scope=\"col\">When</th><th scope=\"col\">Ranks</th><th scope=\"col\">Size</th>\
         <th scope=\"col\">Line</th><th scope=\"col\">Op</th></tr></thead>\n<tbody>"
    );
    let most = (ROWS / diagram.rounds.all.len().max(1)).max(1);
    for row in &rows[..rows.len().min(most)] {
        let op = diagram.schedule.op(row.op);
        let line = match diagram.schedule.location(op.at).line {
            0 => String::new(),
            line => line.to_string(),
        };
        let _ = writeln!(
            out,
            "<tr><td>{}</td><td>{}</td><td>{}</td><td>{line}</td><td><code>{}</code></td></tr>",
            stretch_text(row.start, row.end),
            row.who,
            row.bytes.map(data_text).unwrap_or_default(),
            escaped(&text::op(diagram.schedule, op))
        );
    }
    out.push_str("</tbody>\n</table>\n");
    if rows.len() > most {
        let _ = writeln!(out, "<p>{} more are not listed.</p>", rows.len() - most);
    }
    out.push_str("</section>\n");
}
