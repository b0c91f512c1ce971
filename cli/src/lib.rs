//! The `roundelay` command, as a function: for the program of that name, for programs that call it under another name,
//! and for libraries that want its output.
//!
//! Exit codes: 0, all is well; 1, the program is wrong; 2, the call is wrong. Of several sources that are checked, the
//! worst code counts. `probe` returns 1 where it found something; `launch`, `mpirun` and `ncclrun` return the exit codes of
//! the programs that they run.

#![cfg_attr(
    target_family = "wasm",
    allow(dead_code, unused_imports, reason = "a browser runs no algorithm")
)]

mod bench;
#[cfg(not(target_family = "wasm"))]
mod book;
mod build_facts;
mod calibrate;
mod check;
mod color;
mod command;
#[cfg(not(target_family = "wasm"))]
mod completion;
mod constants;
mod device;
mod diff;
mod emit;
mod emit_exchange;
mod executor;
mod explain;
mod facts;
mod flags;
mod fmt;
mod function;
mod interrupt;
mod kernel;
#[cfg(not(target_family = "wasm"))]
mod kernel_check;
mod launch;
mod lints;
mod list;
#[cfg(not(target_family = "wasm"))]
mod lsp;
#[cfg(not(target_family = "wasm"))]
mod machine;
#[cfg(not(target_family = "wasm"))]
mod man;
mod markdown;
mod memory_bound;
mod messages;
#[cfg_attr(not(target_os = "linux"), path = "mpirun/refusal.rs")]
mod mpirun;
mod msccl;
#[cfg_attr(not(target_os = "linux"), path = "ncclrun/refusal.rs")]
mod ncclrun;
mod needed_signals;
mod output;
mod parallel;
#[cfg(not(target_family = "wasm"))]
mod probe;
mod program;
#[cfg_attr(target_family = "wasm", path = "progress/none.rs")]
mod progress;
#[cfg_attr(not(target_os = "linux"), path = "ps/refusal.rs")]
mod ps;
mod report;
mod run;
mod select;
#[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "no process is started there"))]
mod self_call;
mod simulate;
#[cfg(target_os = "linux")]
mod stack;
mod stats;
mod streams;
mod synthesize;
mod tally;
mod texts;
mod topo;
mod topology;
mod trace;
mod usage;
mod values;
mod vector;
#[cfg(not(target_family = "wasm"))]
mod watch;

use std::ffi::OsString;
use std::process::ExitCode;
use std::time::Instant;

#[cfg(not(target_family = "wasm"))]
use clap::CommandFactory as _;
use clap::Parser as _;
use clap::error::ErrorKind;
use command::{Cli, Command};
use report::{Failure, exit_code};
use roundelay_core::diagnostics::Code;
use roundelay_runner::{RunError, again, launch as launcher, ranks};
use streams::Loudness;

pub use function::{Output, output};

/// Runs the command with the arguments of this process, and returns its exit code.
pub fn main() -> ExitCode {
    #[cfg(target_os = "linux")]
    return ExitCode::from(stack::with_enough(process));
    #[cfg(not(target_os = "linux"))]
    ExitCode::from(process())
}

/// Runs the command in a process that is another program, such as an interpreter, with `args` after its name. Processes
/// that the command starts of itself are started by `again`, a program and its first arguments, which must call this
/// function with the arguments that follow. It returns the exit code, and is called once in the life of a process.
pub fn main_of(again: Vec<OsString>, args: Vec<OsString>) -> u8 {
    again::set(again, args);
    process()
}

/// Runs the command, or the work of a process that a command started as one of its ranks. Its variables are not on the
/// stack of the caller, which may be small.
#[inline(never)]
fn process() -> u8 {
    #[cfg(not(target_family = "wasm"))]
    if let Some(code) = launcher::become_rank(fail).or_else(answer) {
        return code;
    }
    command(&again::args())
}

/// Says an error of a process that is a rank, and returns its exit code.
fn fail(error: RunError) -> u8 {
    Failure::from(error).print()
}

fn parsed(args: Vec<OsString>) -> Result<Cli, clap::Error> {
    Cli::try_parse_from(std::iter::once("roundelay".into()).chain(args))
}

fn command(args: &[OsString]) -> u8 {
    let begun = Instant::now();
    let call = match parsed(args.to_vec()) {
        Ok(call) => call,
        Err(error) => {
            color::choose(color::asked(args));
            let text = error.render().ansi().to_string();
            return match error.kind() {
                ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
                    streams::put(&text);
                    0
                }
                ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
                    streams::say(text.trim_end_matches('\n'));
                    2
                }
                _ => Failure::from(usage::problem(&error)).print(),
            };
        }
    };
    color::choose(call.color);
    streams::speak(match (call.quiet, call.verbose) {
        (false, false) => Loudness::Usual,
        (true, false) => Loudness::Quiet,
        (false, true) => Loudness::Verbose,
        // One of them may stand before the subcommand, where clap sees no conflict.
        (true, true) => {
            let title = "--quiet does not go with --verbose";
            let failure = Failure::usage(Code::BadCall, title);
            return failure.with_help("leave out one of them").print();
        }
    });
    let code = match call.command {
        #[cfg(not(target_family = "wasm"))]
        Command::Machine(command) => command.main(Cli::command()),
        Command::Check(flags) => {
            progress::shown(|| build_facts::timed("check", || check::main(flags)))
        }
        Command::Fmt(flags) => fmt::main(&flags),
        other => exit_code(progress::shown(|| of_source(other))),
    };
    if streams::is_verbose() {
        build_facts::told(begun.elapsed());
    }
    code
}

/// Runs a subcommand that reads sources, and runs none of them on this machine.
fn of_source(command: Command) -> Result<bool, Failure> {
    match command {
        Command::Simulate(flags) => simulate::main(&flags),
        Command::Emit(flags) => emit::main(&flags),
        Command::Signals(flags) => needed_signals::main(&flags),
        Command::List(flags) => list::main(&flags),
        Command::Select(flags) => select::main(&flags),
        Command::Synthesize(flags) => synthesize::main(&flags),
        Command::Topo(flags) => topo::main(&flags),
        Command::Explain(flags) => explain::main(&flags),
        _ => unreachable!("it has an arm of its own"),
    }
}

/// Runs the work of a process that a command started as one of its ranks; returns `None` in another process.
#[cfg(not(target_family = "wasm"))]
fn answer() -> Option<u8> {
    let args = match ranks::become_rank(fail)? {
        Ok(args) => args,
        Err(code) => return Some(code),
    };
    Some(match parsed(args).map(|call| call.command) {
        Ok(Command::Machine(command)) => command.answer(),
        _ => 1,
    })
}
