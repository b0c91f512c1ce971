//! `roundelay launch`: one program as several processes, each of them a rank. A terminal's keys reach the launcher alone,
//! which forwards the signals.

use std::ffi::OsString;
use std::time::Duration;

use clap::Args;
use roundelay_core::diagnostics::Code;
use roundelay_runner::launch::{self, LaunchedProgram};

use crate::report::Failure;
use crate::self_call;
use crate::streams::say;
use crate::values::{duration, process_count};

#[derive(Args)]
#[command(override_usage = "roundelay launch [OPTIONS] -n <RANKS> -- <PROGRAM> [ARGS]...")]
pub(crate) struct LaunchFlags {
    /// Processes to start, one for each rank, up to 1024
    #[arg(short = 'n', long, value_name = "RANKS", value_parser = process_count)]
    nranks: u32,
    /// How long the job may take, such as 90s; then it is ended, and the exit code is 124
    #[arg(long, value_name = "TIME", value_parser = duration)]
    timeout: Option<Duration>,
    /// How long ranks may go on after another failed or after they were told to end, such as 500ms or 0
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = duration)]
    grace: Duration,
    /// Wait for the other ranks where one failed, however long they take
    #[arg(long)]
    keep_going: bool,
    /// Begin each line that rank 3 prints with [3], as srun does with --label and mpirun with --tag-output
    #[arg(long)]
    prefix: bool,
    /// The program that each rank runs, and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "PROGRAM")]
    command: Vec<OsString>,
}

/// Runs the job, and returns its exit code.
pub(crate) fn main(flags: &LaunchFlags) -> Result<u8, Failure> {
    if flags.timeout.is_some_and(|timeout| timeout.is_zero()) {
        let failure = Failure::usage(Code::BadFlag, "--timeout 0 leaves a job no time");
        return Err(failure.with_help("a job without the flag may take any time"));
    }
    self_call::alone()?;
    Ok(launch::run(&LaunchedProgram {
        nranks: flags.nranks,
        timeout: flags.timeout,
        grace: flags.grace,
        keep_going: flags.keep_going,
        prefix: flags.prefix,
        command: flags.command.clone(),
        say: |line| say(line),
    })?)
}
