//! The processes of a job.

use std::io::{IsTerminal as _, Result, Write as _, copy, stderr, stdin, stdout};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Child, ChildStdin, ExitStatus, Stdio};
use std::sync::mpsc::Sender;
use std::thread;
use std::time::Instant;

use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, WaitOptions, getpgrp, kill_process_group, wait, waitid,
    waitpid,
};
use rustix::termios::tcgetpgrp;

use super::endings::Ending;
use super::environment::Environment;
use super::lines::relay;
use super::rank::arguments;
use super::{Event, LaunchedProgram};

/// The rank or the host of a process of the job.
#[derive(PartialEq, Eq)]
pub(super) enum ProcessName {
    /// The rank with this number in its job.
    Rank(u32),
    /// The host with this name.
    Host(String),
}

/// The agent of a host, whose input goes to the host's launcher.
pub(super) struct Agent {
    input: ChildStdin,
    /// Whether the host's launcher was told to end its ranks by SIGKILL.
    killed: bool,
}

impl Agent {
    pub(super) fn new(input: ChildStdin) -> Self {
        Self { input, killed: false }
    }

    /// Has the host's launcher signal its ranks. Returns false where it was told to kill them before, and is still there.
    fn pass_on(&mut self, signal: Signal) -> bool {
        if self.killed && signal == Signal::KILL {
            return false;
        }
        self.killed |= signal == Signal::KILL;
        // A launcher that has ended has no ranks left.
        _ = self.input.write_all(&[signal.as_raw() as u8]);
        true
    }
}

/// A process that the launcher starts: a rank, or the agent of a host.
pub(super) struct JobProcess {
    pub(super) name: ProcessName,
    /// The id of the process, and of the group that it leads.
    pub(super) pid: Pid,
    agent: Option<Agent>,
    pub(super) ending: Option<Ending>,
    /// The signal with which the launcher ended it.
    pub(super) ended_by: Option<Signal>,
    /// The time until which processes that it left in its group may take to end, if there are any.
    pub(super) left: Option<Instant>,
}

impl JobProcess {
    /// A process that was just started, which leads its group.
    pub(super) fn new(name: ProcessName, pid: Pid, agent: Option<Agent>) -> Self {
        Self { name, pid, agent, ending: None, ended_by: None, left: None }
    }

    /// Signals the rank and its children, or all of the host. It must not have been reaped.
    pub(super) fn signal(&mut self, by: Signal) {
        if !self.agent.as_mut().is_some_and(|agent| agent.pass_on(by)) {
            signal_group(self.pid, by);
        }
    }

    /// Whether it is a host that was told to end by SIGKILL, and may not hear that.
    pub(super) fn may_be_deaf(&self) -> bool {
        self.agent.is_some() && self.ended_by == Some(Signal::KILL) && self.ending.is_none()
    }
}

/// Starts the process of a rank, which leads a group. The kernel kills it when the thread ends that calls this.
pub(super) fn start(
    asked: &LaunchedProgram,
    rank: u32,
    environment: &Environment,
    events: &Sender<Event>,
) -> Result<JobProcess> {
    let mut command = environment.command(rank);
    command.process_group(0).args(arguments(rank)).args(&asked.command);
    let led = asked.is_led();
    let typed = rank == 0 && !led && is_typed();
    command.stdin(match rank {
        // The launcher of all hosts has it.
        0 if led => Stdio::null(),
        0 if typed => Stdio::piped(),
        0 => Stdio::inherit(),
        _ => Stdio::null(),
    });
    if asked.prefix {
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
    }
    let mut child = command.spawn()?;
    let pid = Pid::from_child(&child);
    let number = rank + asked.part.as_ref().map_or(0, |part| part.first);
    let attached = attach(&mut child, number, events);
    if attached.is_err() {
        signal_group(pid, Signal::KILL);
        child.wait()?;
    }
    attached.map(|()| JobProcess::new(ProcessName::Rank(number), pid, None))
}

/// Whether standard input is a terminal that this process may read. A rank may not: only one group of processes at a
/// time may, and that is the launcher's.
fn is_typed() -> bool {
    stdin().is_terminal() && tcgetpgrp(stdin()).is_ok_and(|group| group == getpgrp())
}

/// Serves the pipes of a rank.
fn attach(child: &mut Child, rank: u32, events: &Sender<Event>) -> Result<()> {
    if let Some(mut to) = child.stdin.take() {
        // The thread ends with this process, or at the end of the input.
        thread::Builder::new().spawn(move || copy(&mut stdin().lock(), &mut to))?;
    }
    if let Some(from) = child.stdout.take() {
        relay(rank, from, stdout(), events)?;
    }
    if let Some(from) = child.stderr.take() {
        relay(rank, from, stderr(), events)?;
    }
    Ok(())
}

/// Signals a group of processes, one of which must not have been reaped.
pub(super) fn signal_group(group: Pid, signal: Signal) {
    // A group that has just ended needs no signal.
    let _ = kill_process_group(group, signal);
    if signal == Signal::TERM {
        // A stopped process would not see the signal.
        let _ = kill_process_group(group, Signal::CONT);
    }
}

/// Whether children of this process are in the group: none of them was reaped, so no other group has this number. A
/// process that a rank leaves behind is a child of this process, which adopts it.
pub(super) fn is_left(group: Pid) -> bool {
    let looked = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    waitid(WaitId::Pgid(Some(group)), looked).is_ok()
}

/// Reaps a process that has ended, if one has.
pub(super) fn reap() -> Option<(Pid, Ending)> {
    let (pid, status) = wait(WaitOptions::NOHANG).ok()??;
    Some((pid, ExitStatus::from_raw(status.as_raw()).into()))
}

/// Waits for the end of a process that was started.
pub(super) fn wait_for(pid: Pid) {
    // The process stays a zombie until it is waited for.
    let _ = waitpid(Some(pid), WaitOptions::empty());
}
