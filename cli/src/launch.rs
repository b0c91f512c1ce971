//! `roundelay launch`: one program as several processes, each of them a rank. A terminal's keys reach the launcher alone,
//! which forwards the signals.

use std::ffi::OsString;
use std::time::Duration;

use clap::Args;
use roundelay_core::diagnostics::Code;
use roundelay_runner::launch::{self, LaunchedProgram, PartOfJob};

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
    /// Where ranks of several hosts meet, as HOST:PORT: rank 0 listens there, and each host has its own launch
    #[arg(long, value_name = "HOST:PORT", requires_all = ["first", "of"])]
    root: Option<String>,
    /// The number of this host's first rank
    #[arg(long, value_name = "RANK", requires = "root")]
    first: Option<u32>,
    /// The number of ranks of all hosts
    #[arg(long, value_name = "RANKS", requires = "root")]
    of: Option<u32>,
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
    let part = flags.part()?;
    self_call::alone()?;
    Ok(launch::run(&LaunchedProgram {
        nranks: flags.nranks,
        part,
        timeout: flags.timeout,
        grace: flags.grace,
        keep_going: flags.keep_going,
        prefix: flags.prefix,
        command: flags.command.clone(),
        say: |line| say(line),
    })?)
}

impl LaunchFlags {
    /// Returns the place of this host's ranks, if there are more on other hosts.
    fn part(&self) -> Result<Option<PartOfJob>, Failure> {
        let (Some(root), Some(first), Some(of)) = (&self.root, self.first, self.of) else {
            return Ok(None);
        };
        let wrong = |title: String, help: &str| {
            Err(Failure::usage(Code::BadFlag, title).with_help(help.to_owned()))
        };
        let port = root.rsplit_once(':').and_then(|(_, port)| port.parse::<u16>().ok());
        if port.is_none_or(|port| port == 0) {
            return wrong(
                format!("`--root {root}` names no port"),
                "name a host and a port of it that is free, such as node1:7000",
            );
        }
        if first.checked_add(self.nranks).is_none_or(|end| end > of) {
            let last = u64::from(first) + u64::from(self.nranks) - 1;
            return wrong(
                format!("`--of {of}` has no ranks {first} to {last}"),
                "ranks count from 0, and --of is the number of all of them",
            );
        }
        if std::env::var_os("ROUNDELAY_KEY_FILE").is_none()
            && std::env::var_os("ROUNDELAY_KEY").is_none()
        {
            return wrong(
                "ranks of several hosts need the key of their job, and ROUNDELAY_KEY_FILE is not set".to_owned(),
                "write 64 hexadecimal digits into a file that you alone can read (`openssl rand -hex 32`), on every host, and name it",
            );
        }
        Ok(Some(PartOfJob { root: root.clone(), first, of }))
    }
}
