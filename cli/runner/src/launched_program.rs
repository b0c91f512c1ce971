//! The job that a launcher is asked for, on every system.

use std::ffi::OsString;
use std::fmt;
use std::time::Duration;

/// The place of a host's ranks in a job of several hosts, on each of which a launcher starts some ranks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartOfJob {
    /// The address at which rank 0 listens, and all ranks meet: `host:port`.
    pub root: String,
    /// The number of the host's first rank.
    pub first: u32,
    /// The number of ranks of all hosts.
    pub of: u32,
}

/// A program that is started as all ranks of a job, or as those of this host.
pub struct LaunchedProgram {
    /// The number of ranks that are started.
    pub nranks: u32,
    /// The place of these ranks, where there are more on other hosts.
    pub part: Option<PartOfJob>,
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
