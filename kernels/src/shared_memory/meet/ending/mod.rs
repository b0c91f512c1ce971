//! Checks that the processes of other ranks are alive, and how they ended.

mod info;
mod launcher;

use std::os::fd::OwnedFd;
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

pub(crate) use self::launcher::Endings;
use super::system::refused;
use crate::Error;

/// The process of a rank.
#[derive(Debug)]
pub(crate) struct Peer {
    /// The process id in the pid namespace of the process.
    pub(crate) pid: u32,
    /// A descriptor of the process, which becomes readable when the process ends.
    pub(crate) pidfd: OwnedFd,
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    /// The process exited with this code.
    Exited(u32),
    /// A signal with this number killed the process.
    Killed(u32),
}

/// How long the launcher may take to report how a rank ended.
const LAUNCHER: Duration = Duration::from_millis(50);
/// How long the parent of a rank may take to reap it: before that the kernel does not report how it ended.
const KERNEL: Duration = Duration::from_millis(20);

/// Returns for each rank whether its process has ended; always false for `me`. The check costs one system call.
pub(crate) fn ended(peers: &[Peer], me: usize) -> Result<Vec<bool>, Error> {
    let mut fds: Vec<_> =
        peers.iter().map(|peer| PollFd::new(&peer.pidfd, PollFlags::IN)).collect();
    loop {
        match poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })) {
            Ok(_) => break,
            Err(Errno::INTR) => {}
            Err(errno) => {
                return Err(refused("to look after the processes of ranks (poll)", errno));
            }
        }
    }
    let signs = PollFlags::IN | PollFlags::HUP;
    Ok(fds
        .iter()
        .enumerate()
        .map(|(rank, fd)| rank != me && fd.revents().intersects(signs))
        .collect())
}

/// Returns how the process of a rank ended, for a process that [`ended`] has found, to follow "the process of rank 3".
/// Waits a little for the launcher and the kernel to report it.
pub(crate) fn how(rank: usize, peer: &Peer, endings: Option<&Endings>) -> String {
    let told = endings.and_then(|endings| patiently(LAUNCHER, || endings.of(rank)));
    match told.or_else(|| patiently(KERNEL, || info::ending(&peer.pidfd))) {
        Some(Ending::Exited(code)) => format!("exited with code {code}"),
        Some(Ending::Killed(signal)) => match name(signal) {
            Some(name) => format!("was killed by signal {signal} ({name})"),
            None => format!("was killed by signal {signal}"),
        },
        None => "ended".to_owned(),
    }
}

/// Calls `ask` until it returns an answer, for `at_most` at most.
fn patiently<T>(at_most: Duration, mut ask: impl FnMut() -> Option<T>) -> Option<T> {
    let start = Instant::now();
    loop {
        let answer = ask();
        if answer.is_some() || start.elapsed() >= at_most {
            return answer;
        }
        thread::sleep(Duration::from_millis(1));
    }
}

/// Returns the name of a signal, for signals with equal numbers on all relevant machines.
fn name(signal: u32) -> Option<&'static str> {
    let name = match signal {
        1 => "SIGHUP",
        2 => "SIGINT",
        3 => "SIGQUIT",
        4 => "SIGILL",
        5 => "SIGTRAP",
        6 => "SIGABRT",
        7 => "SIGBUS",
        8 => "SIGFPE",
        9 => "SIGKILL",
        10 => "SIGUSR1",
        11 => "SIGSEGV",
        12 => "SIGUSR2",
        13 => "SIGPIPE",
        14 => "SIGALRM",
        15 => "SIGTERM",
        24 => "SIGXCPU",
        25 => "SIGXFSZ",
        31 => "SIGSYS",
        _ => return None,
    };
    Some(name)
}

#[cfg(test)]
mod tests;
