//! Processes of this command that are ranks and answer it: each has a pipe for questions, and one for its answers.

use std::os::fd::OwnedFd;
use std::process::{ChildStdin, ChildStdout, ExitStatus, Stdio};
use std::thread::{self, JoinHandle};
use std::{io, process};

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::endings::{Ending, Endings};
use super::environment::{Environment, not_started};
use crate::again;
use crate::error::RunError;

/// The starter of the processes of ranks.
pub struct Children(Environment);

/// A process of a rank. The kernel kills it when the thread that started it ends.
pub struct Child {
    process: OwnedFd,
    /// Waits for its end.
    watcher: Option<JoinHandle<io::Result<ExitStatus>>>,
}

impl Children {
    /// Makes the resources for `nranks` ranks.
    pub fn new(nranks: u32) -> Result<Self, RunError> {
        Ok(Self(Environment::new(nranks, None)?))
    }

    /// Starts a rank: this command with `arguments`, and then its own.
    pub fn start(
        &self,
        rank: u32,
        arguments: &[String],
    ) -> Result<(ChildStdin, ChildStdout, Child), RunError> {
        self.spawn(rank, arguments).map_err(|error| not_started(rank, &error))
    }

    fn spawn(
        &self,
        rank: u32,
        arguments: &[String],
    ) -> io::Result<(ChildStdin, ChildStdout, Child)> {
        let mut command = self.0.command(rank);
        // These ranks send their records to this command.
        command.env_remove("ROUNDELAY_TRACE");
        command.args(arguments).args(again::args());
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn()?;
        let asks = child.stdin.take().expect("a pipe");
        let answers = child.stdout.take().expect("a pipe");
        let process = match pidfd_open(Pid::from_child(&child), PidfdFlags::empty()) {
            Ok(process) => process,
            Err(errno) => {
                // The process ends when its pipe for questions closes.
                drop(asks);
                child.wait()?;
                return Err(errno.into());
            }
        };
        let endings = self.0.endings.clone();
        let watched = move || watch(child, rank as usize, &endings);
        let watcher = Some(thread::Builder::new().stack_size(1 << 16).spawn(watched)?);
        Ok((asks, answers, Child { process, watcher }))
    }
}

impl Child {
    /// Has it end, unless it has ended.
    pub fn kill(&self) {
        let _ = pidfd_send_signal(&self.process, Signal::KILL);
    }

    /// Has it end, unless it has ended, waits for that, and says how it did.
    pub fn end(&mut self) -> String {
        self.kill();
        let status = self.watcher.take().and_then(|watcher| watcher.join().ok()?.ok());
        match status.map(Ending::from) {
            Some(Ending::Exit(code)) => format!("exited with code {code}"),
            Some(Ending::Signal(signal)) => format!("was killed by signal {signal}"),
            None => "ended".to_owned(),
        }
    }
}

/// Waits for the end of a rank, and writes to the shared memory how it ended, which tells the other ranks.
fn watch(mut child: process::Child, rank: usize, endings: &Endings) -> io::Result<ExitStatus> {
    let status = child.wait()?;
    endings.write(rank, status.into())?;
    Ok(status)
}
