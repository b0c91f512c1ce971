//! The ending of a job, in one line.

use std::iter;
use std::time::Duration;

use roundelay_core::expansion::ranges;
use rustix::process::Signal;
use signal_hook::low_level::signal_name;

use super::endings::Ending;
use super::processes::RankProcess;

/// The first reason why a job does not end well.
#[derive(Clone, Copy)]
pub(super) enum Cause {
    /// This rank failed.
    Failed(usize),
    /// The job took longer than this.
    Late(Duration),
    /// The launcher was told to end by this signal.
    Asked(i32),
}

/// Returns the line about the endings of the ranks.
pub(super) fn told(cause: Cause, ranks: &[RankProcess]) -> String {
    let what = match cause {
        Cause::Failed(rank) => {
            format!("{} first: {}", failed(rank, ranks), how(ranks[rank].ending))
        }
        Cause::Late(timeout) => format!("the job took longer than {timeout:?}"),
        Cause::Asked(signal) => format!("the launcher was sent {}", name(signal)),
    };
    let which = |chosen: &dyn Fn(usize, &RankProcess) -> bool| -> Vec<u32> {
        let all = ranks.iter().enumerate();
        all.filter(|(at, rank)| chosen(*at, rank)).map(|(_, rank)| rank.number).collect()
    };
    let ended = |by| which(&|_, rank| rank.ended_by == Some(by));
    let first = match cause {
        Cause::Failed(rank) => Some(rank),
        _ => None,
    };
    let others = which(&|at, rank| {
        rank.ended_by.is_none() && rank.ending != Some(Ending::Exit(0)) && first != Some(at)
    });
    let others = [
        ("failed after that", others),
        ("ended by SIGTERM", ended(Signal::TERM)),
        ("ended by SIGKILL", ended(Signal::KILL)),
    ];
    let others = others.iter().filter(|(_, which)| !which.is_empty()).map(|(what, which)| {
        let rank = if which.len() == 1 { "rank" } else { "ranks" };
        format!("{what}: {rank} {}", ranges(which))
    });
    let line = iter::once(what).chain(others).collect::<Vec<_>>().join("; ");
    format!("\x1b[1;91merror\x1b[0m\x1b[1m: {line}\x1b[0m")
}

/// Returns the line about a rank that failed, where the other ranks go on.
pub(super) fn told_of_one(rank: usize, ranks: &[RankProcess]) -> String {
    let (failed, how) = (failed(rank, ranks), how(ranks[rank].ending));
    format!("\x1b[1;93mwarning\x1b[0m\x1b[1m: {failed}: {how}; the others go on\x1b[0m")
}

fn failed(rank: usize, ranks: &[RankProcess]) -> String {
    format!("rank {} (pid {}) failed", ranks[rank].number, ranks[rank].pid)
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
