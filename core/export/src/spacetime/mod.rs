//! A run as a picture: ranks below each other, time to the right, messages as arrows between them.
//!
//! [`svg`] is the picture alone; [`html`] a page that steps through its rounds. Both are files that need nothing
//! from outside, for light and for dark pages.

mod arrows;
mod bands;
mod cells;
mod drawing;
mod legend;
mod matrix;
mod page;
mod rounds;
mod scale;
mod statements;

use std::fmt::Write as _;

use super::picture::{escaped, px};
use arrows::{Arrow, Arrows, Ends};
use bands::{Bands, Bar, NAME, Work, bars, gaps, named};
use drawing::Shown;
use matrix::Matrix;
use roundelay_core::ids::{OpId, StreamId};
use roundelay_core::schedule::{Schedule, text};
use roundelay_core::simulate::{Message, Span, Timeline, TimelineState};
use rounds::Rounds;
use scale::{LEFT, Scale, stretch_text};
use statements::Statements;

pub use drawing::{Drawing, Units, View};
pub use page::html;

/// Bars and arrows beyond which each says its line and not its operands.
const TERSE: usize = 4_000;
/// Around the picture.
const MARGIN: f64 = 20.0;
/// Width of the time axis: for each round, at least and at most.
const WIDE: (f64, f64, f64) = (64.0, 680.0, 1600.0);
/// Width of the time axis where messages are colors: for each round, at least and at most.
const NARROW: (f64, f64, f64) = (8.0, 480.0, 960.0);
/// The least width of the time axis, whatever was asked for.
const LEAST: f64 = 160.0;
/// From one end of the bands to the numbers of the time axis.
const AXIS: f64 = 18.0;
/// Pixels of arrows for each pixel of the picture: with more of them nobody can follow one.
const CROWDED: f64 = 0.12;
/// Pixels of arrows for each pixel of the picture: with more of them they are thin.
const DENSE: f64 = 0.05;
/// Colors and widths. The hues are near those of Okabe and Ito, which color-blind people tell apart; and what
/// copies and what reduces differ in their dashes and hatches too.
const STYLE: &str = concat!(include_str!("../picture.css"), include_str!("style.css"));

/// The picture of a run of `schedule`, from its first second to its last.
///
/// What is narrower than a pixel is merged, and what would be too much to read is drawn as colors or left out; the
/// picture says so.
pub fn svg(schedule: &Schedule, timeline: &Timeline, drawing: &Drawing<'_>) -> String {
    Diagram::new(schedule, timeline, drawing).svg(false)
}

/// How many rounds the run has that [`Drawing::rounds`] may name.
pub fn rounds(schedule: &Schedule, timeline: &Timeline) -> u32 {
    Rounds::new(schedule, timeline).all.len() as u32
}

/// How messages would be drawn, and how many there are between the ranks and in the rounds of the drawing.
pub fn view(schedule: &Schedule, timeline: &Timeline, drawing: &Drawing<'_>) -> (View, u64) {
    let diagram = Diagram::new(schedule, timeline, drawing);
    let view = if diagram.matrix.is_some() { View::Matrix } else { View::Arrows };
    (view, legend::messages(&diagram))
}

/// All that is drawn.
struct Diagram<'a> {
    schedule: &'a Schedule,
    timeline: &'a Timeline,
    drawing: &'a Drawing<'a>,
    statements: Statements,
    shown: Shown,
    rounds: Rounds,
    scale: Scale,
    bands: Bands,
    bars: Vec<Bar>,
    arrows: Arrows,
    /// Pixels of arrows for each pixel of the bands and of what is between them.
    ink: f64,
    /// Instead of bars and arrows.
    matrix: Option<Matrix>,
}

impl<'a> Diagram<'a> {
    fn new(schedule: &'a Schedule, timeline: &'a Timeline, drawing: &'a Drawing<'a>) -> Self {
        let mut rounds = Rounds::new(schedule, timeline);
        let shown = Shown::new(schedule, timeline, &rounds, drawing);
        shown.count(timeline, &mut rounds);
        let count = shown.rounds.len() as f64;
        // What is left of the width that was asked for.
        let axis = |(each, least, most): (f64, f64, f64), beside: f64| match drawing.width {
            Some(width) => (f64::from(width) - 2.0 * MARGIN - LEFT - beside).max(LEAST),
            None => (each * count).clamp(least, most),
        };
        let mut scale = Scale::new(shown.window, axis(WIDE, 0.0));
        let bands = Bands::new(schedule, &shown);
        let bars = bars(schedule, timeline, &shown, &bands, &scale);
        let arrows = Arrows::new(schedule, timeline, &shown, &rounds, &bands, &scale);
        let ink = arrows.length / (scale.wide * bands.height().max(1.0));
        let crowded = arrows.data_missing > 0 || ink > CROWDED;
        let matrix = match drawing.view {
            Some(View::Arrows) => None,
            None if !crowded => None,
            Some(View::Matrix) | None => {
                let side = Matrix::side_of(shown.ranks.len() as u32);
                scale = Scale::new(shown.window, axis(NARROW, cells::GAP + side));
                Some(Matrix::new(schedule, timeline, &shown, &rounds, scale.wide))
            }
        };
        let statements = Statements::new(schedule, drawing.source);
        Self {
            schedule,
            timeline,
            drawing,
            statements,
            shown,
            rounds,
            scale,
            bands,
            bars,
            arrows,
            ink,
            matrix,
        }
    }

    /// With what a page needs to step through the rounds, if it is to be `stepping`.
    fn svg(&self, stepping: bool) -> String {
        let mut body = String::new();
        if let Some(matrix) = &self.matrix {
            self.ticks(&mut body);
            cells::draw(&mut body, self, matrix, stepping);
        } else {
            self.grid(&mut body);
            self.bars(&mut body);
            self.signals(&mut body);
            self.arrows(&mut body);
        }
        self.names(&mut body);
        legend::finish(self, &body)
    }

    /// Messages that have one end at a rank that is drawn.
    fn outside(&self) -> u64 {
        let messages = self.timeline.messages.iter().zip(&self.rounds.of);
        let outside = |(message, round): &(&Message, &Option<u32>)| {
            let drawn = round.is_some_and(|round| self.shown.rounds.contains(&round));
            drawn && self.shown.ends(message) == 1
        };
        messages.filter(outside).count() as u64
    }

    /// What streams that are drawn do in the time that is drawn.
    fn spans(&self) -> usize {
        let rank = |stream: StreamId| self.schedule.streams[stream.index()].rank;
        let drawn =
            |span: &&Span| self.shown.during(span) && self.shown.row(rank(span.stream)).is_some();
        self.timeline.spans.iter().filter(drawn).count()
    }

    /// Height of what is beside the time axis.
    fn height(&self) -> f64 {
        self.matrix.as_ref().map_or_else(|| self.bands.height(), Matrix::side)
    }

    /// Width of all of it.
    fn width(&self) -> f64 {
        let beside = self.matrix.as_ref().map_or(0.0, |matrix| cells::GAP + matrix.side());
        LEFT + self.scale.wide + beside
    }

    /// The bands and the time axis, above and below them.
    fn grid(&self, body: &mut String) {
        let (bands, scale) = (&self.bands, &self.scale);
        for band in 0..bands.count {
            let _ = writeln!(
                body,
                r#"<rect class="band" x="{}" y="{}" width="{}" height="{}"/>"#,
                px(LEFT),
                px(bands.y(band)),
                px(scale.wide),
                px(bands.tall)
            );
        }
        self.ticks(body);
    }

    /// The time axis, above and below what it is for.
    fn ticks(&self, body: &mut String) {
        let (scale, bottom) = (&self.scale, self.height());
        for (seconds, label) in scale.ticks() {
            let at = scale.x(seconds);
            // The last number must not stick out.
            let class = if at > LEFT + scale.wide - MARGIN { "tick last" } else { "tick" };
            let x = px(at);
            let _ = writeln!(
                body,
                r#"<path class="grid" d="M{x} -6V{0}"/><text class="{class}" x="{x}" y="-11">{label}</text><text class="{class}" x="{x}" y="{1}">{label}</text>"#,
                px(bottom + 6.0),
                px(bottom + AXIS)
            );
        }
    }

    /// On a ground of their own: a page keeps them in sight when the rest is moved to the left.
    fn names(&self, body: &mut String) {
        let _ = writeln!(
            body,
            "<g class=\"names\">\n<rect class=\"page\" x=\"{}\" y=\"0\" width=\"{}\" height=\"{}\"/>",
            px(-MARGIN),
            px(LEFT + MARGIN - 2.0),
            px(self.height())
        );
        let (each, pitch, tall) = match &self.matrix {
            Some(matrix) => (matrix.each as usize, matrix.pitch, matrix.pitch),
            None => (1, self.bands.pitch, self.bands.tall),
        };
        let rows = self.shown.ranks.iter().step_by(each).enumerate();
        for (row, rank) in rows.step_by(named(pitch, NAME)) {
            let _ = writeln!(
                body,
                r#"<text class="name" x="{}" y="{}">rank {rank}</text>"#,
                px(LEFT - 8.0),
                px(row as f64 * pitch + tall / 2.0)
            );
        }
        body.push_str("</g>\n");
    }

    fn bars(&self, body: &mut String) {
        let edged = if self.bands.tall / f64::from(self.bands.rows) >= 5.0 { "edged" } else { "" };
        let _ = writeln!(body, r#"<g class="{edged}">"#);
        for bar in &self.bars {
            let class = bar_class(bar.state, bar.work);
            let (y, height) = self.bands.row_y(bar.band, bar.row);
            let (x, end) = (self.scale.x(bar.start), self.scale.x(bar.end));
            let _ = writeln!(
                body,
                r#"<rect class="{class}" x="{}" y="{}" width="{}" height="{}"><title>{}</title></rect>"#,
                px(x),
                px(y),
                px((end - x).max(0.6)),
                px(height),
                escaped(&self.bar_text(bar))
            );
        }
        body.push_str("</g>\n");
    }

    fn bar_text(&self, bar: &Bar) -> String {
        let when = stretch_text(bar.start, bar.end);
        let stream =
            if bar.stream > 0 { format!(", stream {}", bar.stream) } else { String::new() };
        let what = match bar.ops {
            1 => self.op_text(bar.op),
            ops => format!("{ops} ops"),
        };
        format!("rank {}{stream}, {when}: {what}", bar.rank)
    }

    /// `ring.coll:27: reduce(left.block[b], local.block[b]); fold 0.input[0..1], 1.output[0..1] -> 1.output[0..1]`
    fn op_text(&self, op: OpId) -> String {
        let op = self.schedule.op(op);
        let mut text = text::op(self.schedule, op);
        if self.bars.len() + self.arrows.data.len() > TERSE {
            text.truncate(text.find(' ').unwrap_or(text.len()));
        }
        match self.statements.get(op.at) {
            None => text,
            Some(statement) if statement.text.is_empty() => format!("{}: {text}", statement.place),
            Some(statement) => format!("{} {text}", statement.words()),
        }
    }

    /// How arrows are drawn, by the room between the bands and by how many they are.
    fn density(&self) -> &'static str {
        match self.bands.pitch - self.bands.tall {
            gap if gap >= 20.0 && self.ink <= DENSE => "",
            gap if gap >= 10.0 => "thin",
            _ => "hair",
        }
    }

    /// Above the bars, so that one can follow each from end to end. The halos of all of them are below all of them, for
    /// a halo that covers another arrow would cut it in pieces.
    fn arrows(&self, body: &mut String) {
        let _ = writeln!(body, r#"<g class="{}">"#, self.density());
        let rounds = || self.arrows.data.chunk_by(|a, b| a.round == b.round);
        let number = |of: &[Arrow]| of[0].round - self.shown.rounds.start + 1;
        for of in rounds() {
            let lines: String = of.iter().map(|arrow| arrow.ends.line()).collect();
            let number = number(of);
            let _ =
                writeln!(body, r#"<path class="halo round" data-round="{number}" d="{lines}"/>"#);
        }
        for of in rounds() {
            let _ = writeln!(body, r#"<g class="round" data-round="{}">"#, number(of));
            for arrow in of {
                self.arrow(body, arrow);
            }
            body.push_str("</g>\n");
        }
        body.push_str("</g>\n");
    }

    fn arrow(&self, body: &mut String, arrow: &Arrow) {
        let Message { op, from, to, bytes, pieces, start, end } = arrow.message;
        let way = if arrow.down { "down" } else { "up" };
        let what = match arrow.times {
            1 if pieces > 1 => format!("{pieces} pieces, the first {}", self.op_text(op)),
            1 => self.op_text(op),
            times => format!("{times} messages"),
        };
        let (size, work) = (self.drawing.units.text(bytes), arrow.work.class());
        let words = format!("{from} to {to}, {size}, {}: {what}", stretch_text(start, end));
        let class = format!("arrow {work} {way}");
        line(body, &class, work, arrow.ends, &words);
    }

    fn signals(&self, body: &mut String) {
        for (ends, message) in &self.arrows.signals {
            let Message { op, start, end, .. } = *message;
            let words = format!("{}: {}", stretch_text(start, end), self.op_text(op));
            line(body, "arrow signal", "signal", *ends, &words);
        }
    }
}

/// How the bar of an op is named in the style.
fn bar_class(state: TimelineState, work: Work) -> String {
    match state {
        TimelineState::Transfer => format!("transfer {}", work.class()),
        TimelineState::Local => format!("local {}", work.class()),
        TimelineState::Idle => "idle".to_owned(),
    }
}

/// A line with a head and what a pointer shows.
fn line(body: &mut String, class: &str, head: &str, ends: Ends, words: &str) {
    let _ = writeln!(
        body,
        r#"<path class="{class}" marker-end="url(#{head})" d="{}"><title>{}</title></path>"#,
        ends.line(),
        escaped(words)
    );
}
