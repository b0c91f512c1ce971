//! `roundelay launch`: a program as several processes of this host, each of them a rank.
//!
//! The launcher outlives its ranks: if it is killed, the kernel kills them. Each rank leads a process group of its own,
//! so that its child processes are signalled and ended with it. A terminal's keys reach the launcher alone, which
//! forwards the signals.

mod children;
mod endings;
mod environment;
mod flags;
mod job;
mod lines;
mod processes;
mod program;
mod rank;
mod signals;
mod told;

use roundelay_core::diagnostics::Code;

use crate::called;
use crate::report::Failure;

pub(crate) use children::{Child, Children};
pub(crate) use endings::Ending;
pub(crate) use flags::LaunchFlags;
pub(crate) use rank::{become_rank, tie_to};
pub(crate) use signals::listen;

/// Runs the job, and returns its exit code.
pub(crate) fn main(flags: &LaunchFlags) -> Result<u8, Failure> {
    if flags.timeout.is_some_and(|timeout| timeout.is_zero()) {
        let failure = Failure::usage(Code::BadFlag, "--timeout 0 leaves a job no time");
        return Err(failure.with_help("a job without the flag may take any time"));
    }
    called::alone()?;
    program::find(&flags.command[0])?;
    let (sender, events) = std::sync::mpsc::channel();
    // Before ranks are started, so that no signal is missed.
    signals::listen(&sender)?;
    let job = job::LaunchedJob::start(flags, &sender)?;
    Ok(job.wait(&events))
}

/// The events that the launcher waits for.
pub(crate) enum Event {
    /// A signal came.
    Signal(i32),
    /// A stream of a rank is at its end.
    Closed,
}
