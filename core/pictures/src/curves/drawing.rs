//! The picture of a comparison: time over ranks, a curve an algorithm. Rank counts are in logarithms, with the powers of two
//! named and their points large; so are times, unless the longest is near the shortest.

use roundelay_core::units::{decimals, ranges, time};

use super::{AlgorithmCurve, Comparison, RunPoint};
use crate::chart::{self, Axis, Chart, LIMIT, Mark};

/// The ratio of the longest time to the shortest from which times are in logarithms.
const FAR: f64 = 12.0;

/// The number of rank counts that are named where powers of two are too few.
const COUNTS: usize = 9;

impl Comparison<'_> {
    /// Draws the picture.
    pub fn svg(&self) -> String {
        chart(self).svg()
    }
}

fn chart(all: &Comparison<'_>) -> Chart {
    let mut curves: Vec<_> =
        all.curves.iter().enumerate().map(|(nth, curve)| drawn(curve, nth, &all.nranks)).collect();
    curves.extend(bound(all));
    curves.retain(|curve| !curve.points.is_empty());
    // A scale in which the numbers are easy to read.
    let longest = curves.iter().flat_map(|c| &c.points).map(|p| p.y).fold(0.0, f64::max);
    let (unit, above) = match longest {
        2.0.. => (1.0, "seconds"),
        2e-3.. => (1e-3, "milliseconds"),
        _ => (1e-6, "microseconds"),
    };
    for point in curves.iter_mut().flat_map(|curve| &mut curve.points) {
        point.y /= unit;
    }
    let values = || curves.iter().flat_map(|c| &c.points).map(|p| p.y);
    let shortest = values().fold(f64::MAX, f64::min);
    let far = longest / unit > FAR * shortest;
    let y = if far { Axis::new(values(), 0.04) } else { Axis::from_zero(values()) };
    let ranks = || all.nranks.iter().copied().map(f64::from);
    let x = Axis::new(ranks(), 0.015);
    let powers = x.powers().into_iter().map(|power| f64::from(power).exp2());
    let mut columns: Vec<f64> = powers.collect();
    if columns.len() < 2 {
        columns = ranks().step_by(all.nranks.len() / COUNTS + 1).collect();
    }
    let named = |value: f64| (value, decimals(value, 9));
    let counts = ranges(&all.nranks);
    let powers_of_two = all.nranks.iter().any(|n| n.is_power_of_two());
    let large = if powers_of_two { "; powers of two have large points" } else { "" };
    let constants = all.costs.last_key_value();
    let constants = constants.map_or(String::new(), |(_, of)| format!("; {}", of.title()));
    Chart {
        title: format!("{} of {} on {}", all.collective, all.size, all.topology.name()),
        caption: format!("simulated with {counts} ranks{constants}{large}"),
        columns: columns.into_iter().map(named).collect(),
        rows: y.values().into_iter().map(named).collect(),
        x,
        y,
        below: "ranks",
        above,
        curves,
    }
}

/// Returns the points of an algorithm. A line joins neighbors among the rank counts asked for; where one is missing, it
/// has a gap.
fn drawn(curve: &AlgorithmCurve, nth: usize, nranks: &[u32]) -> chart::Curve {
    let position = |n: u32| nranks.iter().position(|other| *other == n);
    let mut before = None;
    let mut points = Vec::new();
    for point in curve.points.iter().filter(|point| point.seconds > 0.0) {
        let at = position(point.nranks);
        let joined = before.is_some() && before.map(|before: usize| before + 1) == at;
        before = at;
        let mark = if point.nranks.is_power_of_two() { Mark::Large } else { Mark::Small };
        points.push(placed(point.nranks, point.seconds, mark, joined));
    }
    chart::Curve { name: curve.name.clone(), class: chart::class(nth), points }
}

/// Returns the least time of any algorithm.
fn bound(all: &Comparison<'_>) -> Option<chart::Curve> {
    let least = |n: &u32| {
        let mut points = all.curves.iter().flat_map(|curve| &curve.points);
        let point: &RunPoint = points.find(|point| point.nranks == *n)?;
        let seconds = point.bound.filter(|seconds| *seconds > 0.0)?;
        Some(placed(*n, seconds, Mark::Hidden, true))
    };
    let points: Vec<_> = all.nranks.iter().filter_map(least).collect();
    (points.len() > 1).then(|| chart::Curve {
        name: "bandwidth bound".to_owned(),
        class: LIMIT.to_owned(),
        points,
    })
}

fn placed(nranks: u32, seconds: f64, mark: Mark, joined: bool) -> chart::Point {
    let words = format!("{nranks} ranks, {}", time(seconds));
    chart::Point { x: f64::from(nranks), y: seconds, mark, joined, words }
}
