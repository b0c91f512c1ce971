//! The `roundelay` command. Exit codes: 0, all is well; 1, the program is wrong; 2, the call is. `launch` has those of
//! what it runs.

mod aligned;
mod bench;
mod built;
mod calibrate;
mod certificate;
mod chart;
mod check;
mod command;
mod device;
mod emit;
mod executor;
mod explain;
mod flags;
mod fmt;
mod kernel;
#[cfg_attr(not(target_os = "linux"), path = "launch/elsewhere.rs")]
mod launch;
mod lints;
mod list;
mod markdown;
mod memory;
mod messages;
mod optimum;
mod output;
mod program;
mod ranks;
mod report;
mod run;
mod shell;
mod signals;
mod simulate;
mod stats;
mod topo;
mod topology;
mod usage;
mod values;
mod way;

use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{CommandFactory as _, Parser as _};
use command::{Cli, Command};
use report::Failure;

fn main() -> ExitCode {
    if let Some(code) = launch::become_rank().or_else(answer) {
        return code;
    }
    let call = match Cli::try_parse() {
        Ok(call) => call,
        Err(error) => match error.kind() {
            ErrorKind::DisplayHelp
            | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
            | ErrorKind::DisplayVersion => error.exit(),
            _ => return Failure::from(usage::problem(&error)).print(),
        },
    };
    let outcome = match call.command {
        Command::Check(flags) => check::main(&flags),
        Command::Run(flags) => run::main(&flags),
        Command::Bench(flags) => bench::main(&flags),
        Command::Simulate(flags) => simulate::main(&flags),
        Command::Fmt(flags) => fmt::main(&flags),
        Command::Emit(flags) => emit::main(&flags),
        Command::Executor(flags) => executor::main(&flags),
        Command::Signals(flags) => signals::main(&flags),
        Command::List(flags) => list::main(&flags),
        Command::Topo(flags) => topo::main(&flags),
        Command::Calibrate(flags) => calibrate::main(&flags),
        Command::Launch(flags) => return launch::main(&flags).unwrap_or_else(Failure::print),
        Command::Explain(flags) => explain::main(&flags),
        Command::Completions(flags) => {
            shell::completions(&flags, Cli::command());
            Ok(true)
        }
        Command::Man(flags) => shell::man(&flags, Cli::command()),
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(failure) => failure.print(),
    }
}

/// What a process does that a command started as one of its ranks; nothing where it is not one.
fn answer() -> Option<ExitCode> {
    let args = match ranks::become_rank()? {
        Ok(args) => args,
        Err(code) => return Some(code),
    };
    let words = std::iter::once("roundelay".into()).chain(args);
    Some(match Cli::try_parse_from(words).map(|call| call.command) {
        Ok(Command::Bench(flags)) => bench::answer(&flags),
        Ok(Command::Run(flags)) => run::answer(&flags),
        _ => ExitCode::FAILURE,
    })
}
