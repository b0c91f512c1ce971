//! Measured bandwidth by size, both in logarithms, so that equal shares of the limit have equal distances from it
//! everywhere.

use std::fmt::Write as _;

use roundelay_core::units::decimals;

use crate::chart::{Axis, Chart, Curve, LIMIT, Mark, Point, class};

/// The subject of a measurement, as nccl-tests names its parts.
#[derive(Clone, Debug)]
pub struct MeasuredCase {
    /// The name of the collective.
    pub collective: &'static str,
    /// The number of ranks.
    pub nranks: u32,
    /// The type of elements.
    pub dtype: &'static str,
    /// The size in bytes.
    pub size: u64,
    /// The measured bandwidth of the algorithm in GB/s.
    pub bandwidth: f64,
}

/// A measured run of an algorithm.
#[derive(Clone, Debug)]
pub struct MeasuredRun {
    /// The name of the algorithm.
    pub name: String,
    /// The op, or `none`.
    pub redop: &'static str,
    /// The root; -1 where there is none.
    pub root: i64,
    /// The case.
    pub case: MeasuredCase,
}

/// Returns the chart of the times of runs, and of the limits of their cases.
pub fn chart(rows: &[MeasuredRun], limits: &[MeasuredCase]) -> Chart {
    let curves = curves(rows, limits);
    let points = || curves.iter().flat_map(|curve| &curve.points);
    let x = Axis::new(points().map(|point| point.x), 0.0);
    let y = Axis::new(points().map(|point| point.y), 0.04);
    let (title, caption) = titles(rows);
    Chart {
        title,
        caption,
        columns: x.powers().into_iter().map(size).collect(),
        rows: y.values().into_iter().map(|value| (value, decimals(value, 9))).collect(),
        x,
        y,
        below: "size, as nccl-tests counts it",
        above: "GB/s",
        curves,
    }
}

/// Returns a power of two as a size.
fn size(power: i32) -> (f64, String) {
    let (unit, name) = match power {
        30.. => (30, "GiB"),
        20.. => (20, "MiB"),
        10.. => (10, "KiB"),
        _ => (0, "B"),
    };
    (f64::from(power).exp2(), format!("{} {name}", 1_u64 << (power - unit).max(0)))
}

/// Makes a line for each algorithm, and the limit's; properties that all lines share are not in their names.
fn curves(rows: &[MeasuredRun], limits: &[MeasuredCase]) -> Vec<Curve> {
    let differ = |of: &dyn Fn(&MeasuredRun) -> String| {
        rows.windows(2).any(|pair| of(&pair[0]) != of(&pair[1]))
    };
    let ranks = differ(&|row| row.case.nranks.to_string());
    let dtypes = differ(&|row| row.case.dtype.to_owned());
    let ops = differ(&|row| row.redop.to_owned());
    let roots = differ(&|row| row.root.to_string());
    let collectives = differ(&|row| row.case.collective.to_owned());
    let mut all: Vec<Curve> = Vec::new();
    let mut add = |name: String, limit: bool, size: f64, bandwidth: f64| {
        if size <= 0.0 || bandwidth <= 0.0 {
            return;
        }
        let words = format!("{size} B, {bandwidth:.3} GB/s");
        let point = Point { x: size, y: bandwidth, mark: Mark::Plain, joined: true, words };
        if let Some(curve) = all.iter_mut().find(|curve| curve.name == name) {
            curve.points.push(point);
            return;
        }
        let nth = all.iter().filter(|curve| curve.class != LIMIT).count();
        let class = if limit { LIMIT.to_owned() } else { class(nth) };
        all.push(Curve { name, class, points: vec![point] });
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
        add(name, true, limit.size as f64, limit.bandwidth);
    }
    for row in rows {
        let mut name = row.name.clone();
        if ranks {
            let _ = write!(name, ", {} ranks", row.case.nranks);
        }
        if dtypes {
            let _ = write!(name, ", {}", row.case.dtype);
        }
        if ops {
            let _ = write!(name, ", {}", row.redop);
        }
        if roots && row.root >= 0 {
            let _ = write!(name, ", root {}", row.root);
        }
        add(name, false, row.case.size as f64, row.case.bandwidth);
    }
    for curve in &mut all {
        curve.points.sort_by(|a, b| a.x.total_cmp(&b.x));
    }
    all
}

/// Returns the properties that all lines share.
fn titles(rows: &[MeasuredRun]) -> (String, String) {
    let mut seen: [Vec<String>; 4] = Default::default();
    for row in rows {
        let of = [
            row.case.collective.to_owned(),
            row.case.nranks.to_string(),
            row.case.dtype.to_owned(),
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
