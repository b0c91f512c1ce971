//! Why a call ends early, in words: a rank ended, a rank is late, or ranks wait for each other in a circle.

use std::time::Duration;

use roundelay_core::ids::SpanId;

use super::ActiveCall;
use crate::call_numbers::CallsSeen as _;
use crate::error::Ended;
use crate::shared_memory::observe::Circle;
use crate::shared_memory::world::failure::Cause;
use crate::shared_memory::world::memory::shared_state::{CallPosition, MOST_TILES};
use crate::{Error, Stuck};

/// The time between two looks at a circle of waits.
const AGAIN: Duration = Duration::from_millis(20);

/// Whether the system reports that a process is stopped, as by SIGSTOP; false where the system does not report it, or
/// numbers processes in another way.
fn is_stopped(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The state stands behind the program's name, which may hold any characters.
    stat.rsplit_once(')').is_some_and(|(_, rest)| rest.trim_start().starts_with(['T', 't']))
}

impl ActiveCall<'_> {
    /// Returns the position of a rank in this call, as words. This rank knows the statements from its own schedule,
    /// which is that of the other rank if the two calls are equal.
    fn at(&self, rank: usize) -> String {
        let shared = &self.world.shared;
        let CallPosition { step, at } = shared.place(rank);
        let Some(at) = at.checked_sub(1) else { return "at its beginning".to_owned() };
        // The rank may be in a call that no rank has compared with this one yet.
        let there = shared.staged(rank, self.number).map(|_| shared.header(rank, self.number));
        let same =
            shared.number(rank) == self.number && there.is_some_and(|it| it.is(&self.header));
        let place = self.schedule.place(SpanId(at));
        match same {
            true if place.is_empty() => format!("at step {step}"),
            true => format!("at step {step} ({place})"),
            false => format!("at step {step} of a call that differs"),
        }
    }

    /// Ends the world, as a rank ended that this call needs.
    pub(crate) fn lost(&self, rank: usize, how: &str) -> Error {
        let shared = &self.world.shared;
        let pid = self.world.peers[rank].pid;
        let call = |number: u64| {
            let name = shared.staged(rank, number).and_then(|_| shared.header(rank, number).name());
            name.map_or_else(|| format!("call {number}"), |name| format!("call {number}, {name}"))
        };
        let made = shared.number(rank);
        let ours = self.header.name().unwrap_or_default();
        let place = if made >= self.number {
            format!("in call {}, {ours}, {}", self.number, self.at(rank))
        } else if made == 0 {
            format!("before call {}, {ours}; it has made none", self.number)
        } else {
            format!("before call {}, {ours}; its last was {}", self.number, call(made))
        };
        let (who, rank) = (self.world.who_waits(rank), self.world.named(rank));
        let what = format!("rank {rank} (process {pid}) {how} {place}; {who}");
        let ended = Ended { rank, pid, number: self.number, what };
        let error = Error::RankEnded(Box::new(ended.clone()));
        self.world.give_up(&Cause::Ended(ended), error)
    }

    /// Ends the world, as the deadline of the call is over.
    pub(crate) fn late(&self, on: Option<usize>) -> Error {
        let (world, shared) = (self.world, &self.world.shared);
        let on = self.blamed(on);
        let made = shared.number(on);
        let error = if made < self.number {
            let circle = Circle::of_process(std::process::id());
            self.missing(on, world.deadline(), circle.map(|circle| circle.text()))
        } else {
            let state = if is_stopped(world.peers[on].pid) { "which is stopped " } else { "" };
            let there = self.at(on);
            let (pid, on) = (world.peers[on].pid, world.named(on));
            self.stuck(format!("rank {on} (process {pid}, {state}{there})"))
        };
        world.give_up_for(error)
    }

    /// Ends all worlds of this process that are in a circle of waits, if this wait for rank `on` is one of them for
    /// certain.
    pub(crate) fn in_circle(&self, on: usize, waited: Duration) -> Option<Error> {
        let circle = Circle::of_process(std::process::id()).filter(Circle::is_certain)?;
        // A look at a time: the waits are the same ones as before, and none of the missing calls was made meanwhile.
        std::thread::sleep(AGAIN);
        if Circle::of_process(std::process::id()).as_ref() != Some(&circle) {
            return None;
        }
        let error = self.missing(on, waited, Some(circle.text()));
        let error = self.world.give_up_for(error);
        circle.end(std::process::id(), &error.text());
        Some(error)
    }

    /// Returns the error of a wait for rank `on`, which did not make a call, after a wait of `after`.
    fn missing(&self, on: usize, after: Duration, circle: Option<String>) -> Error {
        self.world.missing((self.number, self.header.name()), on, (after, circle))
    }

    /// Ends the world, as the deadline of a wait for another host is over; `what` is the text about that wait.
    pub(crate) fn late_for(&self, what: String) -> Error {
        self.world.give_up_for(self.stuck(what))
    }

    /// Returns the error of a wait in vain at this rank's position.
    fn stuck(&self, waiting_on: String) -> Error {
        let world = self.world;
        let CallPosition { step, at } = world.shared.place(world.rank);
        let line = at.checked_sub(1).map_or(0, |at| self.schedule.location(SpanId(at)).line);
        Error::Timeout(Box::new(Stuck {
            rank: world.named(world.rank),
            stream: roundelay_core::ids::StreamId(0),
            step,
            waiting_on,
            expected: 1,
            seen: 0,
            file: self.schedule.file.clone(),
            line,
            after: Some(world.deadline()),
        }))
    }

    /// Returns the last rank in the chain of waits, where this rank waits for `on` or for any rank.
    fn blamed(&self, on: Option<usize>) -> usize {
        let (world, shared) = (self.world, &self.world.shared);
        // A stopped rank delays all ranks, even if it waited for another rank when it was stopped.
        let stopped = || world.others().find(|other| is_stopped(world.peers[*other].pid));
        let unfinished = |other: &usize| !shared.finished(*other, self.number, MOST_TILES);
        let on = on.or_else(|| world.others().find(unfinished));
        let waited = on.map(|on| shared.behind(on)).filter(|behind| *behind != world.rank);
        stopped().or(waited).or(on).unwrap_or(world.rank)
    }
}
