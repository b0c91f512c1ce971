//! The launcher of ranks: processes of this host, each of which knows its place among the ranks and ends when the process
//! that started it ends.
//!
//! [`run`] starts a program as all ranks and waits for the end of the job. Where the job has several hosts, it starts a launcher
//! on each of them. [`Children`] are processes of the caller's own
//! program, which answer it through pipes. A terminal's keys reach the launcher alone, which forwards the signals.

mod children;
mod endings;
mod environment;
mod hosts;
mod job;
mod job_end;
mod job_program;
mod lines;
mod processes;
mod rank;
mod signals;

use crate::error::RunError;

pub use crate::launched_program::{HostRanks, JobHosts, LaunchedProgram, PartOfJob};
pub use children::{Child, Children};
pub use endings::Ending;
pub(crate) use hosts::is_this_host;
pub use rank::{become_rank, tie_to};
pub use signals::listen;

/// Runs the job, and returns its exit code.
///
/// # Errors
/// A program that no rank can become, and what the system refuses.
pub fn run(asked: &LaunchedProgram) -> Result<u8, RunError> {
    match &asked.hosts {
        // The launchers of the hosts look for the program.
        Some(hosts) => job_program::find(hosts.agent[0].as_ref())?,
        None => job_program::find(&asked.command[0])?,
    }
    let (sender, events) = std::sync::mpsc::channel();
    // Before ranks are started, so that no signal is missed.
    signals::listen(&sender)?;
    let job = job::LaunchedJob::start(asked, &sender)?;
    Ok(job.wait(&events))
}

/// The events that the launcher waits for.
#[derive(Debug)]
pub enum Event {
    /// A signal came.
    Signal(i32),
    /// A stream of a rank is at its end.
    Closed,
}
