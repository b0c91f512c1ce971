//! Curves in a frame, with a name at the end of each. The picture is one file without outside references, for light and
//! for dark pages.

mod axis;
mod letters;

use std::fmt::Write as _;

use crate::picture::{LETTER, escape, page, px, text};

pub use axis::Axis;

/// Colors, and patterns once the colors are used up. The hues are those of Okabe and Ito, which color-blind people tell
/// apart.
const STYLE: &str = include_str!("style.css");
const COLORS: usize = 8;
const PATTERNS: usize = 3;

const MARGIN: f64 = 20.0;
/// Left of the frame: the numbers of the values.
const LEFT: f64 = 64.0;
const TOP: f64 = 86.0;
/// Below the frame: numbers, and their meaning.
const BOTTOM: f64 = 58.0;
const WIDE: f64 = 560.0;
const TALL: f64 = 360.0;
/// The distance from the frame to the samples of the lines.
const GAP: f64 = 30.0;
/// The distance from the beginning of a sample to the line's name.
const SAMPLE: f64 = 32.0;
/// The distance from a name to the next.
const LINE: f64 = 16.0;

/// Curves, with their frame and texts.
pub struct Chart {
    /// The title.
    pub title: String,
    /// The line below the title.
    pub caption: String,
    /// The axis from left to right.
    pub x: Axis,
    /// The axis from the bottom up.
    pub y: Axis,
    /// The values that are named along the axes, with their names.
    pub columns: Vec<(f64, String)>,
    /// The values that are named along the axis upwards, with their names.
    pub rows: Vec<(f64, String)>,
    /// The meaning of the axes.
    pub below: &'static str,
    /// The meaning of the axis upwards.
    pub above: &'static str,
    /// The curves; the first is drawn above the others.
    pub curves: Vec<Curve>,
}

/// A curve, by the class of its color and pattern.
pub struct Curve {
    /// The name at the end of the line.
    pub name: String,
    /// The class of the style.
    pub class: String,
    /// The points, from left to right.
    pub points: Vec<Point>,
}

/// A point of a curve.
pub struct Point {
    /// The value from left to right.
    pub x: f64,
    /// The value upwards.
    pub y: f64,
    /// The prominence of the point.
    pub mark: Mark,
    /// Whether the line of the point before it goes on to here.
    pub joined: bool,
    /// The text for a reader who points at it.
    pub words: String,
}

/// The prominence of a point.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    /// Among few.
    Plain,
    /// Among many.
    Small,
    /// Emphasized.
    Large,
    /// Not visible beside the line.
    Hidden,
}

impl Mark {
    fn radius(self) -> f64 {
        match self {
            Self::Plain => 2.6,
            Self::Small => 1.5,
            Self::Large => 3.8,
            Self::Hidden => 0.0,
        }
    }
}

/// The class of the limit that curves are compared with.
pub const LIMIT: &str = "limit";

/// Returns the class of the nth curve.
pub fn class(nth: usize) -> String {
    format!("c{} d{}", nth % COLORS, nth / COLORS % PATTERNS)
}

impl Chart {
    /// Draws the picture.
    pub fn svg(&self) -> String {
        let mut body = String::new();
        for (value, label) in &self.columns {
            let at = LEFT + WIDE * self.x.share(*value);
            line(&mut body, "grid", (at, TOP), (at, TOP + TALL));
            text(&mut body, "small x", (at, TOP + TALL + 18.0), label);
        }
        for (value, label) in &self.rows {
            let at = TOP + TALL * (1.0 - self.y.share(*value));
            line(&mut body, "grid", (LEFT, at), (LEFT + WIDE, at));
            text(&mut body, "small y", (LEFT - 8.0, at + 4.0), label);
        }
        let _ = writeln!(
            body,
            r#"<rect class="frame" x="{}" y="{}" width="{}" height="{}"/>"#,
            px(LEFT),
            px(TOP),
            px(WIDE),
            px(TALL)
        );
        text(&mut body, "small x", (LEFT + WIDE / 2.0, TOP + TALL + 42.0), self.below);
        text(&mut body, "small", (MARGIN, TOP - 12.0), self.above);
        // The first curve is drawn last, above the others.
        for (at, curve) in self.curves.iter().enumerate().rev() {
            let under = self.curves[..at].iter().any(|above| self.covers(above, curve));
            self.draw(curve, under, &mut body);
        }
        let bottom = self.names(&mut body);
        let widest = self.curves.iter().map(|c| c.name.chars().count()).max().unwrap_or(0) as f64;
        let head_wide = self.title.chars().count().max(self.caption.chars().count()) as f64;
        let wide = LEFT + WIDE + GAP + SAMPLE + widest * LETTER;
        // The title is larger than the rest.
        let wide = wide.max(MARGIN + head_wide * LETTER * 1.2) + MARGIN;
        let tall = (TOP + TALL + BOTTOM).max(bottom + MARGIN);
        let mut head = String::new();
        text(&mut head, "title", (MARGIN, MARGIN + 12.0), &self.title);
        text(&mut head, "small", (MARGIN, MARGIN + 31.0), &self.caption);
        page(&self.title, (wide, tall), (STYLE, ""), &(head + &body))
    }

    fn place(&self, point: &Point) -> (f64, f64) {
        (LEFT + WIDE * self.x.share(point.x), TOP + TALL * (1.0 - self.y.share(point.y)))
    }

    /// Whether a good part of `curve` would not be seen below the curve `above`.
    fn covers(&self, above: &Curve, curve: &Curve) -> bool {
        let near = |a: (f64, f64), b: (f64, f64)| (a.0 - b.0).abs() + (a.1 - b.1).abs() < 2.0;
        let hidden = |point: &&Point| {
            let place = self.place(point);
            above.points.iter().any(|other| near(self.place(other), place))
        };
        4 * curve.points.iter().filter(hidden).count() > curve.points.len()
    }

    /// Draws a line for each run of points that are joined, and the points; `under` another curve, it is seen on both
    /// sides of that one.
    fn draw(&self, curve: &Curve, under: bool, body: &mut String) {
        let Curve { name, class, points } = curve;
        let class = &if under { format!("{class} under") } else { class.clone() };
        for run in points.chunk_by(|_, next| next.joined).filter(|run| run.len() > 1) {
            let path: Vec<String> = run
                .iter()
                .map(|point| self.place(point))
                .map(|(x, y)| format!("{},{}", px(x), px(y)))
                .collect();
            let _ = writeln!(
                body,
                r#"<polyline class="{class}" points="{}"><title>{}</title></polyline>"#,
                path.join(" "),
                escape(name)
            );
        }
        for point in points.iter().filter(|point| point.mark != Mark::Hidden) {
            let (x, y) = self.place(point);
            let _ = writeln!(
                body,
                r#"<circle class="{class}" cx="{}" cy="{}" r="{}"><title>{}</title></circle>"#,
                px(x),
                px(y),
                px(point.mark.radius()),
                escape(&format!("{name}: {}", point.words))
            );
        }
    }

    /// Draws the names at the ends of the curves, as near as they can stand without touching. Returns where they end.
    fn names(&self, body: &mut String) -> f64 {
        let mut ends: Vec<(&Curve, (f64, f64))> =
            self.curves.iter().filter_map(|c| Some((c, self.place(c.points.last()?)))).collect();
        ends.sort_by(|a, b| a.1.1.total_cmp(&b.1.1));
        let mut heights: Vec<f64> = Vec::new();
        for (_, (_, y)) in &ends {
            let free = heights.last().map_or(TOP, |last| last + LINE);
            heights.push(y.max(free));
        }
        // Names that were pushed below the frame move up again, as far as there is room.
        let mut below = (TOP + TALL).max(TOP + LINE * ends.len().saturating_sub(1) as f64);
        for height in heights.iter_mut().rev() {
            *height = height.min(below);
            below = *height - LINE;
        }
        let x = LEFT + WIDE + GAP;
        for ((curve, (end, y)), height) in ends.iter().zip(&heights) {
            let _ = writeln!(
                body,
                r#"<path class="lead {0}" d="M{1} {2}L{3} {4}"/><polyline class="{0}" points="{3},{4} {5},{4}"/>"#,
                curve.class,
                px(end + 4.0),
                px(*y),
                px(x),
                px(*height),
                px(x + SAMPLE - 8.0)
            );
            text(body, "name", (x + SAMPLE, height + 4.0), &curve.name);
        }
        heights.last().copied().unwrap_or(0.0)
    }
}

fn line(body: &mut String, class: &str, from: (f64, f64), to: (f64, f64)) {
    let _ = writeln!(
        body,
        r#"<line class="{class}" x1="{}" y1="{}" x2="{}" y2="{}"/>"#,
        px(from.0),
        px(from.1),
        px(to.0),
        px(to.1)
    );
}
