//! The ending of a job, in one line.

use std::iter;
use std::time::Duration;

use roundelay_core::expansion::ranges;
use rustix::process::Signal;
use signal_hook::low_level::signal_name;

use super::endings::Ending;
use super::processes::{JobProcess, ProcessName};

/// The first reason why a job does not end well.
#[derive(Clone, Copy)]
pub(super) enum Cause {
    /// This process failed.
    Failed(usize),
    /// The job took longer than this.
    Late(Duration),
    /// The launcher was told to end by this signal.
    Asked(i32),
}

/// Returns the line about the endings of all processes.
pub(super) fn told(cause: Cause, all: &[JobProcess]) -> String {
    let what = match cause {
        Cause::Failed(first) => {
            format!("{} first: {}", failed(&all[first]), how(all[first].ending))
        }
        Cause::Late(timeout) => format!("the job took longer than {timeout:?}"),
        Cause::Asked(signal) => format!("the launcher was sent {}", name(signal)),
    };
    let which = |chosen: &dyn Fn(usize, &JobProcess) -> bool| -> Vec<&ProcessName> {
        let all = all.iter().enumerate();
        all.filter(|(at, process)| chosen(*at, process)).map(|(_, process)| &process.name).collect()
    };
    let ended = |by| which(&|_, process| process.ended_by == Some(by));
    let first = match cause {
        Cause::Failed(first) => Some(first),
        _ => None,
    };
    let others = which(&|at, process| {
        process.ended_by.is_none() && process.ending != Some(Ending::Exit(0)) && first != Some(at)
    });
    let others = [
        ("failed after that", others),
        ("ended by SIGTERM", ended(Signal::TERM)),
        ("ended by SIGKILL", ended(Signal::KILL)),
    ];
    let others = others.iter().filter(|(_, which)| !which.is_empty());
    let others = others.map(|(what, which)| format!("{what}: {}", list(which)));
    let line = iter::once(what).chain(others).collect::<Vec<_>>().join("; ");
    format!("\x1b[1;91merror\x1b[0m\x1b[1m: {line}\x1b[0m")
}

/// Returns the line about a process that failed, where the others go on.
pub(super) fn told_of_one(one: &JobProcess) -> String {
    let (failed, how) = (failed(one), how(one.ending));
    format!("\x1b[1;93mwarning\x1b[0m\x1b[1m: {failed}: {how}; the others go on\x1b[0m")
}

fn failed(one: &JobProcess) -> String {
    match &one.name {
        ProcessName::Rank(rank) => format!("rank {rank} (pid {}) failed", one.pid),
        ProcessName::Host(host) => format!("host {host} failed"),
    }
}

/// Returns the names of processes, which are all ranks or all hosts.
fn list(names: &[&ProcessName]) -> String {
    let (mut ranks, mut hosts) = (Vec::new(), Vec::new());
    for name in names {
        match name {
            ProcessName::Rank(rank) => ranks.push(*rank),
            ProcessName::Host(host) => hosts.push(&**host),
        }
    }
    let s = if names.len() == 1 { "" } else { "s" };
    if hosts.is_empty() {
        format!("rank{s} {}", ranges(&ranks))
    } else {
        format!("host{s} {}", hosts.join(", "))
    }
}

fn how(ending: Option<Ending>) -> String {
    match ending {
        Some(Ending::Exit(code)) => format!("exit code {code}"),
        Some(Ending::Signal(signal)) => name(signal),
        None => "it runs".to_owned(),
    }
}

fn name(signal: i32) -> String {
    signal_name(signal).map_or_else(|| format!("signal {signal}"), str::to_owned)
}
