//! A run as a picture: ranks below each other, time to the right, messages as arrows between them.
//!
//! [`svg`] is the picture alone; [`html`] a page that steps through its rounds. Both are files that need nothing
//! from outside, for light and for dark pages.

mod arrows;
mod bands;
mod legend;
mod page;
mod rounds;
mod scale;

use std::fmt::Write as _;

use super::picture::{escaped, px};
use crate::ids::{OpId, RankId};
use crate::schedule::{Schedule, text};
use crate::simulate::{Message, State, Timeline};
use crate::topology::shape::data_text;
use arrows::{Arrow, Arrows, Ends};
use bands::{Bands, Bar, bars};
use rounds::Rounds;
use scale::{LEFT, Scale, stretch_text};

pub use page::html;

/// Bars and arrows beyond which each says its line and not its operands.
const TERSE: usize = 4_000;
/// Around the picture.
const MARGIN: f64 = 20.0;
/// Width of the time axis: for each round, at least and at most.
const WIDE: (f64, f64, f64) = (64.0, 680.0, 1600.0);
/// From one end of the bands to the numbers of the time axis.
const AXIS: f64 = 18.0;
/// Colours and widths. The hues are near those of Okabe and Ito, which colour-blind people tell apart.
const STYLE: &str = concat!(include_str!("../picture.css"), include_str!("style.css"));

/// The picture of a run of `schedule`, from its first second to its last.
///
/// What is narrower than a pixel is merged, and what would be too much to read is left out; the legend says so.
pub fn svg(schedule: &Schedule, timeline: &Timeline, title: &str) -> String {
    Diagram::new(schedule, timeline).svg(title)
}

/// All that is drawn.
struct Diagram<'a> {
    schedule: &'a Schedule,
    timeline: &'a Timeline,
    rounds: Rounds,
    scale: Scale,
    bands: Bands,
    bars: Vec<Bar>,
    arrows: Arrows,
}

impl<'a> Diagram<'a> {
    fn new(schedule: &'a Schedule, timeline: &'a Timeline) -> Self {
        let rounds = Rounds::new(schedule, timeline);
        let (each, least, most) = WIDE;
        let scale =
            Scale::new(timeline.seconds, (each * rounds.all.len() as f64).clamp(least, most));
        let bands = Bands::new(schedule);
        let bars = bars(schedule, timeline, &bands, &scale);
        let arrows = Arrows::new(schedule, timeline, &rounds, &bands, &scale);
        Self { schedule, timeline, rounds, scale, bands, bars, arrows }
    }

    fn svg(&self, title: &str) -> String {
        let mut body = String::new();
        self.grid(&mut body);
        self.arrows(&mut body, true);
        self.bars(&mut body);
        self.signals(&mut body);
        self.arrows(&mut body, false);
        self.names(&mut body);
        legend::finish(self, title, &body)
    }

    /// The bands and the time axis, above and below them.
    fn grid(&self, body: &mut String) {
        let (bands, scale) = (&self.bands, &self.scale);
        for rank in (0..bands.nranks).map(RankId) {
            let _ = writeln!(
                body,
                r#"<rect class="band" x="{}" y="{}" width="{}" height="{}"/>"#,
                px(LEFT),
                px(bands.y(rank)),
                px(scale.wide),
                px(bands.tall)
            );
        }
        let bottom = bands.height();
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
        let bands = &self.bands;
        let _ = writeln!(
            body,
            "<g class=\"names\">\n<rect class=\"page\" x=\"{}\" y=\"0\" width=\"{}\" height=\"{}\"/>",
            px(-MARGIN),
            px(LEFT + MARGIN - 2.0),
            px(bands.height())
        );
        for rank in (0..bands.nranks).step_by(bands.named() as usize).map(RankId) {
            let y = px(bands.y(rank) + bands.tall / 2.0);
            let _ = writeln!(
                body,
                r#"<text class="name" x="{}" y="{y}">rank {rank}</text>"#,
                px(LEFT - 8.0)
            );
        }
        body.push_str("</g>\n");
    }

    fn bars(&self, body: &mut String) {
        let edged = if self.bands.tall / f64::from(self.bands.rows) >= 5.0 { "edged" } else { "" };
        let _ = writeln!(body, r#"<g class="{edged}">"#);
        for bar in &self.bars {
            let class = match bar.state {
                State::Transfer => "transfer",
                State::Local => "local",
                State::Idle => "idle",
            };
            let (y, height) = self.bands.row_y(bar.rank, bar.row);
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

    /// `line 12: copy 0.input[0..1] -> 0.output[0..1]`
    fn op_text(&self, op: OpId) -> String {
        let op = self.schedule.op(op);
        let mut text = text::op(self.schedule, op);
        if self.bars.len() + self.arrows.data.len() > TERSE {
            text.truncate(text.find(' ').unwrap_or(text.len()));
        }
        match self.schedule.location(op.at).line {
            0 => text,
            line => format!("line {line}: {text}"),
        }
    }

    /// How arrows are drawn, by the room between the bands.
    fn density(&self) -> &'static str {
        match self.bands.pitch - self.bands.tall {
            gap if gap >= 20.0 => "",
            gap if gap >= 10.0 => "thin",
            _ => "hair",
        }
    }

    /// Data that passes behind bands, or data that does not.
    fn arrows(&self, body: &mut String, far: bool) {
        let _ = writeln!(body, r#"<g class="{}">"#, self.density());
        let mut drawn = self.arrows.data.iter().filter(|arrow| arrow.far == far).peekable();
        while let Some(arrow) = drawn.next() {
            let round = arrow.round;
            let _ = writeln!(body, r#"<g class="round" data-round="{}">"#, round + 1);
            self.arrow(body, arrow);
            while let Some(arrow) = drawn.next_if(|arrow| arrow.round == round) {
                self.arrow(body, arrow);
            }
            body.push_str("</g>\n");
        }
        body.push_str("</g>\n");
    }

    fn arrow(&self, body: &mut String, arrow: &Arrow) {
        let Message { op, from, to, bytes, start, end } = arrow.message;
        let way = if arrow.down { "down" } else { "up" };
        let far = if arrow.far { " far" } else { "" };
        let what = match arrow.times {
            1 => self.op_text(op),
            times => format!("{times} messages"),
        };
        let size = data_text(bytes);
        let words = format!("{from} to {to}, {size}, {}: {what}", stretch_text(start, end));
        let class = format!("arrow {way}{far}");
        line(body, &class, way, arrow.ends, &words);
    }

    fn signals(&self, body: &mut String) {
        for (ends, message) in &self.arrows.signals {
            let Message { op, start, end, .. } = *message;
            let words = format!("{}: {}", stretch_text(start, end), self.op_text(op));
            line(body, "arrow signal", "signal", *ends, &words);
        }
    }
}

/// A line with a head and what a pointer shows.
fn line(body: &mut String, class: &str, head: &str, ends: Ends, words: &str) {
    let Ends { from, to } = ends;
    let _ = writeln!(
        body,
        r#"<path class="{class}" marker-end="url(#{head})" d="M{} {}L{} {}"><title>{}</title></path>"#,
        px(from.0),
        px(from.1),
        px(to.0),
        px(to.1),
        escaped(words)
    );
}
