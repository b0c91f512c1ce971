//! The plot of `--svg`: bandwidth by size, both in logarithms, so that the same share of the limit is the same
//! distance from it everywhere. One file that needs nothing from outside, for light and for dark pages.

use std::fmt::Write as _;

use super::limit::Limit;
use super::row::Row;

/// Colors, and from the last on patterns. The hues are those of Okabe and Ito, which color-blind people tell apart.
const STYLE: &str = include_str!("style.css");
const COLORS: usize = 8;
const PATTERNS: usize = 3;

const MARGIN: f64 = 20.0;
/// Left of the frame: the numbers of bandwidths.
const LEFT: f64 = 64.0;
const TOP: f64 = 86.0;
/// Below the frame: the sizes, and what they are.
const BOTTOM: f64 = 58.0;
const WIDE: f64 = 560.0;
const TALL: f64 = 360.0;
/// From the frame to the samples of the lines.
const GAP: f64 = 30.0;
/// From the beginning of a sample to the line's name.
const SAMPLE: f64 = 32.0;
/// From a name to the next.
const LINE: f64 = 16.0;
/// Pixels of a letter, on average and a little more.
const LETTER: f64 = 6.7;
/// Numbers along an axis at most.
const TICKS: usize = 9;

struct Series {
    name: String,
    class: String,
    /// Size and bandwidth, in order of size.
    points: Vec<(f64, f64)>,
}

/// The picture of what was measured out of place.
pub(super) fn svg(rows: &[Row], limits: &[Limit]) -> String {
    let series = series(rows, limits);
    let points = || series.iter().flat_map(|s| &s.points);
    let x = Axis::new(points().map(|p| p.0), 0.0);
    let y = Axis::new(points().map(|p| p.1), 0.04);
    let place = |&(size, bandwidth): &(f64, f64)| {
        (LEFT + WIDE * x.share(size), TOP + TALL * (1.0 - y.share(bandwidth)))
    };

    let mut body = String::new();
    for (value, label) in x.sizes() {
        let at = px(LEFT + WIDE * x.share(value));
        line(&mut body, "grid", &[(at.as_str(), &px(TOP)), (&at, &px(TOP + TALL))]);
        text(&mut body, "small x", LEFT + WIDE * x.share(value), TOP + TALL + 18.0, &label);
    }
    for value in y.values() {
        let at = TOP + TALL * (1.0 - y.share(value));
        line(&mut body, "grid", &[(&px(LEFT), &px(at)), (&px(LEFT + WIDE), &px(at))]);
        text(&mut body, "small y", LEFT - 8.0, at + 4.0, &format!("{value}"));
    }
    let _ = writeln!(
        body,
        r#"<rect class="frame" x="{}" y="{}" width="{}" height="{}"/>"#,
        px(LEFT),
        px(TOP),
        px(WIDE),
        px(TALL)
    );
    text(
        &mut body,
        "small x",
        LEFT + WIDE / 2.0,
        TOP + TALL + 42.0,
        "size, as nccl-tests counts it",
    );
    text(&mut body, "small", MARGIN, TOP - 12.0, "GB/s");

    // The limit last, above the others.
    for Series { name, class, points } in series.iter().rev() {
        let places: Vec<(f64, f64)> = points.iter().map(place).collect();
        let path: Vec<String> =
            places.iter().map(|(x, y)| format!("{},{}", px(*x), px(*y))).collect();
        let _ = writeln!(
            body,
            r#"<polyline class="{class}" points="{}"><title>{}</title></polyline>"#,
            path.join(" "),
            escaped(name)
        );
        for ((x, y), (size, bandwidth)) in places.iter().zip(points) {
            let _ = writeln!(
                body,
                r#"<circle class="{class}" cx="{}" cy="{}" r="2.6"><title>{}: {size} B, {bandwidth:.3} GB/s</title></circle>"#,
                px(*x),
                px(*y),
                escaped(name)
            );
        }
    }
    let bottom = names(&mut body, &series, place);
    let widest = series.iter().map(|s| s.name.chars().count()).max().unwrap_or(0) as f64;
    let wide = px(LEFT + WIDE + GAP + SAMPLE + widest * LETTER + MARGIN);
    let tall = px((TOP + TALL + BOTTOM).max(bottom + MARGIN));
    let (title, caption) = titles(rows);
    let mut head = String::new();
    text(&mut head, "title", MARGIN, MARGIN + 12.0, &title);
    text(&mut head, "small", MARGIN, MARGIN + 31.0, &caption);
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {wide} {tall}\" width=\"{wide}\" height=\"{tall}\" role=\"img\">\n\
         <title>{}</title>\n<style>\n{STYLE}</style>\n\
         <rect class=\"page\" width=\"{wide}\" height=\"{tall}\"/>\n{head}{body}</svg>\n",
        escaped(&title)
    )
}

/// The names at the ends of the lines, as near as they can stand without touching. Returns where they end.
fn names(body: &mut String, series: &[Series], place: impl Fn(&(f64, f64)) -> (f64, f64)) -> f64 {
    let mut ends: Vec<(&Series, (f64, f64))> =
        series.iter().filter_map(|s| Some((s, place(s.points.last()?)))).collect();
    ends.sort_by(|a, b| a.1.1.total_cmp(&b.1.1));
    let mut heights: Vec<f64> = Vec::new();
    for (_, (_, y)) in &ends {
        let free = heights.last().map_or(TOP, |last| last + LINE);
        heights.push(y.max(free));
    }
    // What was pushed below the frame goes up again, as far as there is room.
    let mut below = (TOP + TALL).max(TOP + LINE * ends.len().saturating_sub(1) as f64);
    for height in heights.iter_mut().rev() {
        *height = height.min(below);
        below = *height - LINE;
    }
    let x = LEFT + WIDE + GAP;
    for ((series, (end, y)), height) in ends.iter().zip(&heights) {
        let _ = writeln!(
            body,
            r#"<path class="lead {0}" d="M{1} {2}L{3} {4}"/><polyline class="{0}" points="{3},{4} {5},{4}"/>"#,
            series.class,
            px(end + 4.0),
            px(*y),
            px(x),
            px(*height),
            px(x + SAMPLE - 8.0)
        );
        text(body, "name", x + SAMPLE, height + 4.0, &series.name);
    }
    heights.last().copied().unwrap_or(0.0)
}

/// A line an algorithm, and the limit's; what they have in common is not in their names.
fn series(rows: &[Row], limits: &[Limit]) -> Vec<Series> {
    let differ =
        |of: &dyn Fn(&Row) -> String| rows.windows(2).any(|pair| of(&pair[0]) != of(&pair[1]));
    let ranks = differ(&|row| row.nranks.to_string());
    let dtypes = differ(&|row| row.dtype.to_owned());
    let ops = differ(&|row| row.redop.to_owned());
    let roots = differ(&|row| row.root.to_string());
    let collectives = differ(&|row| row.collective.to_owned());
    let mut all: Vec<Series> = Vec::new();
    let mut add = |name: String, class: Option<&str>, point: (f64, f64)| {
        if point.0 <= 0.0 || point.1 <= 0.0 {
            return;
        }
        if let Some(series) = all.iter_mut().find(|series| series.name == name) {
            series.points.push(point);
            return;
        }
        let nth = all.iter().filter(|series| series.class != "limit").count();
        let own = format!("c{} d{}", nth % COLORS, nth / COLORS % PATTERNS);
        let class = class.map_or(own, str::to_owned);
        all.push(Series { name, class, points: vec![point] });
    };
    for limit in limits {
        let mut name = "limit".to_owned();
        if collectives {
            let _ = write!(name, " of {}", limit.collective);
        }
        if ranks {
            let _ = write!(name, ", {} ranks", limit.nranks);
        }
        if dtypes {
            let _ = write!(name, ", {}", limit.dtype);
        }
        add(name, Some("limit"), (limit.size as f64, limit.alg_bw));
    }
    for row in rows {
        let mut name = row.algo.clone();
        if ranks {
            let _ = write!(name, ", {} ranks", row.nranks);
        }
        if dtypes {
            let _ = write!(name, ", {}", row.dtype);
        }
        if ops {
            let _ = write!(name, ", {}", row.redop);
        }
        if roots && row.root >= 0 {
            let _ = write!(name, ", root {}", row.root);
        }
        add(name, None, (row.size as f64, row.out_of_place.alg_bw));
    }
    for series in &mut all {
        series.points.sort_by(|a, b| a.0.total_cmp(&b.0));
    }
    all
}

/// What all lines have in common.
fn titles(rows: &[Row]) -> (String, String) {
    let mut seen: [Vec<String>; 4] = Default::default();
    for row in rows {
        let of = [
            row.collective.to_owned(),
            row.nranks.to_string(),
            row.dtype.to_owned(),
            row.redop.to_owned(),
        ];
        for (seen, value) in seen.iter_mut().zip(of) {
            if !seen.contains(&value) {
                seen.push(value);
            }
        }
    }
    let [collectives, ranks, dtypes, ops] = seen.map(|values| values.join(", "));
    let reduced = if ops == "none" { String::new() } else { format!(" {ops}") };
    (
        format!("{collectives} on {ranks} ranks"),
        format!("{dtypes}{reduced}, out of place, algorithm bandwidth"),
    )
}

/// A logarithmic axis.
struct Axis {
    low: f64,
    high: f64,
}

impl Axis {
    /// Over these values, and a share of their range more at both ends.
    fn new(values: impl Iterator<Item = f64>, more: f64) -> Self {
        let (mut low, mut high) = (f64::MAX, f64::MIN);
        for value in values.map(f64::log2) {
            (low, high) = (low.min(value), high.max(value));
        }
        if low > high {
            (low, high) = (0.0, 1.0);
        }
        // One value stands in the middle.
        if high - low < 0.5 {
            (low, high) = (low - 1.0, high + 1.0);
        }
        let more = more * (high - low);
        Self { low: low - more, high: high + more }
    }

    fn share(&self, value: f64) -> f64 {
        (value.log2() - self.low) / (self.high - self.low)
    }

    /// Powers of two, as sizes.
    fn sizes(&self) -> Vec<(f64, String)> {
        let (first, last) = (self.low.ceil() as i32, self.high.floor() as i32);
        let step = (last - first) / TICKS as i32 + 1;
        let named = |power: i32| {
            let (unit, name) = match power {
                30.. => (30, "GiB"),
                20.. => (20, "MiB"),
                10.. => (10, "KiB"),
                _ => (0, "B"),
            };
            (f64::from(power).exp2(), format!("{} {name}", 1_u64 << (power - unit).max(0)))
        };
        (first..=last).step_by(step as usize).map(named).collect()
    }

    /// 1, 2 and 5 with their powers of ten, or less of them.
    fn values(&self) -> Vec<f64> {
        let range = self.low.exp2()..=self.high.exp2();
        let of = |digits: &[f64]| {
            let decades = (-6..7).flat_map(|power| digits.iter().map(move |d| (d, power)));
            // A division, so that 0.2 is written as such.
            let value = |(digit, power): (&f64, i32)| match power {
                0.. => digit * 10_f64.powi(power),
                _ => digit / 10_f64.powi(-power),
            };
            decades.map(value).filter(|v| range.contains(v)).collect::<Vec<_>>()
        };
        let fine = of(&[1.0, 2.0, 5.0]);
        if fine.len() > TICKS + 3 { of(&[1.0]) } else { fine }
    }
}

fn line(body: &mut String, class: &str, ends: &[(&str, &str); 2]) {
    let [(x1, y1), (x2, y2)] = ends;
    let _ = writeln!(body, r#"<line class="{class}" x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}"/>"#);
}

fn text(body: &mut String, class: &str, x: f64, y: f64, words: &str) {
    let (x, y, words) = (px(x), px(y), escaped(words));
    let _ = writeln!(body, r#"<text class="{class}" x="{x}" y="{y}">{words}</text>"#);
}

/// A number with one digit behind the point, where it has one.
fn px(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").unwrap_or(&text).to_owned()
}

/// Text inside of an element.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
