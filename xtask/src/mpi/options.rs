//! The arguments of the command.

use std::path::PathBuf;

use super::preload::PreloadMode;
use super::pypi::MpiKind;
use crate::sizes::{list, size};

const USAGE: &str = "\
usage: cargo xtask mpi [JOB] [OPTION]...
  exports            the whole library as C files, by every MPI (if no job is given)
  programs           our own programs of MPI, whose results are known, with the library that takes over MPI's calls
  mpi4py             mpi4py's tests of collectives, with it
  imb                the collectives of Intel's benchmarks, with it
  mpich              MPICH's own tests of collectives, with it
  hosts              our own programs on some hosts, which are network namespaces of this machine
  bench              times of the same program with it and without, by turns
  --mpi LIST         of openmpi,mpich,impi,openmpi4; the last is Debian's 4.1, if it is installed
  --ranks LIST       such as 1,2,3,4; those that wait without leaving the core are left out where there are fewer cores;
                     hosts takes the first for its times on two
  --mode LIST        of without,off,on,verify: nothing loaded, or what ROUNDELAY_MPI is
  --library FILE     the library to load instead of building one
  --seconds N        what takes longer has failed: one case of mpi4py, or one launch of another program
  --sizes LIST       bytes for imb, hosts and bench, such as 4,32K,1M
  --ops LIST         of Allreduce,Allgather,Reduce_scatter_block,Bcast, for imb and bench; and for bench
                     Allgatherv,Reduce_scatter, whose blocks of odd ranks are 16 times those of even ones
  --launches N       so many of bench and hosts
  --hosts LIST       how many, such as 2,4
  --rate RATE        of a link between hosts, such as 1gbit
  --markdown FILE    write the table, too";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MpiTask {
    Exports,
    Programs,
    Mpi4py,
    Imb,
    Mpich,
    Hosts,
    Bench,
}

impl MpiTask {
    fn named(name: &str) -> Option<Self> {
        Some(match name {
            "exports" => Self::Exports,
            "programs" => Self::Programs,
            "mpi4py" => Self::Mpi4py,
            "imb" => Self::Imb,
            "mpich" => Self::Mpich,
            "hosts" => Self::Hosts,
            "bench" => Self::Bench,
            _ => return None,
        })
    }
}

/// The options; `None` where the job has a default of its own.
#[derive(Debug)]
pub(super) struct MpiOptions {
    pub(super) job: MpiTask,
    pub(super) mpis: Option<Vec<MpiKind>>,
    pub(super) ranks: Option<Vec<u32>>,
    pub(super) modes: Vec<PreloadMode>,
    pub(super) library: Option<PathBuf>,
    pub(super) seconds: Option<u64>,
    pub(super) sizes: Option<Vec<u64>>,
    pub(super) ops: Option<Vec<&'static str>>,
    pub(super) launches: u32,
    pub(super) hosts: Vec<u32>,
    pub(super) rate: Option<String>,
    pub(super) markdown: Option<PathBuf>,
}

/// The operations that can be timed, as MPI and Intel's benchmarks call them; the last two have counts for blocks, which
/// are 16 times as large for odd ranks as for even ones.
pub(super) const ALL_OPS: [&str; 6] =
    ["Allreduce", "Allgather", "Reduce_scatter_block", "Bcast", "Allgatherv", "Reduce_scatter"];

/// The operations that are timed unless others are asked for.
pub(super) const OPS: [&str; 4] = ["Allreduce", "Allgather", "Reduce_scatter_block", "Bcast"];

impl MpiOptions {
    pub(super) fn read(args: &[&str]) -> Result<Self, String> {
        let (job, args) = match args {
            [first, rest @ ..] if !first.starts_with("--") => {
                (MpiTask::named(first).ok_or_else(|| format!("{first}\n{USAGE}"))?, rest)
            }
            _ => (MpiTask::Exports, args),
        };
        let mut options = Self {
            job,
            mpis: None,
            ranks: None,
            modes: vec![PreloadMode::On, PreloadMode::Verify, PreloadMode::Off],
            library: None,
            seconds: None,
            sizes: None,
            ops: None,
            launches: 3,
            hosts: vec![2, 4],
            rate: None,
            markdown: None,
        };
        let mut args = args.iter().copied();
        while let Some(arg) = args.next() {
            let value = args.next().ok_or(USAGE)?;
            options.set(arg, value).ok_or_else(|| format!("{arg} {value}\n{USAGE}"))?;
        }
        Ok(options)
    }

    /// Sets an option; returns `None` if there is no such option or no such value.
    fn set(&mut self, arg: &str, value: &str) -> Option<()> {
        fn positive<T: std::str::FromStr + PartialOrd + Default>(text: &str) -> Option<T> {
            text.parse().ok().filter(|number| *number > T::default())
        }
        match arg {
            "--mpi" => self.mpis = Some(list(value, MpiKind::named)?),
            "--ranks" => self.ranks = Some(list(value, positive)?),
            "--mode" => self.modes = list(value, PreloadMode::named)?,
            "--library" => self.library = Some(value.into()),
            "--seconds" => self.seconds = Some(positive(value)?),
            "--sizes" => {
                self.sizes = Some(list(value, |one| size(one).filter(|bytes| bytes % 4 == 0))?);
            }
            "--ops" => {
                self.ops =
                    Some(list(value, |one| ALL_OPS.iter().copied().find(|known| *known == one))?);
            }
            "--launches" => self.launches = positive(value)?,
            "--hosts" => {
                self.hosts = list(value, |one| positive(one).filter(|n| (2..=8).contains(n)))?;
            }
            "--rate" => self.rate = Some(value.to_owned()),
            "--markdown" => self.markdown = Some(value.into()),
            _ => return None,
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_and_options_are_read() {
        let args = ["mpi4py", "--mpi", "mpich,impi", "--ranks", "1,2", "--mode", "verify"];
        let options = MpiOptions::read(&args).expect("valid options");
        assert_eq!(options.job, MpiTask::Mpi4py);
        assert_eq!(options.mpis, Some(vec![MpiKind::Mpich, MpiKind::Intel]));
        assert_eq!((options.ranks, options.modes), (Some(vec![1, 2]), vec![PreloadMode::Verify]));
        let args = ["bench", "--sizes", "4,1K", "--ops", "Bcast", "--launches", "1"];
        let options = MpiOptions::read(&args).expect("valid options");
        assert_eq!((options.sizes, options.ops), (Some(vec![4, 1024]), Some(vec!["Bcast"])));
        let default = MpiOptions::read(&[]).expect("no option is needed");
        assert_eq!((default.job, default.hosts), (MpiTask::Exports, vec![2, 4]));
    }

    #[test]
    fn what_is_no_job_or_option_is_refused_with_the_usage() {
        let wrong: [&[&str]; 8] = [
            &["mpi5py"],
            &["imb", "--ranks"],
            &["imb", "--ranks", "0"],
            &["imb", "--mpi", "lam"],
            &["bench", "--sizes", "6"],
            &["bench", "--ops", "AllReduce"],
            &["hosts", "--hosts", "1"],
            &["mpi4py", "--mode", "maybe"],
        ];
        for args in wrong {
            let why = MpiOptions::read(args).expect_err("no such option");
            assert!(why.contains("usage: cargo xtask mpi"), "{args:?}: {why}");
        }
    }
}
