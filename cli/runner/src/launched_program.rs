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
    /// Whether another launcher started this one: then standard input has the key of the job and signals, which end when
    /// that launcher does, and no rank reads it.
    pub led: bool,
}

/// The ranks of a host, in a job that one launcher starts on several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostRanks {
    /// The name of the host, as the agent and the other hosts know it.
    pub name: String,
    /// The number of its ranks.
    pub nranks: u32,
}

/// The hosts of a job that one launcher starts.
#[derive(Clone, Debug)]
pub struct JobHosts {
    /// The hosts, in the order of their ranks.
    pub hosts: Vec<HostRanks>,
    /// The program that starts a line of a shell on a host, and its first arguments; the host and the line follow.
    pub agent: Vec<String>,
    /// The port of the first host at which all ranks meet; one is drawn if there is none.
    pub port: Option<u16>,
    /// Variables that all ranks have, beside those of this process whose names begin with `ROUNDELAY_`.
    pub variables: Vec<(String, OsString)>,
}

/// A program that is started as all ranks of a job, or as those of this host.
pub struct LaunchedProgram {
    /// The number of ranks that are started.
    pub nranks: u32,
    /// The place of these ranks, where there are more on other hosts.
    pub part: Option<PartOfJob>,
    /// The hosts on which ranks are started; this one alone if there are none.
    pub hosts: Option<JobHosts>,
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

impl LaunchedProgram {
    /// Whether another launcher, of all hosts, started this one.
    pub fn is_led(&self) -> bool {
        self.part.as_ref().is_some_and(|part| part.led)
    }
}

impl fmt::Debug for LaunchedProgram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LaunchedProgram").field("command", &self.command).finish_non_exhaustive()
    }
}
