//! Circles of waits over several worlds: each process waits for a call of the next one, which waits in another world.
//! Processes get there that call on two groups in crossed order.
//!
//! Every wait in a circle needs a call that its rank has not made. So where each process has one thread, which is the
//! thread that waits, and runs no function of the caller's meanwhile, no process can make its call: the circle is a
//! deadlock. A process with more threads may have one that makes the call, now or later.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::os::unix::fs::MetadataExt as _;

use super::process::{ARENA, paths};
use super::{ObservedCall, ObservedWorld, map, of_process};
use crate::shared_memory::world::failure::{self, Cause};
use crate::shared_memory::world::memory::arena::Arena;
use crate::shared_memory::world::memory::shared_state::SharedState;
use roundelay_core::ids::RankId;

/// A wait of a process for a call of another process.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Link {
    world: u64,
    /// The processes of the ranks of the world.
    members: Vec<u32>,
    /// The process that waits, the name of its rank, and the number and the words of its call.
    pid: u32,
    rank: u32,
    number: u64,
    call: String,
    /// The process that is waited for, its place and name in the world, and the number of the call that it has not
    /// made.
    on: u32,
    on_at: usize,
    on_rank: u32,
    missing: u64,
    /// The moment at which the wait began.
    since: u64,
    /// Whether only the thread that waits could make calls of the process.
    alone: bool,
}

/// Waits of processes for each other: each waits for the next one, the last one for the first.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Circle(Vec<Link>);

impl Circle {
    /// Whether none of the waits can end.
    pub fn is_certain(&self) -> bool {
        self.0.iter().all(|link| link.alone)
    }

    /// Returns the circle in words.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for (at, link) in self.0.iter().enumerate() {
            let Link { world, pid, rank, number, call, on, on_rank, missing, .. } = link;
            let (and, members) = (if at == 0 { "" } else { ", and " }, list(&link.members));
            let call = if call.is_empty() { String::new() } else { format!(" ({call})") };
            // Writing to a string does not fail.
            _ = write!(
                text,
                "{and}process {pid} waits as rank {rank} in call {number}{call} of world {world} (processes {members}) for call {missing} of rank {on_rank}, process {on}"
            );
        }
        let end = if self.is_certain() {
            "this is a deadlock: the processes call on these worlds in crossed order, so have all of them call in one order"
        } else {
            "the processes may call on these worlds in crossed order: have all of them call in one order"
        };
        format!("{text}; {end}")
    }

    /// Ends the worlds of the circle in which process `pid`, which is this one, waits or is waited for.
    pub(crate) fn end(&self, pid: u32, why: &str) {
        let mine = |link: &&Link| link.pid == pid || link.on == pid;
        for link in self.0.iter().filter(mine) {
            let rank = RankId(if link.pid == pid { link.rank } else { link.on_rank });
            for path in paths(pid, ARENA) {
                let Ok(file) = OpenOptions::new().read(true).write(true).open(path) else {
                    continue;
                };
                if !file.metadata().is_ok_and(|about| about.ino() == link.world) {
                    continue;
                }
                // The layout is that of a world of this process.
                let Ok(Some(seen)) = map(&file) else { continue };
                let Ok(arena) = Arena::new(&file, seen.arena.layout) else { continue };
                let shared = SharedState::of_observer(arena);
                // Another rank may have ended the world meanwhile.
                _ = failure::write(&shared.arena, &Cause::Gave { by: rank, why: why.to_owned() });
                shared.wake_all();
                break;
            }
        }
    }
}

/// Returns the numbers as words.
fn list(numbers: &[u32]) -> String {
    let numbers: Vec<String> = numbers.iter().map(ToString::to_string).collect();
    match &numbers[..] {
        [some @ .., last] if !some.is_empty() => format!("{} and {last}", some.join(", ")),
        _ => numbers.concat(),
    }
}

/// Returns the waits of process `pid` for calls that other processes have not made.
fn waits(worlds: &[ObservedWorld], pid: u32) -> Vec<Link> {
    let mut links = Vec::new();
    for world in worlds {
        for rank in &world.ranks {
            let process = rank.process.as_ref().filter(|process| process.pid == pid);
            let (Some(process), Some(wait)) = (process, &rank.wait) else { continue };
            let Some(on) = wait.on.filter(|_| wait.missing > 0 && world.failure.is_none()) else {
                continue;
            };
            let number = |rank: &super::ObservedRank| {
                rank.process.as_ref().map_or(rank.pid, |process| process.pid)
            };
            let awaited = &world.ranks[on];
            let call = rank.calls.iter().find(|call| call.number == wait.number);
            links.push(Link {
                world: world.id,
                members: world.ranks.iter().map(number).collect(),
                pid,
                rank: rank.name,
                number: wait.number,
                call: call.map(ObservedCall::text).unwrap_or_default(),
                on: number(awaited),
                on_at: on,
                on_rank: awaited.name,
                missing: wait.missing,
                since: wait.words.since,
                alone: process.threads == 1 && !wait.words.progress,
            });
        }
    }
    links
}

/// Returns a circle through process `start`, if its waits are ones of a circle; `look` returns the worlds of a process.
fn through(start: u32, mut look: impl FnMut(u32) -> Vec<ObservedWorld>) -> Option<Circle> {
    // Ways from the process that begins; a process is looked at once.
    let mut ways: Vec<Vec<Link>> = vec![Vec::new()];
    let mut seen = BTreeSet::new();
    while let Some(way) = ways.pop() {
        let last = way.last();
        let pid = last.map_or(start, |link| link.on);
        if !way.is_empty() && pid == start {
            return Some(Circle(way));
        }
        if !seen.insert(pid) {
            continue;
        }
        let worlds = look(pid);
        // The number is that of the awaited process only if that has the same world.
        let is_it = |link: &Link| {
            let world = worlds.iter().find(|world| world.id == link.world);
            let rank = world.and_then(|world| world.ranks.get(link.on_at));
            rank.is_some_and(|rank| rank.process.as_ref().is_some_and(|found| found.pid == pid))
        };
        if last.is_none_or(is_it) {
            ways.extend(waits(&worlds, pid).into_iter().map(|link| [&way[..], &[link]].concat()));
        }
    }
    None
}

impl Circle {
    /// Returns a circle of waits through this process's number `pid`, if there is one.
    pub(crate) fn of_process(pid: u32) -> Option<Self> {
        through(pid, |pid| of_process(pid).worlds)
    }

    /// Returns the circle as it is seen from its first process, so that one circle is found once.
    fn rotated(mut self) -> Self {
        let first = (0..self.0.len()).min_by_key(|at| self.0[*at].pid).unwrap_or(0);
        self.0.rotate_left(first);
        self
    }
}

/// Returns all circles of waits in these worlds.
pub fn circles(worlds: &[ObservedWorld]) -> Vec<Circle> {
    let ranks = worlds.iter().flat_map(|world| &world.ranks);
    let pids: BTreeSet<u32> =
        ranks.filter_map(|rank| rank.process.as_ref().map(|process| process.pid)).collect();
    let of = |pid: u32| {
        let has = |world: &&ObservedWorld| {
            world.ranks.iter().any(|rank| rank.process.as_ref().is_some_and(|p| p.pid == pid))
        };
        worlds.iter().filter(has).cloned().collect()
    };
    let found: BTreeSet<Circle> =
        pids.into_iter().filter_map(|pid| through(pid, of)).map(Circle::rotated).collect();
    found.into_iter().collect()
}
