//! Draws a [`Matrix`]: rows of moments beside a square of senders and receivers.

use std::fmt::Write as _;

use super::bands::{NAME, Work, named};
use super::matrix::{Flow, Matrix, Moment};
use super::scale::{LEFT, Scale, time_text};
use super::shares::{LEVELS, level};
use super::{Diagram, MARGIN};
use crate::picture::px;
use roundelay_core::units::count;

/// The distance from the last moment to the square.
pub(super) const GAP: f64 = 84.0;
/// The least distance between the numbers of columns.
const NUMBER: f64 = 22.0;
/// The least distance between the lines of rounds, and between their numbers.
const LINED: f64 = 5.0;
const NUMBERED: f64 = 30.0;
/// The most cells that each show their size.
const TITLED: usize = 20_000;

/// Returns the class of a moment in the style.
pub(super) fn class(moment: Moment) -> String {
    match moment {
        Moment::Travels(Work::Copies, level) => format!("l{level}"),
        Moment::Travels(Work::Reduces, level) => format!("r{level}"),
        Moment::Works => "home".to_owned(),
        Moment::Waits => "idle".to_owned(),
        Moment::Nothing => "band".to_owned(),
    }
}

/// Draws the moments and the flow between ranks; also the flow of each round, if the picture steps through rounds.
pub(super) fn draw(body: &mut String, diagram: &Diagram<'_>, matrix: &Matrix, stepping: bool) {
    moments(body, matrix, &diagram.scale);
    rounds(body, diagram, matrix);
    diagram.critical(body);
    sums(body, diagram, matrix);
    body.push_str("<g class=\"over\"/>\n");
    let left = LEFT + diagram.scale.wide + GAP;
    let side = px(matrix.side());
    let _ = writeln!(
        body,
        "<g class=\"flow\" transform=\"translate({} 0)\">\n\
         <rect class=\"band\" x=\"0\" y=\"0\" width=\"{side}\" height=\"{side}\"/>",
        px(left)
    );
    ends(body, diagram, matrix);
    let most = matrix.flow.values().copied().max().unwrap_or(0);
    let stepped = matrix.flows.iter().filter(|_| stepping).map(Flow::len).sum::<usize>();
    let titled = matrix.flow.len() + stepped <= TITLED;
    body.push_str("<g class=\"whole\">\n");
    flow(body, diagram, matrix, (&matrix.flow, most, titled));
    body.push_str("</g>\n");
    if stepping {
        let most = matrix.flows.iter().flat_map(Flow::values).copied().max().unwrap_or(0);
        for (number, of) in (1..).zip(&matrix.flows) {
            let _ = writeln!(body, "<g class=\"round\" data-round=\"{number}\">");
            flow(body, diagram, matrix, (of, most, titled));
            body.push_str("</g>\n");
        }
    }
    let _ = writeln!(
        body,
        "<rect class=\"frame\" x=\"0\" y=\"0\" width=\"{side}\" height=\"{side}\"/>\n</g>"
    );
}

/// Draws one path for each color; equal moments in sequence are one piece.
fn moments(body: &mut String, matrix: &Matrix, scale: &Scale) {
    let wide = matrix.moment(scale);
    let mut paths = std::collections::BTreeMap::<String, String>::new();
    for row in 0..matrix.rows {
        let y = f64::from(row) * matrix.pitch;
        for (moment, start, end) in matrix.runs(row) {
            let x = LEFT + wide * start as f64;
            square(
                paths.entry(class(moment)).or_default(),
                (x, y),
                (wide * (end - start) as f64, tall(matrix)),
            );
        }
    }
    for (class, line) in paths {
        let _ = writeln!(body, r#"<path class="{class}" d="{line}"/>"#);
    }
}

/// Draws the beginnings of rounds: the columns of the picture. With many rounds, only some have a line or a number.
fn rounds(body: &mut String, diagram: &Diagram<'_>, matrix: &Matrix) {
    let shown = &diagram.shown;
    let begun = |round: u32| diagram.scale.x(diagram.rounds.begun(round));
    let mut lines = String::new();
    let (mut line, mut number) = (f64::MIN, f64::MIN);
    for round in shown.rounds.clone() {
        let x = begun(round);
        if x - line >= LINED {
            line = x;
            let _ = write!(lines, "M{} 0V{}", px(x), px(matrix.side()));
        }
        // The last number must not meet the heading of the square.
        if x - number >= NUMBERED && x <= LEFT + diagram.scale.wide {
            number = x;
            let y = px(super::AXIS + 8.0);
            let _ =
                writeln!(body, r#"<text class="tick" x="{}" y="-{y}">{}</text>"#, px(x), round + 1);
        }
    }
    let _ = writeln!(body, r#"<path class="rounds" d="{lines}"/>"#);
    let (x, y) = (px(LEFT - 8.0), px(super::AXIS + 12.0));
    let _ = writeln!(body, r#"<text class="name small" x="{x}" y="-{y}">round</text>"#);
}

/// Returns the height of a cell: rows are separated if there is room.
fn tall(matrix: &Matrix) -> f64 {
    if matrix.pitch >= 6.0 { matrix.pitch - 1.0 } else { matrix.pitch }
}

fn square(line: &mut String, (x, y): (f64, f64), (wide, tall): (f64, f64)) {
    let _ = write!(line, "M{} {}h{}v{}h{}z", px(x), px(y), px(wide), px(tall), px(-wide));
}

/// Draws the text that a pointer shows for a row.
fn sums(body: &mut String, diagram: &Diagram<'_>, matrix: &Matrix) {
    let units = diagram.drawing.units;
    for (row, sum) in (0..).zip(&matrix.sums) {
        let mut words = format!(
            "{}: {} sent, {} received",
            name(diagram, matrix, row),
            units.text(sum.sent),
            units.text(sum.received)
        );
        for (seconds, what) in [(sum.works, "at work at home"), (sum.waits, "waiting for signals")]
        {
            if seconds > 0.0 {
                let _ = write!(words, ", {} {what}", time_text(seconds));
            }
        }
        let _ = writeln!(
            body,
            r#"<rect class="row" x="{}" y="{}" width="{}" height="{}"><title>{words}</title></rect>"#,
            px(LEFT),
            px(f64::from(row) * matrix.pitch),
            px(diagram.scale.wide),
            px(matrix.pitch)
        );
    }
}

/// Returns the name of a row: `rank 3`, or `ranks 6 to 7` for several ranks.
fn name(diagram: &Diagram<'_>, matrix: &Matrix, row: u32) -> String {
    let ranks = &diagram.shown.ranks;
    let first = row * matrix.each;
    let last = first + matrix.ranks(row, ranks.len() as u32) - 1;
    let [first, last] = [first, last].map(|at| ranks[at as usize]);
    if first == last { format!("rank {first}") } else { format!("ranks {first} to {last}") }
}

/// Draws the numbers of the ranks beside the square and above it.
fn ends(body: &mut String, diagram: &Diagram<'_>, matrix: &Matrix) {
    let rank = |row: usize| diagram.shown.ranks[row * matrix.each as usize];
    let rows = matrix.rows as usize;
    for row in (0..rows).step_by(named(matrix.pitch, NAME)) {
        let y = px((row as f64 + 0.5) * matrix.pitch);
        let _ = writeln!(body, r#"<text class="name" x="-6" y="{y}">{}</text>"#, rank(row));
    }
    for row in (0..rows).step_by(named(matrix.pitch, NUMBER)) {
        let x = px((row as f64 + 0.5) * matrix.pitch);
        let _ = writeln!(body, r#"<text class="tick" x="{x}" y="-6">{}</text>"#, rank(row));
    }
    let half = px(matrix.side() / 2.0);
    let _ = writeln!(
        body,
        "<text class=\"tick\" x=\"{half}\" y=\"-{}\">to rank</text>\n\
         <text class=\"tick\" transform=\"translate(-{} {half}) rotate(-90)\">from rank</text>",
        px(MARGIN + 2.0),
        px(GAP / 2.0)
    );
}

/// Draws the bytes by sender and receiver; the largest cell has the strongest color. If there are few cells, each shows
/// its size.
fn flow(
    body: &mut String,
    diagram: &Diagram<'_>,
    matrix: &Matrix,
    (flow, most, titled): (&Flow, u64, bool),
) {
    let pitch = matrix.pitch;
    let size = (tall(matrix), tall(matrix));
    let mut paths = vec![String::new(); usize::from(LEVELS) + 1];
    for ((from, to), bytes) in flow {
        let at = (f64::from(*to) * pitch, f64::from(*from) * pitch);
        let level = level(*bytes as f64 / most.max(1) as f64);
        if !titled {
            square(&mut paths[usize::from(level)], at, size);
            continue;
        }
        let mut line = String::new();
        square(&mut line, at, size);
        let [from, to] = [from, to].map(|row| name(diagram, matrix, *row));
        let bytes = diagram.drawing.units.text(*bytes);
        let _ = writeln!(
            body,
            r#"<path class="l{level}" d="{line}"><title>{from} to {to}: {bytes}</title></path>"#
        );
    }
    for (level, line) in paths.iter().enumerate().filter(|(_, line)| !line.is_empty()) {
        let _ = writeln!(body, r#"<path class="l{level}" d="{line}"/>"#);
    }
    let words = format!(
        "{}, the strongest color is {}",
        count(flow.len(), "pair"),
        diagram.drawing.units.text(most)
    );
    let y = px(matrix.side() + super::AXIS);
    let _ = writeln!(body, r#"<text class="small" x="0" y="{y}">{words}</text>"#);
}
