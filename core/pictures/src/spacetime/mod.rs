//! A run as a picture: ranks below each other, time to the right, messages as arrows between them.
//!
//! [`svg`] returns the picture alone; [`html`] a page that steps through its rounds. Both are self-contained files, for
//! light and for dark pages.

mod arrows;
mod bands;
mod cells;
mod drawing;
mod legend;
mod matrix;
mod page;
mod rounds;
mod scale;
mod shares;
mod statements;

use std::fmt::Write as _;

use super::picture::{escape, px};
use arrows::{Arrow, Arrows, Ends};
use bands::{Bands, Bar, NAME, Work, bars, gaps, named};
use drawing::Shown;
use matrix::Matrix;
use roundelay_core::ids::{OpId, StreamId};
use roundelay_core::schedule::{Schedule, text};
use roundelay_simulate::{Message, Span, Timeline, TimelineState};
use rounds::Rounds;
use scale::{LEFT, Scale, stretch_text};
use statements::Statements;

pub use drawing::{Drawing, Units, View};
pub use page::html;

/// The most bars and arrows that show their operands; with more, each shows only its line.
const TERSE: usize = 4_000;
/// The margin around the picture.
const MARGIN: f64 = 20.0;
/// The width of the time axis: for each round, at least, and at most.
const WIDE: (f64, f64, f64) = (64.0, 680.0, 1600.0);
/// The width of the time axis of a matrix: for each round, at least, and at most.
const NARROW: (f64, f64, f64) = (8.0, 480.0, 960.0);
/// The least width of the time axis, whatever width the caller asks for.
const LEAST: f64 = 160.0;
/// The distance from the bands to the numbers of the time axis.
const AXIS: f64 = 18.0;
/// Pixels of arrows for each pixel of the picture above which arrows can no longer be followed.
const CROWDED: f64 = 0.12;
/// Pixels of arrows for each pixel of the picture above which arrows are thin.
const DENSE: f64 = 0.05;
/// Colors and widths. The hues are near those of Okabe and Ito, which color-blind people tell apart; copies and
/// reductions differ in their dashes and hatches too.
const STYLE: &str = concat!(include_str!("../picture.css"), include_str!("style.css"));

/// Returns the picture of a run of `schedule`, from its first second to its last.
///
/// Elements narrower than a pixel are merged, and too many elements are drawn as colors or left out; the picture has a
/// note for each.
pub fn svg(schedule: &Schedule, timeline: &Timeline, drawing: &Drawing<'_>) -> String {
    Diagram::new(schedule, timeline, drawing).svg(false)
}

/// Returns the number of rounds of the run, to which [`Drawing::rounds`] refers.
pub fn rounds(schedule: &Schedule, timeline: &Timeline) -> u32 {
    Rounds::new(schedule, timeline).all.len() as u32
}

/// Returns the form in which messages would be drawn, and their number between the ranks and in the rounds of the
/// drawing.
pub fn view(schedule: &Schedule, timeline: &Timeline, drawing: &Drawing<'_>) -> (View, u64) {
    let diagram = Diagram::new(schedule, timeline, drawing);
    let view = if diagram.matrix.is_some() { View::Matrix } else { View::Arrows };
    (view, legend::messages(&diagram))
}

/// All elements of a picture.
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
    /// Pixels of arrows for each pixel of the bands and the gaps between them.
    ink: f64,
    /// The matrix that replaces bars and arrows, if any.
    matrix: Option<Matrix>,
}

impl<'a> Diagram<'a> {
    fn new(schedule: &'a Schedule, timeline: &'a Timeline, drawing: &'a Drawing<'a>) -> Self {
        let mut rounds = Rounds::new(schedule, timeline);
        let shown = Shown::new(schedule, timeline, &rounds, drawing);
        shown.count(timeline, &mut rounds);
        let count = shown.rounds.len() as f64;
        // The requested width without the parts beside the axis.
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

    /// Returns the picture; with `stepping`, also the parts by which a page steps through the rounds.
    fn svg(&self, stepping: bool) -> String {
        let mut body = String::new();
        if let Some(matrix) = &self.matrix {
            self.ticks(&mut body);
            cells::draw(&mut body, self, matrix, stepping);
        } else {
            self.grid(&mut body);
            self.bars(&mut body);
            self.signals(&mut body);
            self.arrows(&mut body, stepping);
            self.critical(&mut body);
        }
        self.names(&mut body);
        legend::finish(self, &body)
    }

    /// Returns the number of messages with only one end at a rank that is drawn.
    fn outside(&self) -> u64 {
        let messages = self.timeline.messages.iter().zip(&self.rounds.of);
        let outside = |(message, round): &(&Message, &Option<u32>)| {
            let drawn = round.is_some_and(|round| self.shown.rounds.contains(&round));
            drawn && self.shown.ends(message) == 1
        };
        messages.filter(outside).count() as u64
    }

    /// Returns the number of spans of drawn streams in the drawn time.
    fn spans(&self) -> usize {
        let rank = |stream: StreamId| self.schedule.streams[stream.index()].rank;
        let drawn =
            |span: &&Span| self.shown.during(span) && self.shown.row(rank(span.stream)).is_some();
        self.timeline.spans.iter().filter(drawn).count()
    }

    /// Returns the height of the part beside the time axis.
    fn height(&self) -> f64 {
        self.matrix.as_ref().map_or_else(|| self.bands.height(), Matrix::side)
    }

    /// Returns the width of all parts.
    fn width(&self) -> f64 {
        let beside = self.matrix.as_ref().map_or(0.0, |matrix| cells::GAP + matrix.side());
        LEFT + self.scale.wide + beside
    }

    /// Draws the bands, and the time axis above and below them.
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

    /// Draws the time axis, above and below its content.
    fn ticks(&self, body: &mut String) {
        let (scale, bottom) = (&self.scale, self.height());
        for (seconds, label) in scale.ticks() {
            let at = scale.x(seconds);
            // The last number must stay within the picture.
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

    /// Draws the names of ranks on their own ground: a page keeps them visible when it scrolls to the right.
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
                escape(&self.bar_text(bar))
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

    /// Returns the text of an op: `ring.coll:27: reduce(left.block[b], local.block[b]); fold 0.input[0..1],
    /// 1.output[0..1] -> 1.output[0..1]`
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

    /// Returns the class of arrows, by the room between the bands and the number of arrows.
    fn density(&self) -> &'static str {
        match self.bands.pitch - self.bands.tall {
            gap if gap >= 20.0 && self.ink <= DENSE => "",
            gap if gap >= 10.0 => "thin",
            _ => "hair",
        }
    }

    /// Draws the critical path as a line: along the row of each step's rank, and across to the rank of the next.
    fn critical(&self, body: &mut String) {
        let (from, to) = self.shown.window;
        let mut line = String::new();
        let mut pen = false;
        // A step that takes no time, such as a signal at once, would be a line across to its rank and back.
        for step in self.drawing.critical.iter().filter(|step| step.end > step.start) {
            let row = self.shown.row(step.rank).filter(|_| step.end > from && step.start < to);
            let Some(row) = row else {
                pen = false;
                continue;
            };
            let y = match &self.matrix {
                Some(matrix) => (f64::from(row / matrix.each) + 0.5) * matrix.pitch,
                None => self.bands.y(row) + self.bands.tall / 2.0,
            };
            let (start, end) = (self.scale.x(step.start.max(from)), self.scale.x(step.end.min(to)));
            let begin = if pen { 'L' } else { 'M' };
            let _ = write!(line, "{begin}{} {}H{}", px(start), px(y), px(end));
            pen = true;
        }
        if !line.is_empty() {
            let _ = writeln!(
                body,
                r#"<path class="critical-halo" d="{line}"/><path class="critical" d="{line}"/>"#
            );
        }
    }

    /// Draws the arrows above the bars, so that each can be followed from end to end. All halos are below all arrows,
    /// since a halo over another arrow would interrupt it. A picture for a page that steps has a group for each round;
    /// else a slice is a group, so that a pointer on one of its arrows shows its whole way.
    fn arrows(&self, body: &mut String, stepping: bool) {
        let _ = writeln!(body, r#"<g class="{}">"#, self.density());
        if !stepping {
            let lines: String = self.arrows.data.iter().map(|arrow| arrow.ends.line()).collect();
            let _ = writeln!(body, r#"<path class="halo" d="{lines}"/>"#);
            let mut data: Vec<&Arrow> = self.arrows.data.iter().collect();
            data.sort_by_key(|arrow| arrow.slice);
            for slice in data.chunk_by(|a, b| a.slice == b.slice) {
                body.push_str("<g class=\"slice\">\n");
                for arrow in slice {
                    self.arrow(body, arrow);
                }
                body.push_str("</g>\n");
            }
            body.push_str("</g>\n");
            return;
        }
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
        let Message { op, from, to, bytes, pieces, flows, end, .. } = arrow.message;
        let way = if arrow.down { "down" } else { "up" };
        let what = match arrow.times {
            1 if pieces > 1 => format!("{pieces} pieces, the first {}", self.op_text(op)),
            1 => self.op_text(op),
            times => format!("{times} messages"),
        };
        let (size, work) = (self.drawing.units.text(bytes), arrow.work.class());
        let words = format!("{from} to {to}, {size}, {}: {what}", stretch_text(flows, end));
        let class = format!("arrow {work} {way} s{}", arrow.slice);
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

/// Returns the class of an op's bar in the style.
fn bar_class(state: TimelineState, work: Work) -> String {
    match state {
        TimelineState::Transfer => format!("transfer {}", work.class()),
        TimelineState::Local => format!("local {}", work.class()),
        TimelineState::Idle => "idle".to_owned(),
    }
}

/// Draws a line with a head, and the text that a pointer shows.
fn line(body: &mut String, class: &str, head: &str, ends: Ends, words: &str) {
    let _ = writeln!(
        body,
        r#"<path class="{class}" marker-end="url(#{head})" d="{}"><title>{}</title></path>"#,
        ends.line(),
        escape(words)
    );
}
