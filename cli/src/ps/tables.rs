//! Worlds as tables for a terminal.

use std::fmt::Write as _;

use roundelay_kernels::shared_memory::observe::{
    Observed, ObservedCall, ObservedRank, ObservedWorld, circles,
};
use roundelay_runner::hangs::{self, is_gone, ranks, since};

use super::{job, processes};
use crate::topo::{aligned, count};

/// The most characters of a command that are shown.
const COMMAND: usize = 72;

/// Returns the text about all worlds, with the last calls of each rank if `calls` says so.
pub(super) fn text(seen: &Observed, calls: bool) -> String {
    let mut text = String::new();
    // Writing to a string does not fail.
    if seen.worlds.is_empty() && seen.refused.is_empty() {
        text.push_str("no process of this user is a rank of a world on this host\n");
    }
    for circle in circles(&seen.worlds) {
        _ = writeln!(text, "{}", circle.text());
    }
    let mut last_job = None;
    for world in &seen.worlds {
        for line in hangs::lines(world) {
            _ = writeln!(text, "{line}");
        }
        if let Some(process) = job(world).filter(|process| last_job != Some(process.parent)) {
            last_job = Some(process.parent);
            let command = process.parent_command().unwrap_or_else(|| "it has ended".to_owned());
            _ = writeln!(text, "job {}: {}", process.parent, short(&command));
        }
        let mut commands = processes(world).map(|process| &process.command);
        let first = commands.next().filter(|first| commands.all(|command| command == *first));
        let of = first.map_or_else(String::new, |command| format!(" of {}", short(command)));
        _ = writeln!(text, "world {}: {}{of}", world.id, count(world.ranks.len(), "rank"));
        let titles = ["rank", "pid", "call", "what", "algorithm", "state", "since", "command"];
        let titles = titles.map(str::to_owned).to_vec();
        let rows = world.ranks.iter().map(|rank| row(world, rank));
        let mut rows: Vec<_> = std::iter::once(titles).chain(rows).collect();
        if first.is_some() {
            // The last column would be the same in each row.
            for row in &mut rows {
                row.truncate(row.len() - 1);
            }
        }
        aligned(&rows, &mut text);
        if calls {
            for rank in &world.ranks {
                last_calls(rank, &mut text);
            }
        }
        if world.unnamed > 0 {
            let names = count(world.unnamed as usize, "name");
            _ = writeln!(text, "  {names} of algorithms found no room in the world's memory");
        }
    }
    for refused in &seen.refused {
        _ = writeln!(text, "{refused}");
    }
    text
}

fn row(world: &ObservedWorld, rank: &ObservedRank) -> Vec<String> {
    let last = rank.calls.first().filter(|call| call.number == rank.number);
    let pid = rank.process.as_ref().map_or(rank.pid, |process| process.pid);
    let command = rank.process.as_ref().map_or("", |process| &process.command);
    let (state, time) = state(world, rank, last);
    vec![
        rank.name.to_string(),
        if pid == 0 { "?".to_owned() } else { pid.to_string() },
        rank.number.to_string(),
        last.map_or_else(|| "-".to_owned(), ObservedCall::text),
        last.and_then(|call| call.algorithm.clone()).unwrap_or_else(|| "-".to_owned()),
        state,
        time,
        short(command),
    ]
}

/// Returns what a rank does, and since when.
fn state(
    world: &ObservedWorld,
    rank: &ObservedRank,
    last: Option<&ObservedCall>,
) -> (String, String) {
    if let Some(how) = rank.left {
        return (how.to_owned(), String::new());
    }
    if is_gone(rank) {
        return ("gone".to_owned(), String::new());
    }
    let stopped = rank.process.as_ref().is_some_and(|process| process.stopped);
    let mut state = if stopped { "stopped, ".to_owned() } else { String::new() };
    let waits = rank.wait.as_ref();
    let time = match (waits, rank.in_call) {
        (Some(wait), _) => Some(wait.since),
        (None, true) => last.map(|call| call.since),
        (None, false) => last.and_then(|call| call.ended),
    };
    if let Some(wait) = waits {
        let on = wait.on.map(|on| world.ranks[on].name);
        let on = on.map_or_else(|| "other ranks".to_owned(), |on| ranks(&[on]));
        _ = write!(state, "waits for {on} ");
        if wait.number > rank.number {
            _ = write!(state, "before call {}, ", wait.number);
        }
    }
    if rank.in_call {
        state.push_str(&hangs::place(rank));
    } else {
        state.push_str(match (rank.on_gpu, rank.number) {
            (true, _) => "no long wait on its GPU",
            (false, 0) => "before its first call",
            (false, _) => "in no call",
        });
    }
    (state, time.map_or_else(String::new, since))
}

fn last_calls(rank: &ObservedRank, text: &mut String) {
    _ = writeln!(text, "  the last calls of rank {}:", rank.name);
    let row = |call: &ObservedCall| {
        let took = match call.ended {
            Some(ended) => format!("took {}", micro(call.since.saturating_sub(ended))),
            None if rank.on_gpu => "launched".to_owned(),
            None => "under way".to_owned(),
        };
        vec![
            format!("  {}", call.number),
            call.text(),
            call.algorithm.clone().unwrap_or_else(|| "-".to_owned()),
            format!("{} ago", since(call.since)),
            if call.failed { format!("{took}, failed") } else { took },
        ]
    };
    aligned(&rank.calls.iter().map(row).collect::<Vec<_>>(), text);
}

/// Returns a time that may be short.
fn micro(time: std::time::Duration) -> String {
    match time.as_micros() {
        0..1000 => format!("{:.1} us", time.as_secs_f64() * 1e6),
        _ => since(time),
    }
}

/// Returns the beginning of a command.
fn short(command: &str) -> String {
    let mut short: String = command.chars().take(COMMAND).collect();
    if short.len() < command.len() {
        short.push('…');
    }
    short
}
