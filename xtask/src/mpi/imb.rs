//! Intel's benchmarks of MPI's collectives, which come with its library and run on MPICH, too, as both have one binary
//! interface. They do not check results; the library does where it is told to verify them.

use std::fs;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use super::preload::{PreloadMode, PreloadReport};
use super::pypi::{Mpi, MpiKind, Variables};
use super::table::MarkdownTable;
use super::{Field, cores};
use crate::command::{Printed, brief, within};

/// All collectives of the benchmarks, including the ones that the library does not know.
const ALL: [&str; 14] = [
    "Allgather",
    "Allgatherv",
    "Allreduce",
    "Alltoall",
    "Alltoallv",
    "Barrier",
    "Bcast",
    "Gather",
    "Gatherv",
    "Reduce",
    "Reduce_scatter",
    "Reduce_scatter_block",
    "Scatter",
    "Scatterv",
];
const SIZES: [u64; 6] = [4, 64, 1 << 10, 16 << 10, 256 << 10, 1 << 20];
/// The seconds that a launch may take by default.
const LONGEST: u64 = 180;
/// The most calls of a size, and the most megabytes in all.
const CALLS: [&str; 2] = ["-iter", "50,64"];
/// Seconds for a size at most.
const SECONDS: &str = "8";

/// The program, wherever it runs.
pub(super) struct Benchmarks(PathBuf);

impl Benchmarks {
    /// Finds the benchmarks. They come with Intel's library, which is installed for them.
    pub(super) fn find(root: &Path) -> Result<Self, String> {
        Ok(Self(Mpi::install(root, MpiKind::Intel)?.prefix.join("bin/IMB-MPI1")))
    }

    /// Returns a launch with each rank on a core of its own, as far as there are cores.
    pub(super) fn launch(
        &self,
        mpi: &Mpi,
        nranks: u32,
        mut variables: Variables,
        ops: &[&str],
        sizes: &Lengths<'_>,
        calls: &[&str],
    ) -> Command {
        variables.push(mpi.path());
        let mut command = mpi.launch(nranks, &variables);
        let pinned = format!("exec taskset -c $((PMI_RANK % {})) \"$@\"", cores());
        command.args(["sh", "-c", &pinned, "sh"]).arg(&self.0);
        command.args(["-npmin", &nranks.to_string(), "-time", SECONDS, "-mem", "2"]);
        command.args(calls);
        match sizes {
            Lengths::Listed(file) => command.arg("-msglen").arg(file),
            Lengths::Powers(powers) => {
                command.arg("-msglog").arg(format!("{}:{}", powers.start(), powers.end()))
            }
        };
        command.args(ops);
        command
    }
}

/// The sizes that a launch times.
pub(super) enum Lengths<'a> {
    /// The sizes of a file, one on each line; in place of sizes beyond [`LISTED`] they time that one again.
    Listed(&'a Path),
    /// 2 to the power of each, and no data.
    Powers(RangeInclusive<u32>),
}

/// The longest that a file may have.
pub(super) const LISTED: u64 = 4 << 20;

/// Writes sizes for a launch.
pub(super) fn write(sizes: &[u64], folder: &Path) -> Result<PathBuf, String> {
    let file = folder.join("sizes");
    let lines: Vec<String> = sizes.iter().map(u64::to_string).collect();
    fs::write(&file, lines.join("\n") + "\n")
        .map_err(|error| format!("{}: {error}", file.display()))?;
    Ok(file)
}

/// Reads the microseconds of each size on the slowest rank, of all operations in their order; a barrier has no size.
pub(super) fn read(text: &str) -> Vec<(Option<u64>, f64)> {
    let row = |line: &str| {
        let numbers: Option<Vec<f64>> =
            line.split_whitespace().map(|word| word.parse().ok()).collect();
        match numbers?[..] {
            [bytes, _, _, slowest, _] => Some((Some(bytes as u64), slowest)),
            [_, _, slowest, _] => Some((None, slowest)),
            _ => None,
        }
    };
    text.lines().filter_map(row).collect()
}

pub(super) fn run(field: &Field<'_>) -> Result<(), String> {
    let benchmarks = Benchmarks::find(field.root)?;
    let asked = field.options.sizes.clone().unwrap_or_else(|| SIZES.to_vec());
    let ops = field.options.ops.clone().unwrap_or_else(|| ALL.to_vec());
    let seconds = field.options.seconds.unwrap_or(LONGEST);
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let file = write(&asked, folder.path())?;
    let sizes = Lengths::Listed(&file);
    let mut table = MarkdownTable::new(&[
        "MPI",
        "op",
        "ranks",
        "mode",
        "result",
        "calls taken",
        "passed on",
        "seconds",
    ]);
    let mut failures = 0;
    for mpi in &field.mpis {
        if mpi.kind.is_open_mpi() {
            println!(
                "{} is left out: the benchmarks are compiled for MPICH's binary interface",
                mpi.kind.name()
            );
            continue;
        }
        for nranks in field.ranks(mpi, &[2, 4, 8]) {
            for op in &ops {
                for mode in field.modes() {
                    let begun = Instant::now();
                    let variables = field.variables(mpi, mode);
                    let mut launch =
                        benchmarks.launch(mpi, nranks, variables, &[op], &sizes, &CALLS);
                    let ended = within(&mut launch, Duration::from_secs(seconds));
                    let rows = if *op == "Barrier" { 1 } else { asked.len() };
                    let (result, report) = judged(ended, rows, mode);
                    if let Err(why) = &result {
                        failures += 1;
                        let mpi = mpi.kind.name();
                        table.note(&format!("{mpi}, {op}, {nranks} ranks, {mode}: {why}"));
                    }
                    table.add(&[
                        mpi.kind.name().to_owned(),
                        (*op).to_owned(),
                        nranks.to_string(),
                        mode.to_string(),
                        if result.is_ok() { "ran" } else { "FAILED" }.to_owned(),
                        report.taken.to_string(),
                        report.passed.to_string(),
                        format!("{:.1}", begun.elapsed().as_secs_f64()),
                    ]);
                    println!("{}", table.last());
                }
            }
            field.keep(&table)?;
        }
    }
    println!("\n{}", table.text());
    match failures {
        0 => Ok(()),
        some => Err(format!("{some} launches failed")),
    }
}

/// Whether all sizes were timed, and that the library found no difference.
fn judged(
    ended: Result<Printed, String>,
    rows: usize,
    mode: PreloadMode,
) -> (Result<(), String>, PreloadReport) {
    let printed = match ended {
        Ok(printed) => printed,
        Err(why) => return (Err(brief(&why)), PreloadReport::read(&why)),
    };
    let report = PreloadReport::read(&format!("{}\n{}", printed.stdout, printed.stderr));
    let found = read(&printed.stdout).len();
    let result = match report.remarks.first() {
        Some(remark) if mode == PreloadMode::Verify => Err(remark.clone()),
        _ if found != rows => Err(format!("{found} of {rows} sizes were timed")),
        _ => Ok(()),
    };
    (result, report)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
# #processes = 2
       #bytes #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]
            4         1000         0.55         0.58         0.57
      1048576           40      2605.34      2605.94      2605.64
 #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]
         1000         0.25         0.31         0.28
";

    #[test]
    fn times_of_the_slowest_rank_are_read() {
        let rows = read(TEXT);
        assert_eq!(rows, [(Some(4), 0.58), (Some(1 << 20), 2605.94), (None, 0.31)]);
    }

    #[test]
    fn a_launch_is_right_if_all_sizes_are_there_and_no_difference_was_found() {
        let printed =
            |stderr: &str| Ok(Printed { stdout: TEXT.to_owned(), stderr: stderr.to_owned() });
        assert_eq!(judged(printed(""), 3, PreloadMode::Verify).0, Ok(()));
        assert!(judged(printed(""), 4, PreloadMode::On).0.is_err());
        assert!(judged(printed("roundelay: element 3 differs"), 3, PreloadMode::Verify).0.is_err());
        assert!(judged(Err("gave up".to_owned()), 3, PreloadMode::On).0.is_err());
    }
}
