//! The program that times one collective, for MPIs that come without a benchmark.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::pypi::Mpi;
use crate::command::within;

/// The meaning of a size, where ranks have parts of a whole.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Share {
    /// The whole, as in other tables of this project.
    Whole,
    /// One rank's part, as Intel's benchmarks have it.
    Part,
}

/// Ranks that live longer end by themselves.
const LONGEST: Duration = Duration::from_secs(120);
/// The additional time of a launcher, to clear up after its ranks.
const GRACE: Duration = Duration::from_secs(10);

pub(super) struct Driver(PathBuf);

impl Driver {
    pub(super) fn compile(root: &Path, mpi: &Mpi) -> Result<Self, String> {
        let folder = root.join("target/mpi/programs").join(mpi.kind.name());
        std::fs::create_dir_all(&folder)
            .map_err(|error| format!("{}: {error}", folder.display()))?;
        let program = folder.join("driver");
        let source = root.join("xtask/peers/driver.c");
        mpi.compile(&source, &["-O3", "-march=native"], &program)?;
        Ok(Self(program))
    }

    /// Returns the command line of each rank.
    pub(super) fn line(&self, share: Share, op: &str, sizes: &[u64]) -> Vec<String> {
        let known = match op {
            "Allreduce" => "AllReduce",
            "Allgather" => "AllGather",
            "Reduce_scatter_block" => "ReduceScatterBlock",
            "Bcast" => "Broadcast",
            "Allgatherv" => "AllGatherV",
            "Reduce_scatter" => "ReduceScatterV",
            other => other,
        };
        let mut line = vec![self.0.display().to_string(), "--pinned".to_owned()];
        line.extend((share == Share::Part).then(|| "--part".to_owned()));
        line.extend(["--seconds".to_owned(), LONGEST.as_secs().to_string(), known.to_owned()]);
        line.extend(sizes.iter().map(u64::to_string));
        line
    }

    /// Returns the microseconds of each size.
    pub(super) fn times(&self, launch: &mut Command, sizes: &[u64]) -> Result<Vec<f64>, String> {
        let printed = within(launch, LONGEST + GRACE)?;
        read(&printed.stdout, sizes).ok_or_else(|| {
            format!(
                "{} did not print a right result and a time for each size\n{}",
                self.0.display(),
                printed.stderr
            )
        })
    }
}

/// Reads lines of a size, its time and the number of wrong elements, which must be 0.
fn read(text: &str, sizes: &[u64]) -> Option<Vec<f64>> {
    let mut lines = text.lines();
    let time = |size: &u64| {
        lines.find_map(|line| match line.split_whitespace().collect::<Vec<_>>()[..] {
            [bytes, time, wrong] if bytes.parse() == Ok(*size) => {
                Some((time.parse().ok()?, wrong == "0"))
            }
            _ => None,
        })
    };
    let times: Option<Vec<(f64, bool)>> = sizes.iter().map(time).collect();
    times
        .filter(|times| times.iter().all(|(_, right)| *right))
        .map(|times| times.into_iter().map(|(time, _)| time).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_right_results_have_times() {
        assert_eq!(read("hello\n4 0.5 0\n1024 1.5 0\n", &[4, 1024]), Some(vec![0.5, 1.5]));
        assert_eq!(read("4 0.5 0\n1024 1.5 3\n", &[4, 1024]), None);
        assert_eq!(read("4 0.5 0\n", &[4, 1024]), None);
    }
}
