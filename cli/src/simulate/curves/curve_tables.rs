//! The runs for people: times, the loads of links, the fastest algorithms, and the missing runs.

use std::fmt::Write as _;

use roundelay::select::time;
use roundelay_core::expansion::ranges;

use roundelay_pictures::curves::{AlgorithmCurve, Comparison, Missing, RunPoint};

use crate::report::within_a_page;
use crate::topo::aligned;

/// The widest time, such as `1007.25 us`.
const TIME: usize = 9;

pub(super) fn print(all: &Comparison<'_>) -> String {
    let mut text = String::new();
    let Comparison { collective, size, .. } = all;
    let topology = all.topology.name();
    let title = format!("{collective} of {size} on {} of {topology}", all.ranks());
    let _ = writeln!(text, "{}", within_a_page(&title, 4));
    let _ = writeln!(text, "\ntime, and share of the bandwidth bound");
    let cell = |point: &RunPoint| {
        let share =
            point.share().map_or(String::new(), |share| format!("  {:5.1} %", 100.0 * share));
        format!("{:TIME$}{share}", time(point.seconds))
    };
    table(all, &[], cell, &mut text);
    let _ = writeln!(
        text,
        "\nwhat the busiest link of each level carries one way, as a multiple of the size"
    );
    let names = &all.levels.names;
    let cell = |point: &RunPoint| {
        let size = point.bytes.max(1) as f64;
        let loads = point.loads.iter().map(|load| format!("{:.3}", load.most() / size));
        let cells = loads.zip(names).map(|(load, name)| format!("{load:0$}", name.len()));
        cells.collect::<Vec<_>>().join("  ")
    };
    table(all, names, cell, &mut text);
    fastest(all, &mut text);
    missing(all, &mut text);
    let constants = all.constants();
    for (source, counts) in &constants {
        let at = match constants.len() {
            1 => String::new(),
            _ => format!(" at {}", ranges(counts)),
        };
        let line = format!("constants{at}: {source}");
        let _ = writeln!(text, "\n{}", within_a_page(&line, 4));
    }
    text
}

/// Writes a row a rank count, and a column an algorithm.
fn table(
    all: &Comparison<'_>,
    below: &[String],
    cell: impl Fn(&RunPoint) -> String,
    text: &mut String,
) {
    let row = |first: &str, of: &dyn Fn(&AlgorithmCurve) -> String| {
        let cells = all.curves.iter().map(of);
        std::iter::once(first.to_owned()).chain(cells).collect::<Vec<_>>()
    };
    let mut rows = vec![row("ranks", &|curve| curve.name.clone())];
    if !below.is_empty() {
        rows.push(row("", &|_| below.join("  ")));
    }
    for n in &all.nranks {
        rows.push(row(&n.to_string(), &|curve| {
            curve.points.iter().find(|p| p.nranks == *n).map_or("-".to_owned(), &cell)
        }));
    }
    aligned(&rows, text);
}

fn fastest(all: &Comparison<'_>, text: &mut String) {
    if all.curves.len() < 2 {
        return;
    }
    let _ = writeln!(text, "\nfastest, or slower by less than 0.1 %");
    let rows: Vec<_> =
        all.fastest().iter().map(|(name, at)| vec![(*name).to_owned(), ranges(at)]).collect();
    let indent = 4 + rows.iter().map(|row| row[0].chars().count()).max().unwrap_or(0);
    let mut lines = String::new();
    aligned(&rows, &mut lines);
    for line in lines.lines() {
        let _ = writeln!(text, "{}", within_a_page(line, indent));
    }
}

/// Writes each reason once, with all rank counts that it is for.
fn missing(all: &Comparison<'_>, text: &mut String) {
    let all_of = |curve: &AlgorithmCurve, like: &Missing| {
        let same =
            curve.missing.iter().filter(|m| (m.code, &m.reason) == (like.code, &like.reason));
        same.map(|m| m.nranks).collect::<Vec<_>>()
    };
    let mut lines = Vec::new();
    for curve in &all.curves {
        for missing in &curve.missing {
            let counts = all_of(curve, missing);
            if counts.first() == Some(&missing.nranks) {
                let Missing { code, reason, .. } = missing;
                lines.push(format!("  {} at {}: {code}: {reason}", curve.name, ranges(&counts)));
            }
        }
    }
    if !lines.is_empty() {
        let _ = writeln!(text, "\nmissing");
    }
    for line in lines {
        let _ = writeln!(text, "{}", within_a_page(&line, 4));
    }
}
