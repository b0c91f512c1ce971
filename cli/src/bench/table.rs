//! nccl-tests' table: comment lines, columns, footer; ours are the last columns, so that its readers still work.

use super::choice::{AS_GOOD, BenchChoice, Choices};
use super::limit::{Limit, WHAT};
use super::row::{BenchRow, Measurement};
use super::subject::Group;
use super::{Config, Summary};
use crate::built;
use crate::report::Failure;

pub(super) fn head(config: &Config) -> Vec<String> {
    let mut lines = vec![
        format!("# roundelay {}", env!("CARGO_PKG_VERSION")),
        format!("# {}", built::line("bench")),
        format!(
            "# nranks {} warmup iters: {} iters: {} validation: {} workers: {} callers: {}{} optimization: {}",
            config.nranks.iter().map(u32::to_string).collect::<Vec<_>>().join(","),
            config.warmup_iters,
            config.iters,
            u32::from(config.check),
            config.workers,
            if config.alloc { "processes, buffers in shared memory," } else { config.callers },
            if config.rewrite { " inputs: rewritten" } else { "" },
            config.optimization,
        ),
        "# all ranks share this machine's memory: bandwidths are not those of links".to_owned(),
        "# time: mean of the middle half of the iterations, each a row of runs that lasts 1 ms or more"
            .to_owned(),
        format!("# limit: {WHAT}"),
        "#".to_owned(),
    ];
    lines.extend(columns("% of limit"));
    lines
}

/// Returns the line about counts that are not exactly those of the sizes that were asked for.
pub(super) fn rounded(group: &Group) -> Result<Option<String>, Failure> {
    let (multiple, schedule) = (group.multiple()?, group.subjects[0].proved.schedule());
    let (collective, nranks) = (schedule.collective, schedule.nranks);
    let told = format!(
        "# {collective} on {nranks} ranks: counts are rounded down to multiples of {multiple}, as it takes no others"
    );
    Ok((multiple > 1).then_some(told))
}

/// Returns the heads of the columns; the share is of the limit or of the floor.
pub(super) fn columns(share: &str) -> [String; 3] {
    let blank = "";
    let place = format!("{:>11}{:>8}{:>8}{:>7}", "time", "algbw", "busbw", "#wrong");
    let units = format!("{:>11}{:>8}{:>8}{:>7}", "(us)", "(GB/s)", "(GB/s)", "");
    [
        format!("#{blank:53}{:^36}{:^36}", "out-of-place", "in-place"),
        format!(
            "#{:>12}{:>13}{:>8}{:>8}{:>6}    {place}  {place}{:>8}{:>9}{share:>12}  algo",
            "size", "count", "type", "redop", "root", "nranks", "streams"
        ),
        format!("#{:>12}{:>13}{blank:22}    {units}  {units}", "(B)", "(elements)"),
    ]
}

pub(super) fn limit(limit: &Limit) -> String {
    format!(
        "# limit {} {} on {} ranks, {} B: {} us, {} GB/s: {}",
        limit.dtype,
        limit.collective,
        limit.nranks,
        limit.size,
        number(limit.time).trim(),
        number(limit.alg_bw).trim(),
        limit.program,
    )
}

pub(super) fn row(row: &BenchRow) -> String {
    let share = row.percent_of_limit.or(row.percent_of_floor);
    let share = share.map_or_else(|| "N/A".to_owned(), |share| format!("{share:.1}"));
    // Only rows on GPUs have a prediction; they all have a share of the floor.
    let predicted = row.percent_of_floor.map_or(String::new(), |_| {
        let predicted = row.predicted.map_or_else(|| "N/A".to_owned(), number);
        format!("{predicted:>11}")
    });
    format!(
        " {:>12}{:>13}{:>8}{:>8}{:>6}    {}  {}{:>8}{:>9}{share:>12}{predicted}  {}",
        row.size,
        row.count,
        row.dtype,
        row.redop,
        row.root,
        measurement(Some(&row.out_of_place)),
        measurement(row.in_place.as_ref()),
        row.nranks,
        row.streams,
        row.algo
    )
}

fn measurement(measurement: Option<&Measurement>) -> String {
    let missing = "N/A";
    let Some(measured) = measurement else {
        return format!("{missing:>11}{missing:>8}{missing:>8}{missing:>7}");
    };
    let wrong = measured.nwrong.map_or_else(|| missing.to_owned(), |wrong| wrong.to_string());
    let wrong = format!("{wrong:>7}");
    let wrong = match measured.nwrong {
        Some(1..) => format!("\x1b[1;91m{wrong}\x1b[0m"),
        _ => wrong,
    };
    let [time, alg_bw, bus_bw] = [measured.time, measured.alg_bw, measured.bus_bw].map(number);
    format!("{time:>11}{alg_bw:>8}{bus_bw:>8}{wrong}")
}

pub(super) fn foot(summary: &Summary) -> Vec<String> {
    let verdict = if summary.out_of_bounds.okay { "OK" } else { "FAILED" };
    let mut lines = vec![
        format!("# Out of bounds values : {} {verdict}", summary.out_of_bounds.count),
        format!("# Avg bus bandwidth    : {}", number(summary.average_bus_bandwidth).trim()),
    ];
    if !summary.contest.is_empty() {
        lines.push("# Contest: mean algbw out of place of 1 KB, 1 MB and 1 GB (GB/s)".to_owned());
    }
    for mean in &summary.contest {
        let bandwidth = number(mean.mean_alg_bw);
        lines.push(format!("# {bandwidth:>9}  {}, {} ranks", mean.algo, mean.nranks));
    }
    lines.extend(summary.choice.iter().flat_map(choices));
    lines
}

/// Returns the share of good choices, and each one that is not good.
fn choices(choices: &Choices) -> Vec<String> {
    let Choices { within_a_tenth: good, cells } = choices;
    if cells.is_empty() {
        return vec!["# No choice to judge: no size has two algorithms of the library".to_owned()];
    }
    let share = 100.0 * *good as f64 / cells.len() as f64;
    let mut lines = vec![format!(
        "# Choices of select within 10 % of the fastest: {good} of {} ({share:.0} %)",
        cells.len()
    )];
    for cell in cells.iter().filter(|cell| cell.ratio > AS_GOOD) {
        let BenchChoice { collective, nranks, size, chosen, time, best, best_time, ratio } = cell;
        let [time, best_time] = [time, best_time].map(|time| number(*time));
        lines.push(format!(
            "#   {collective} of {size} B on {nranks} ranks: {chosen} {time} us, {best} {best_time} us ({ratio:.2})"
        ));
    }
    lines
}

/// Formats a number with four digits, as far as they stand before or soon behind the point.
pub(super) fn number(value: f64) -> String {
    match value {
        v if v >= 1000.0 => format!("{v:.0}"),
        v if v >= 100.0 => format!("{v:.1}"),
        v if v >= 10.0 => format!("{v:.2}"),
        v => format!("{v:.3}"),
    }
}
