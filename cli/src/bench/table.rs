//! nccl-tests' table: comment lines, columns, footer. In the wide form ours are the last columns, so that its readers still
//! work.

use roundelay_runner::choice::{AS_GOOD, BenchChoice, Choices};
use roundelay_runner::limit::{Limit, WHAT};
use roundelay_runner::measurement::Measurement;

use super::columns::{InTable, Table, TableColumn, WRONG, common};
use super::row::BenchRow;
use super::subject::{Group, RefusedSubject};
use super::{Case, Config, Summary};
use crate::build_facts;
use crate::report::Failure;
use crate::streams::is_quiet;

pub(super) fn head(config: &Config, cases: &[Case]) -> Vec<String> {
    let mut lines = vec![
        format!("# roundelay {}", env!("CARGO_PKG_VERSION")),
        format!("# {}", build_facts::line("bench")),
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
    ];
    lines.extend(common(cases));
    lines.push("#".to_owned());
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

type Column = TableColumn<BenchRow>;

const OUT: &str = "out-of-place";
const IN: &str = "in-place";

/// The columns of nccl-tests, and ours behind them.
const fn columns(share: &'static str, predicted: InTable) -> [Column; 18] {
    const fn of(
        [over, name, unit]: [&'static str; 3],
        kept: InTable,
        widths: [usize; 2],
        cell: fn(&BenchRow) -> String,
    ) -> Column {
        Column { over, head: [name, unit], kept, widths, cell }
    }
    use InTable::{Always, Differs, Narrow, Room, Wide};
    [
        of(["", "size", "(B)"], Always, [12, 11], |row| row.size.to_string()),
        of(["", "count", "(elements)"], Room(0), [13, 12], |row| row.count.to_string()),
        of(["", "type", ""], Differs, [8, 7], |row| row.dtype.to_owned()),
        of(["", "redop", ""], Differs, [8, 6], |row| row.redop.to_owned()),
        of(["", "root", ""], Differs, [6, 5], |row| row.root.to_string()),
        of([OUT, "time", "(us)"], Always, [15, 10], |row| time(Some(&row.out_of_place))),
        of([OUT, "algbw", "(GB/s)"], Room(4), [8, 8], |row| alg_bw(Some(&row.out_of_place))),
        of([OUT, "busbw", "(GB/s)"], Room(6), [8, 8], |row| bus_bw(Some(&row.out_of_place))),
        of([OUT, WRONG, ""], Wide, [7, 0], |row| wrong(Some(&row.out_of_place))),
        of([IN, "time", "(us)"], Room(5), [13, 10], |row| time(row.in_place.as_ref())),
        of([IN, "algbw", "(GB/s)"], Room(1), [8, 8], |row| alg_bw(row.in_place.as_ref())),
        of([IN, "busbw", "(GB/s)"], Room(3), [8, 8], |row| bus_bw(row.in_place.as_ref())),
        of([IN, WRONG, ""], Wide, [7, 0], |row| wrong(row.in_place.as_ref())),
        of(["", WRONG, ""], Narrow, [0, 8], all_wrong),
        of(["", "nranks", ""], Differs, [8, 7], |row| row.nranks.to_string()),
        of(["", "streams", ""], Wide, [9, 0], |row| row.streams.to_string()),
        of(["", "% of", share], Always, [12, 7], |row| {
            // Only rows on GPUs have a floor.
            or_missing(row.percent_of_limit.or(row.percent_of_floor), |share| format!("{share:.1}"))
        }),
        of(["", "predicted", "(us)"], predicted, [11, 11], |row| or_missing(row.predicted, number)),
    ]
}

/// The columns of runs on the host, and of kernels on GPUs.
static ON_HOST: [Column; 18] = columns("limit", InTable::Never);
#[cfg(feature = "cuda")]
static ON_GPUS: [Column; 18] = columns("floor", InTable::Room(2));

/// Returns the table of runs on the host.
pub(super) fn on_host(cases: &[Case]) -> Table<BenchRow> {
    Table::new(&ON_HOST, cases, longest(cases))
}

/// Returns the table of kernels, whose rows say how a kernel is made and launched.
#[cfg(feature = "cuda")]
pub(super) fn on_gpus(cases: &[Case]) -> Table<BenchRow> {
    Table::new(&ON_GPUS, cases, longest(cases) + ", driven from the host".len())
}

/// Returns the length of the longest name of an algorithm.
pub(super) fn longest(cases: &[Case]) -> usize {
    let names = cases.iter().flat_map(|case| &case.subjects);
    names.map(|subject| subject.name.chars().count()).max().unwrap_or(0)
}

/// Returns the line of a subject that does not run.
pub(super) fn refusal(RefusedSubject { algo, nranks, code, reason }: &RefusedSubject) -> String {
    format!("# refused {algo} on {nranks} ranks [{code}]: {reason}")
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

fn or_missing<T>(value: Option<T>, text: impl Fn(T) -> String) -> String {
    value.map_or_else(|| "N/A".to_owned(), text)
}

fn time(of: Option<&Measurement>) -> String {
    or_missing(of, |of| number(of.time))
}

fn alg_bw(of: Option<&Measurement>) -> String {
    or_missing(of, |of| number(of.alg_bw))
}

fn bus_bw(of: Option<&Measurement>) -> String {
    or_missing(of, |of| number(of.bus_bw))
}

fn wrong(of: Option<&Measurement>) -> String {
    or_missing(of.and_then(|of| of.nwrong), |wrong| wrong.to_string())
}

/// Returns the number of wrong elements in both places.
fn all_wrong(row: &BenchRow) -> String {
    let places = [Some(&row.out_of_place), row.in_place.as_ref()];
    let wrong = places.into_iter().flatten().map(|place| place.nwrong);
    or_missing(wrong.sum::<Option<u64>>(), |wrong| wrong.to_string())
}

pub(super) fn foot(summary: &Summary) -> Vec<String> {
    let verdict = if summary.out_of_bounds.okay { "OK" } else { "FAILED" };
    let mut lines = vec![
        format!("# Out of bounds values : {} {verdict}", summary.out_of_bounds.count),
        format!("# Avg bus bandwidth    : {}", number(summary.average_bus_bandwidth)),
    ];
    if is_quiet() {
        lines.clear();
    }
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
