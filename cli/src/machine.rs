//! The subcommands that run algorithms and programs on this machine, or are for its shell: a browser has none of them.

use clap::Subcommand;

use crate::bench::{self, BenchFlags};
use crate::book::{self, BookFlags};
use crate::calibrate::{self, CalibrateFlags};
use crate::completion::{self, CompletionsFlags};
use crate::executor::{self, ExecutorFlags};
use crate::kernel_check::{self, KernelFlags};
use crate::launch::{self, LaunchFlags};
use crate::lsp;
use crate::man::{self, ManFlags};
use crate::mpirun::{self, MpirunFlags};
use crate::ncclrun::{self, NcclrunFlags};
use crate::probe::{self, ProbeFlags};
use crate::progress;
use crate::ps::{self, PsFlags};
use crate::report::{Failure, exit_code};
use crate::run::{self, RunFlags};
use crate::watch::{self, WatchFlags};

#[derive(Subcommand)]
pub(crate) enum MachineCommand {
    /// Run an algorithm on seeded random data and compare every element with a plain reference
    Run(RunFlags),
    /// Time algorithms as nccl-tests does, and compare them with the limit of the memory
    Bench(Box<BenchFlags>),
    /// Contest-style executors: find, list, check, run, bench and score them
    Executor(ExecutorFlags),
    /// Communication kernels that others wrote: check them
    Kernel(KernelFlags),
    /// Measure the constants of list --why on this machine
    Calibrate(CalibrateFlags),
    /// Start a program as several processes of this host or of several hosts, each of them a rank
    Launch(LaunchFlags),
    /// Find the slow link between hosts, and name its end; run as a rank on each host
    Probe(Box<ProbeFlags>),
    /// Say what the ranks of running jobs do: their calls, their waits, and the cause where they hang
    Ps(PsFlags),
    /// Run an MPI program as it is, with its collectives made here where that is faster
    Mpirun(MpirunFlags),
    /// Run a GPU job as it is, with its calls of NCCL through a library of Roundelay
    Ncclrun(NcclrunFlags),
    /// Serve the book on the loopback address, with its programs to try
    Book(BookFlags),
    /// Serve an editor with diagnostics, names and proofs while you type, by the Language Server Protocol
    Lsp,
    /// Check sources, and check them again whenever a file is saved
    Watch(Box<WatchFlags>),
    /// Print what a shell needs to complete subcommands, flags, and names of algorithms and files
    Completions(CompletionsFlags),
    /// Print the page of man for the command, or write those of all subcommands
    Man(ManFlags),
}

impl MachineCommand {
    /// Runs the subcommand of the `whole` command, and returns its exit code.
    pub(crate) fn main(self, whole: clap::Command) -> u8 {
        let outcome = match self {
            Self::Run(flags) => run::main(&flags),
            Self::Bench(flags) => bench::main(&flags),
            Self::Executor(flags) => progress::shown(|| executor::main(&flags)),
            Self::Kernel(flags) => return kernel_check::main(&flags),
            Self::Calibrate(flags) => calibrate::main(&flags),
            Self::Launch(flags) => return launch::main(&flags).unwrap_or_else(Failure::print),
            Self::Probe(flags) => return probe::main(&flags).unwrap_or_else(Failure::print),
            Self::Ps(flags) => ps::main(&flags),
            Self::Mpirun(flags) => return mpirun::main(&flags).unwrap_or_else(Failure::print),
            Self::Ncclrun(flags) => return ncclrun::main(&flags).unwrap_or_else(Failure::print),
            Self::Book(flags) => book::main(&flags),
            Self::Lsp => lsp::main(),
            Self::Watch(flags) => watch::main(&flags),
            Self::Completions(flags) => {
                completion::main(&flags, whole);
                Ok(true)
            }
            Self::Man(flags) => man::man(&flags, whole),
        };
        exit_code(outcome)
    }

    /// Runs the work of a rank of this subcommand, and returns its exit code.
    pub(crate) fn answer(&self) -> u8 {
        match self {
            Self::Bench(flags) => bench::answer(flags),
            Self::Run(flags) => run::answer(flags),
            Self::Calibrate(_) => calibrate::answer(),
            _ => 1,
        }
    }
}
