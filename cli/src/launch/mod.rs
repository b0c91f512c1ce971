//! `roundelay launch`: a program as several processes of this host, each of them a rank.
//!
//! The launcher outlives its ranks, and they do not outlive it: where it is killed, the kernel kills them. Each rank
//! leads a process group of its own, so that what it started is signalled and ended with it. A terminal's keys reach
//! the launcher alone, which forwards the signals.

mod flags;

#[cfg(target_os = "linux")]
mod endings;
#[cfg(target_os = "linux")]
mod environment;
#[cfg(target_os = "linux")]
mod job;
#[cfg(target_os = "linux")]
mod lines;
#[cfg(target_os = "linux")]
mod processes;
#[cfg(target_os = "linux")]
mod program;
#[cfg(target_os = "linux")]
mod rank;
#[cfg(target_os = "linux")]
mod signals;
#[cfg(target_os = "linux")]
mod told;

use std::process::ExitCode;

use roundelay_core::diagnostics::Code;

use crate::report::Failure;

#[cfg(target_os = "linux")]
pub(crate) use endings::{Ending, Endings};
#[cfg(target_os = "linux")]
pub(crate) use environment::{Environment, refused};
pub(crate) use flags::LaunchFlags;
#[cfg(target_os = "linux")]
pub(crate) use rank::{become_rank, number, tie_to};

/// The exit code is that of the job.
#[cfg(target_os = "linux")]
pub(crate) fn main(flags: &LaunchFlags) -> Result<ExitCode, Failure> {
    if flags.timeout.is_some_and(|timeout| timeout.is_zero()) {
        let failure = Failure::usage(Code::BadFlag, "--timeout 0 leaves a job no time");
        return Err(failure.with_help("a job without the flag may take any time"));
    }
    program::find(&flags.command[0])?;
    let (sender, events) = std::sync::mpsc::channel();
    // Before there are ranks, so that no signal passes them by.
    signals::listen(&sender)?;
    let job = job::Job::start(flags, &sender)?;
    Ok(ExitCode::from(job.wait(&events)))
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn main(_: &LaunchFlags) -> Result<ExitCode, Failure> {
    let title = "`roundelay launch` starts processes on Linux only";
    Err(Failure::usage(Code::SystemRefused, title))
}

/// What the launcher waits for.
#[cfg(target_os = "linux")]
enum Event {
    /// A signal came.
    Signal(i32),
    /// A stream of a rank is at its end.
    Closed,
}
