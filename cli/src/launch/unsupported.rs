//! `roundelay launch`, and processes that answer, on systems where ranks cannot be processes: both are refused.

use std::convert::Infallible;
use std::process::{ChildStdin, ChildStdout};

use roundelay_core::diagnostics::Code;

use crate::report::Failure;

#[allow(dead_code, reason = "no process is started")]
mod flags;

pub(crate) use flags::LaunchFlags;

pub(crate) fn main(_: &LaunchFlags) -> Result<u8, Failure> {
    let title = "`roundelay launch` starts processes on Linux only";
    Err(Failure::usage(Code::SystemRefused, title))
}

/// No process was started to become a rank.
pub(crate) fn become_rank() -> Option<u8> {
    None
}

pub(crate) fn tie_to(_: i32) -> Result<(), u8> {
    Err(refused().print())
}

fn refused() -> Failure {
    let title = "--callers processes starts processes on Linux only";
    Failure::usage(Code::SystemRefused, title)
        .with_help("--callers each has a thread for each rank")
}

pub(crate) struct Children(Infallible);

pub(crate) struct Child(Infallible);

impl Children {
    pub(crate) fn new(_: u32) -> Result<Self, Failure> {
        Err(refused())
    }

    pub(crate) fn start(
        &self,
        _: u32,
        _: &[String],
    ) -> Result<(ChildStdin, ChildStdout, Child), Failure> {
        match self.0 {}
    }
}

impl Child {
    pub(crate) fn kill(&self) {
        match self.0 {}
    }

    pub(crate) fn end(&mut self) -> String {
        match self.0 {}
    }
}
