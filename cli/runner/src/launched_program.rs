//! The job that a launcher is asked for, on every system.

use std::ffi::OsString;
use std::fmt;
use std::time::Duration;

/// A program that is started as all ranks of a job.
pub struct LaunchedProgram {
    /// The number of ranks.
    pub nranks: u32,
    /// The time that the job may take.
    pub timeout: Option<Duration>,
    /// The time that ranks may go on after another failed or after they were told to end.
    pub grace: Duration,
    /// Whether the other ranks go on where one failed.
    pub keep_going: bool,
    /// Whether each line of a rank begins with its number.
    pub prefix: bool,
    /// The program and its arguments.
    pub command: Vec<OsString>,
    /// Says a line about the job.
    pub say: fn(String),
}

impl fmt::Debug for LaunchedProgram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LaunchedProgram").field("command", &self.command).finish_non_exhaustive()
    }
}
