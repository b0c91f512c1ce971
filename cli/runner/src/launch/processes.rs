//! The processes of a job.

use std::io::{IsTerminal as _, Result, copy, stderr, stdin, stdout};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Child, ExitStatus, Stdio};
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

pub(super) struct RankProcess {
    /// The rank's number in its job.
    pub(super) number: u32,
    /// The id of the rank's process, and of the group that it leads.
    pub(super) pid: Pid,
    pub(super) ending: Option<Ending>,
    /// The signal with which the launcher ended it.
    pub(super) ended_by: Option<Signal>,
    /// The time until which processes that the rank left in its group may take to end, if there are any.
    pub(super) left: Option<Instant>,
}

/// Starts the process of a rank, which leads a group. The kernel kills it when the thread ends that calls this.
pub(super) fn start(
    asked: &LaunchedProgram,
    rank: u32,
    environment: &Environment,
    events: &Sender<Event>,
) -> Result<RankProcess> {
    let mut command = environment.command(rank);
    command.process_group(0).args(arguments(rank)).args(&asked.command);
    let typed = rank == 0 && is_typed();
    command.stdin(match rank {
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
        signal(pid, Signal::KILL);
        child.wait()?;
    }
    attached.map(|()| RankProcess { number, pid, ending: None, ended_by: None, left: None })
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

/// Signals a rank's process group. The group must have a process that has not been reaped.
pub(super) fn signal(group: Pid, signal: Signal) {
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
