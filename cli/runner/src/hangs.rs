//! The causes of hangs, in one line each.

use std::collections::BTreeMap;
use std::time::Duration;

use roundelay_kernels::shared_memory::observe::{ObservedCall, ObservedRank, ObservedWorld};

/// A wait that is shorter is no news.
const LONG: Duration = Duration::from_secs(1);

/// Returns a line for each rank for which other ranks have waited for long, and one for the failure of the world.
pub fn lines(world: &ObservedWorld) -> Vec<String> {
    if let Some(why) = &world.failure {
        return vec![format!("the world has failed: {why}")];
    }
    // The waiting ranks, by the last rank of the chain of waits that begins with them.
    let mut waiting: BTreeMap<Option<usize>, Vec<usize>> = BTreeMap::new();
    for (at, rank) in world.ranks.iter().enumerate() {
        if rank.wait.as_ref().is_some_and(|wait| wait.since >= LONG) {
            waiting.entry(last_of_chain(world, at)).or_default().push(at);
        }
    }
    let gone = world.ranks.iter().enumerate().filter(|(_, rank)| is_gone(rank));
    for (at, _) in gone {
        waiting.entry(Some(at)).or_default();
    }
    waiting.iter().map(|(on, ranks)| line(world, *on, ranks)).collect()
}

/// Whether a rank's process has ended without leaving the world.
pub fn is_gone(rank: &ObservedRank) -> bool {
    rank.process.is_none() && rank.left.is_none() && rank.pid != 0
}

/// Returns the last rank of the chain of waits that begins with a rank; `None` for a rank that waits for no single one,
/// and for ranks that wait for each other.
fn last_of_chain(world: &ObservedWorld, from: usize) -> Option<usize> {
    let next = |at: usize| world.ranks[at].wait.as_ref().and_then(|wait| wait.on);
    let mut at = next(from)?;
    for _ in 0..world.ranks.len() {
        match next(at) {
            Some(on) => at = on,
            None => return Some(at),
        }
    }
    None
}

fn line(world: &ObservedWorld, on: Option<usize>, waiting: &[usize]) -> String {
    let waits = waiting.iter().filter_map(|at| world.ranks[*at].wait.as_ref());
    let longest = waits.clone().map(|wait| wait.since).max().unwrap_or_default();
    let names: Vec<u32> = waiting.iter().map(|at| world.ranks[*at].name).collect();
    let (ranks, verb) = (ranks(&names), if names.len() == 1 { "waits" } else { "wait" });
    let since = since(longest);
    let Some(on) = on else {
        return format!("{ranks} {verb} for more than one rank, or for each other, since {since}");
    };
    let state = state(world, &world.ranks[on], waits.map(|wait| wait.missing).max().unwrap_or(0));
    match waiting {
        [] => state,
        _ => format!("{state}; {ranks} {verb} for it since {since}"),
    }
}

/// Returns what a rank does for which other ranks wait, at most for its call `missing`.
fn state(world: &ObservedWorld, rank: &ObservedRank, missing: u64) -> String {
    let call = |number: u64| {
        let calls = world.ranks.iter().flat_map(|rank| &rank.calls);
        let mut same = calls.into_iter().filter(|call| call.number == number);
        // Another rank may not keep the places from which its calls come.
        let first = same.next();
        let call = first
            .filter(|call| call.site.is_some())
            .or_else(|| same.find(|call| call.site.is_some()));
        let name = call.or(first).map(ObservedCall::text);
        name.map_or_else(|| format!("call {number}"), |name| format!("call {number} ({name})"))
    };
    let process = rank.process.as_ref().map_or(rank.pid, |process| process.pid);
    let who = format!("rank {} (process {process})", rank.name);
    let stopped = match &rank.process {
        Some(process) if process.stopped => " is stopped, and",
        _ => "",
    };
    if let Some(how) = rank.left {
        return format!("{who} {how}");
    }
    if is_gone(rank) {
        return format!("{who} is gone: it has ended, or cannot be looked at");
    }
    if rank.in_call {
        return format!("{who}{stopped} is in {} {}", call(rank.number), place(rank));
    }
    match missing {
        0 if rank.on_gpu => format!("{who}{stopped} has no long wait on its GPU"),
        0 => format!("{who}{stopped} is in no call"),
        _ => format!("{who}{stopped} has not made {}", call(rank.number.saturating_add(1))),
    }
}

/// Returns the place of a rank in its call, as words.
pub fn place(rank: &ObservedRank) -> String {
    match (rank.step, &rank.place) {
        (None, _) => "at the start".to_owned(),
        (Some(step), None) => format!("at step {step}"),
        (Some(step), Some(place)) => format!("at step {step} ({place})"),
    }
}

/// Returns ranks in words, such as `ranks 0-4, 6 and 7`.
pub fn ranks(names: &[u32]) -> String {
    let mut runs: Vec<[u32; 2]> = Vec::new();
    for name in names {
        match runs.last_mut() {
            Some([_, last]) if last.checked_add(1) == Some(*name) => *last = *name,
            _ => runs.push([*name; 2]),
        }
    }
    let words = runs.iter().flat_map(|[first, last]| match last - first {
        0 => vec![first.to_string()],
        1 => vec![first.to_string(), last.to_string()],
        _ => vec![format!("{first}-{last}")],
    });
    match &words.collect::<Vec<_>>()[..] {
        [one] if names.len() == 1 => format!("rank {one}"),
        [some @ .., last] if !some.is_empty() => format!("ranks {} and {last}", some.join(", ")),
        words => format!("ranks {}", words.concat()),
    }
}

/// Returns a time as words.
pub fn since(time: Duration) -> String {
    match time.as_secs() {
        0 => format!("{:.1} ms", time.as_secs_f64() * 1e3),
        1..10 => format!("{:.1} s", time.as_secs_f64()),
        seconds @ 10..600 => format!("{seconds} s"),
        seconds @ 600..36_000 => format!("{} min", seconds / 60),
        seconds => format!("{} h", seconds / 3600),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_told_in_runs() {
        assert_eq!(ranks(&[3]), "rank 3");
        assert_eq!(ranks(&[0, 1]), "ranks 0 and 1");
        assert_eq!(ranks(&[0, 1, 2]), "ranks 0-2");
        assert_eq!(ranks(&[0, 1, 2, 3, 4, 6, 7]), "ranks 0-4, 6 and 7");
        assert_eq!(ranks(&[u32::MAX, 0]), format!("ranks {} and 0", u32::MAX));
    }

    #[test]
    fn times_are_told_as_exactly_as_they_matter() {
        let told = [3, 1500, 12_900, 700_000, 90_000_000].map(Duration::from_millis).map(since);
        assert_eq!(told, ["3.0 ms", "1.5 s", "12 s", "11 min", "25 h"]);
    }
}
