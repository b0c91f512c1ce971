//! The subcommands that run algorithms and programs on this machine, or are for its shell: a browser has none of them.

use clap::{CommandFactory as _, Subcommand};

use crate::bench::{self, BenchFlags};
use crate::calibrate::{self, CalibrateFlags};
use crate::command::{Cli, Command};
use crate::launch::{self, LaunchFlags};
use crate::mpirun::{self, MpirunFlags};
use crate::ranks;
use crate::report::{Failure, exit_code};
use crate::run::{self, RunFlags};
use crate::shell::{self, CompletionsFlags, ManFlags};

#[derive(Subcommand)]
pub(crate) enum MachineCommand {
    /// Run an algorithm on seeded random data and compare every element with a plain reference
    Run(RunFlags),
    /// Time algorithms as nccl-tests does, and compare them with the limit of the memory
    Bench(BenchFlags),
    /// Measure the constants of list --why on this machine
    Calibrate(CalibrateFlags),
    /// Start a program as several processes of this host, each of them a rank
    Launch(LaunchFlags),
    /// Run an MPI program as it is, with its collectives made here where that is faster
    Mpirun(MpirunFlags),
    /// Print what a shell needs to complete subcommands and flags
    Completions(CompletionsFlags),
    /// Print the page of man for the command, or write those of all subcommands
    Man(ManFlags),
}

impl MachineCommand {
    /// Runs the subcommand, and returns its exit code.
    pub(crate) fn main(self) -> u8 {
        let outcome = match self {
            Self::Run(flags) => run::main(&flags),
            Self::Bench(flags) => bench::main(&flags),
            Self::Calibrate(flags) => calibrate::main(&flags),
            Self::Launch(flags) => return launch::main(&flags).unwrap_or_else(Failure::print),
            Self::Mpirun(flags) => return mpirun::main(&flags).unwrap_or_else(Failure::print),
            Self::Completions(flags) => {
                shell::completions(&flags, Cli::command());
                Ok(true)
            }
            Self::Man(flags) => shell::man(&flags, Cli::command()),
        };
        exit_code(outcome)
    }
}

/// Runs the work of a process that a command started, or that is one of the ranks of a command; returns `None` in
/// another process.
pub(crate) fn become_rank() -> Option<u8> {
    launch::become_rank().or_else(answer)
}

/// Runs the work of a process that a command started as one of its ranks; returns `None` in another process.
fn answer() -> Option<u8> {
    let args = match ranks::become_rank()? {
        Ok(args) => args,
        Err(code) => return Some(code),
    };
    Some(match crate::parsed(args).map(|call| call.command) {
        Ok(Command::Machine(MachineCommand::Bench(flags))) => bench::answer(&flags),
        Ok(Command::Machine(MachineCommand::Run(flags))) => run::answer(&flags),
        _ => 1,
    })
}
