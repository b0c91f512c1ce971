//! The launcher on systems where ranks cannot be processes: all is refused.

use std::convert::Infallible;
use std::process::{ChildStdin, ChildStdout};

use roundelay_core::diagnostics::Code;

use crate::error::RunError;
pub use crate::launched_program::{HostRanks, JobHosts, LaunchedProgram, PartOfJob};

/// Refuses the job.
///
/// # Errors
/// Always.
pub fn run(_: &LaunchedProgram) -> Result<u8, RunError> {
    let title = "`roundelay launch` starts processes on Linux only";
    Err(RunError::usage(Code::SystemRefused, title))
}

/// No process was started to become a rank.
pub fn become_rank(_: fn(RunError) -> u8) -> Option<u8> {
    None
}

/// Refuses to tie this process to another.
///
/// # Errors
/// Always.
pub fn tie_to(_: i32) -> Result<(), Option<RunError>> {
    Err(Some(refused()))
}

fn refused() -> RunError {
    let title = "--callers processes starts processes on Linux only";
    RunError::usage(Code::SystemRefused, title)
        .with_help("--callers each has a thread for each rank")
}

/// The starter of the processes of ranks, which cannot be made.
#[derive(Debug)]
pub struct Children(Infallible);

/// A process of a rank, which cannot be.
#[derive(Debug)]
pub struct Child(Infallible);

impl Children {
    /// Refuses ranks as processes.
    ///
    /// # Errors
    /// Always.
    pub fn new(_: u32) -> Result<Self, RunError> {
        Err(refused())
    }

    /// Starts a rank, where there could be one.
    ///
    /// # Errors
    /// None: there is no value of this type.
    pub fn start(
        &self,
        _: u32,
        _: &[String],
    ) -> Result<(ChildStdin, ChildStdout, Child), RunError> {
        match self.0 {}
    }
}

impl Child {
    /// Has the process end.
    pub fn kill(&self) {
        match self.0 {}
    }

    /// Has the process end, and says how it did.
    pub fn end(&mut self) -> String {
        match self.0 {}
    }
}
