//! `executor run` and `executor bench`: real data through the framework's loop.

use roundelay_core::executor::Executor;
use roundelay_runner::executor::{ExecutorRow, Runner, Runs, Tested};
use serde::Serialize;

use super::executor_flags::{BenchFlags, DataFlags, RunFlags};
use super::size;
use crate::build_facts;
use crate::memory_bound::room;
use crate::report::{Failure, Format};
use crate::streams::{print, print_json};

#[derive(Serialize)]
struct ExecutorRunReport {
    ok: bool,
    executor: String,
    /// The build of this command, where it measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    build: Option<&'static str>,
    rows: Vec<ExecutorRow>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    left_out: Vec<LeftOut>,
    /// Where no sizes were asked for.
    #[serde(flatten)]
    tested: Option<Tested>,
}

/// A size that there is no memory for.
#[derive(Serialize)]
struct LeftOut {
    bytes: u64,
    reason: String,
}

pub(super) fn main(flags: &RunFlags) -> Result<bool, Failure> {
    let executor = flags.asked.load()?;
    let runs = Runs { in_place: flags.in_place, iterations: 1 };
    let sizes = (!flags.sizes.is_empty()).then_some(&flags.sizes[..]);
    table(executor, sizes, runs, &flags.data, flags.asked.format, false)
}

pub(super) fn bench(flags: &BenchFlags) -> Result<bool, Failure> {
    let executor = flags.asked.load()?;
    let runs = Runs { in_place: false, iterations: flags.iterations };
    build_facts::warn("executor bench");
    table(executor, Some(&flags.sizes), runs, &flags.data, flags.asked.format, true)
}

/// Runs at these sizes, or at some sizes of each class, and prints the table.
fn table(
    executor: Executor,
    sizes: Option<&[u64]>,
    runs: Runs,
    data: &DataFlags,
    format: Format,
    measured: bool,
) -> Result<bool, Failure> {
    let name = executor.name.clone();
    let collective = executor.collective;
    let text = format == Format::Human;
    let runner = Runner::new(executor, data.data(), room()?);
    let tested = sizes.is_none().then(|| runner.test(runs));
    let sizes = tested.as_ref().map_or(sizes.unwrap_or_default(), |tested| &tested.sizes);
    let (mut rows, mut left_out, mut first): (Vec<ExecutorRow>, _, _) =
        (Vec::new(), Vec::new(), None);
    // The head stands above the first row: where no size runs, the error stands alone.
    let mut above = Vec::new();
    if measured {
        above.push(build_facts::line("executor bench"));
    }
    let place = if runs.in_place { "in place" } else { "out of place" };
    above.push(format!(
        "{name} ({collective}), {} {}, {place}, seed {}",
        data.dtype, data.op, data.seed
    ));
    above.push(format!(
        "{:>12} {:>12} {:<24} {:>6} {:>7} {:>12} {:>13} {:>7}",
        "size", "count", "algorithm", "loops", "staged", "time (us)", "algbw (GB/s)", "#wrong"
    ));
    let mut put = |line: String, runs: bool| {
        above.push(line);
        if text && runs {
            above.drain(..).for_each(|line| print(&line));
        }
    };
    for &bytes in sizes {
        match runner.admits(bytes, runs) {
            Ok(()) => {
                let row = runner.run(bytes, runs)?;
                put(line(&row), true);
                rows.push(row);
            }
            Err(much) => {
                let reason = format!("left out: the run {much}");
                put(format!("{:>12} {reason}", size(bytes)), !rows.is_empty());
                left_out.push(LeftOut { bytes, reason });
                first.get_or_insert(much);
            }
        }
    }
    if let Some(much) = first
        && rows.is_empty()
    {
        return Err(much.into());
    }
    let ok = rows.iter().all(|row| row.wrong == 0);
    if !text {
        let build = measured.then_some(build_facts::BUILD);
        print_json(&ExecutorRunReport { ok, executor: name, build, rows, left_out, tested });
        return Ok(ok);
    }
    for line in tested.iter().flat_map(|t| t.untested.iter().chain([&t.testable])) {
        print(line);
    }
    Ok(ok)
}

fn line(row: &ExecutorRow) -> String {
    let color = if row.wrong == 0 { "92" } else { "91" };
    format!(
        "{:>12} {:>12} {:<24} {:>6} {:>7} {:>12.1} {:>13.3} \x1b[1;{color}m{:>7}\x1b[0m",
        size(row.bytes),
        row.count,
        row.algorithm,
        row.loops,
        if row.staged { "yes" } else { "no" },
        row.time_us,
        row.algbw_gbps,
        row.wrong
    )
}
