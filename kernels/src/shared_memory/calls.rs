//! The calls of ranks that are processes: each publishes its call, and compares it with those of the ranks that it waits
//! for or visits before it takes, moves or folds anything. Two ranks that make different calls under one number are
//! *refused*: the number is void for all, each is told once, and the next numbers are as good as ever. Every other
//! failure ends all calls, now and later.

use std::cell::Cell;
use std::sync::MutexGuard;
use std::time::{Duration, Instant};

use roundelay_core::ids::SpanId;
use roundelay_core::schedule::Schedule;

use super::arena::WINDOW;
use super::board::{MOST_TILES, Made, Place};
use super::failure::{self, Cause};
use super::watch::{self, LOOK, Watch};
use super::world::{Own, World};
use crate::error::{Differ, Ended, Missing};
use crate::sync::{AtomicU64, Ordering, fence};
use crate::{Error, Stuck};

/// How many calls were refused: in the arena's first page.
const REFUSED: usize = 192;
/// States of a record of a refused call, above which its number stands.
const WRITING: u64 = 1;
const WRITTEN: u64 = 2;

/// Whether the system says that a process is stopped, as by SIGSTOP; not where it does not say, or counts processes in
/// another way.
fn is_stopped(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // After the name, which may hold anything.
    stat.rsplit_once(')').is_some_and(|(_, rest)| rest.trim_start().starts_with(['T', 't']))
}

/// A call under way.
pub(crate) struct Visit<'w> {
    pub(super) world: &'w World,
    pub(super) own: MutexGuard<'w, Own>,
    pub(super) number: u64,
    pub(super) made: Made,
    /// What it runs, for messages.
    schedule: &'w Schedule,
    /// Whether it waits for what takes other ranks long.
    pub(super) patient: bool,
    published: bool,
    /// Places that it came by, for tests that end a process at one of them.
    places: Cell<u32>,
}

impl World {
    /// Begins a call: it is not published yet.
    pub(super) fn begin<'w>(
        &'w self,
        made: Made,
        schedule: &'w Schedule,
    ) -> Result<Visit<'w>, Error> {
        let mut own = self.enter()?;
        let number = own.number + 1;
        // First, for it may be what ended the world.
        if self.refused().load(Ordering::Acquire) != own.heard {
            self.hear(&mut own, number)?;
        }
        self.intact()?;
        let places = Cell::new(0);
        let (patient, published) = (false, false);
        let visit = Visit { world: self, own, number, made, schedule, patient, published, places };
        visit.fault();
        visit.make_room()
    }

    fn refused(&self) -> &AtomicU64 {
        self.board.arena.word(REFUSED)
    }

    fn void(&self, number: u64, word: usize) -> &AtomicU64 {
        self.board.arena.word(self.board.arena.layout.void(number) + 8 * word)
    }

    /// Whether that call was refused.
    fn is_void(&self, number: u64) -> bool {
        self.void(number, 0).load(Ordering::Relaxed) >> 2 == number
    }

    /// Whether that call ends early.
    pub(super) fn ends(&self, number: u64) -> bool {
        failure::has_failed(&self.board.arena) || self.is_void(number)
    }

    /// Tells of a call that was refused after this rank had left it.
    fn hear(&self, own: &mut Own, number: u64) -> Result<(), Error> {
        let heard = self.refused().load(Ordering::Acquire);
        // Who finds that calls differ is in one of them, so they are no further back.
        let first = number.saturating_sub(2 * WINDOW).max(1);
        for before in first..number {
            if self.is_void(before) && !own.told.contains(&before) {
                own.told.push(before);
                own.told.retain(|told| *told >= first);
                let mut differ = self.differ(before);
                differ.late = Some(self.named(self.rank));
                return Err(Error::CallsDiffer(Box::new(differ)));
            }
        }
        own.heard = heard;
        Ok(())
    }

    /// That a call before was refused, if this rank was not told so.
    pub(crate) fn refusal(&self) -> Option<Error> {
        let mut own = self.enter().ok()?;
        let number = own.number + 1;
        self.hear(&mut own, number).err()
    }

    /// What was written of a refused call.
    fn differ(&self, number: u64) -> Differ {
        let since = Instant::now();
        while self.void(number, 0).load(Ordering::Acquire) != number << 2 | WRITTEN {
            // Who writes it may have ended.
            if since.elapsed() > LOOK {
                break;
            }
            std::thread::yield_now();
        }
        let word = |at: usize| self.void(number, at).load(Ordering::Relaxed);
        let known = |rank: u64| (rank as usize).min(self.board.nranks() - 1);
        let ranks = [word(1), word(2)].map(|rank| self.named(known(rank)));
        let made = [[word(3), word(4), word(5)], [word(6), word(7), word(8)]].map(Made::of_words);
        let calls = [0, 1].map(|at: usize| {
            let name = made[at].name().unwrap_or_else(|| "no call that there is".to_owned());
            let [identity, other] = [made[at].identity, made[1 - at].identity];
            let same = made[1 - at].name().is_some_and(|other| other == name);
            // The same words for different schedules.
            if same && identity != other {
                format!("{name} by schedule {identity:016x}")
            } else {
                name
            }
        });
        Differ { number, ranks, calls, late: None }
    }
}

impl Visit<'_> {
    /// Waits until nobody reads the line any more that this call's overwrites.
    fn make_room(mut self) -> Result<Self, Error> {
        while self.number > self.own.room {
            let board = &self.world.board;
            let slowest = self.world.others().map(|other| (board.number(other), other)).min();
            let Some((slowest, who)) = slowest else {
                self.own.room = u64::MAX;
                break;
            };
            if slowest.saturating_add(WINDOW) > self.number {
                self.own.room = slowest.saturating_add(WINDOW - 1);
            } else {
                let number = self.number;
                self.wait(Some(who), || board.number(who).saturating_add(WINDOW) > number)?;
            }
        }
        Ok(self)
    }

    /// Makes the call known, with so many tiles staged.
    pub(super) fn publish(&mut self, staged: u64) {
        self.own.number = self.number;
        self.published = true;
        self.world.board.stand(self.world.rank, Place { step: 0, at: 0 });
        self.world.board.publish(self.world.rank, self.number, &self.made, staged);
        self.fault();
    }

    /// Notes where this rank stands.
    pub(super) fn stand(&self, place: Place) {
        self.world.board.stand(self.world.rank, place);
        self.fault();
    }

    /// Does what a test wants done at this place of a call.
    fn fault(&self) {
        let place = self.places.replace(self.places.get() + 1);
        self.world.fault.happen(self.number, place);
    }

    /// Waits until a rank has made this call and staged so many tiles of it, and compares the calls.
    pub(super) fn meet(&mut self, other: usize, staged: u64) -> Result<Made, Error> {
        let (board, number) = (&self.world.board, self.number);
        let mut there = board.staged(other, number);
        if there.is_none() {
            self.wait(Some(other), || {
                there = board.staged(other, number);
                there.is_some()
            })?;
        }
        let theirs = board.made(other, number);
        if !theirs.is(&self.made) {
            return Err(self.refuse(other, &theirs));
        }
        // It is done with all calls before.
        self.own.finished[other] = self.own.finished[other].max(number - 1);
        if there.is_some_and(|there| there >= staged) {
            return Ok(theirs);
        }
        // Only now, as a call that differs may have other tiles.
        self.wait(Some(other), || {
            board.staged(other, number).is_some_and(|there| there >= staged)
        })?;
        // Where the first tile is was not known before it was there.
        Ok(board.made(other, number))
    }

    /// Compares the call with those of the ranks that read from this one, which it does not wait for, as far as they have
    /// made it: for a rank that meets nobody. Of ranks that all wait for none, the last to come here finds out.
    pub(super) fn glance(&self, readers: &[usize]) -> Result<(), Error> {
        // After its own call was published.
        fence(Ordering::SeqCst);
        let (board, number) = (&self.world.board, self.number);
        for &reader in readers {
            if board.staged(reader, number).is_some() {
                let theirs = board.made(reader, number);
                if !theirs.is(&self.made) {
                    return Err(self.refuse(reader, &theirs));
                }
            }
        }
        Ok(())
    }

    /// Whether a rank is done with so many tiles of a call.
    pub(super) fn is_done(&self, other: usize, number: u64, tiles: u64) -> bool {
        self.own.finished[other] >= number || self.world.board.finished(other, number, tiles)
    }

    /// Waits for what ranks bring about: `on` if it is one of them, or any.
    pub(super) fn wait(&self, on: Option<usize>, ready: impl FnMut() -> bool) -> Result<(), Error> {
        watch::wait(self, on, ready)
    }

    /// Why the call ends early, if it does.
    pub(crate) fn goes_on(&self) -> Result<(), Error> {
        let world = self.world;
        // First, for it may be what ended the world.
        if world.is_void(self.number) {
            return Err(Error::CallsDiffer(Box::new(world.differ(self.number))));
        }
        world.intact()
    }

    /// Makes the call void for all. The first who finds out says why.
    fn refuse(&self, other: usize, theirs: &Made) -> Error {
        let (world, number) = (self.world, self.number);
        let mut found = [(world.rank, self.made), (other, *theirs)];
        found.sort_by_key(|(rank, _)| *rank);
        let state = world.void(number, 0);
        let before = state.load(Ordering::Relaxed);
        let writing = number << 2 | WRITING;
        let first = before >> 2 != number
            && state.compare_exchange(before, writing, Ordering::AcqRel, Ordering::Relaxed).is_ok();
        if first {
            let ranks = found.map(|(rank, _)| rank as u64);
            let words = found.map(|(_, made)| made.words());
            for (at, word) in (1..).zip(ranks.into_iter().chain(words.into_iter().flatten())) {
                world.void(number, at).store(word, Ordering::Relaxed);
            }
            state.store(number << 2 | WRITTEN, Ordering::Release);
            world.refused().fetch_add(1, Ordering::Release);
            world.board.wake_all();
        }
        Error::CallsDiffer(Box::new(world.differ(number)))
    }

    /// Where a rank stands in this call, in words. What statements these are, this rank knows of what it runs itself,
    /// which is the same where the calls are.
    fn at(&self, rank: usize) -> String {
        let board = &self.world.board;
        let Place { step, at } = board.place(rank);
        let Some(at) = at.checked_sub(1) else { return "at its beginning".to_owned() };
        // It may be in a call that nobody has compared with this one yet.
        let there = board.staged(rank, self.number).map(|_| board.made(rank, self.number));
        let same = board.number(rank) == self.number && there.is_some_and(|it| it.is(&self.made));
        let place = self.schedule.place(SpanId(at));
        match same {
            true if place.is_empty() => format!("at step {step}"),
            true => format!("at step {step} ({place})"),
            false => format!("at step {step} of a call that differs"),
        }
    }

    /// Another rank wrote what none of ours writes: nothing can be trusted any more.
    pub(super) fn corrupt(&self, what: String) -> Error {
        self.world.corrupt(what)
    }

    /// A rank ended without which this call cannot.
    fn lost(&self, rank: usize, how: &str) -> Error {
        let board = &self.world.board;
        let pid = self.world.peers[rank].pid;
        let call = |number: u64| {
            let name = board.staged(rank, number).and_then(|_| board.made(rank, number).name());
            name.map_or_else(|| format!("call {number}"), |name| format!("call {number}, {name}"))
        };
        let made = board.number(rank);
        let ours = self.made.name().unwrap_or_default();
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

    /// The deadline came.
    fn late(&self, on: Option<usize>) -> Error {
        let (world, board) = (self.world, &self.world.board);
        let on = self.blamed(on);
        let made = board.number(on);
        let error = if made < self.number {
            let name = |number| {
                let all = (0..board.nranks()).filter(|rank| board.staged(*rank, number).is_some());
                all.map(|rank| board.made(rank, number)).find_map(|made| made.name())
            };
            let busy = made != 0 && !board.finished(on, made, MOST_TILES);
            Error::Missing(Box::new(Missing {
                rank: world.named(world.rank),
                waits_in: self.number,
                missing: world.named(on),
                number: made + 1,
                call: name(made + 1).or_else(|| self.made.name()).unwrap_or_default(),
                last: (made != 0).then(|| (made, name(made).unwrap_or_default())),
                busy,
                after: world.deadline(),
            }))
        } else {
            let state = if is_stopped(world.peers[on].pid) { "which is stopped " } else { "" };
            let there = self.at(on);
            let (pid, on) = (world.peers[on].pid, world.named(on));
            self.stuck(format!("rank {on} (process {pid}, {state}{there})"))
        };
        world.give_up_for(error)
    }

    /// The deadline came for what no rank of this host does, in words.
    pub(super) fn late_for(&self, what: String) -> Error {
        self.world.give_up_for(self.stuck(what))
    }

    /// This rank waited in vain, where it stands.
    fn stuck(&self, waiting_on: String) -> Error {
        let world = self.world;
        let Place { step, at } = world.board.place(world.rank);
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

    /// The rank for which this one waits in the end, where it waits for `on` or for any.
    fn blamed(&self, on: Option<usize>) -> usize {
        let (world, board) = (self.world, &self.world.board);
        // One that is stopped is behind all, whatever it waited for when it was.
        let stopped = || world.others().find(|other| is_stopped(world.peers[*other].pid));
        let unfinished = |other: &usize| !board.finished(*other, self.number, MOST_TILES);
        let on = on.or_else(|| world.others().find(unfinished));
        let waited = on.map(|on| board.behind(on)).filter(|behind| *behind != world.rank);
        stopped().or(waited).or(on).unwrap_or(world.rank)
    }

    /// The end of the call, with what became of it.
    pub(crate) fn end(mut self, result: Result<(), Error>) -> Result<(), Error> {
        let world = self.world;
        let result = match result {
            // What is done is done, but if the call is void nobody needs to wait for the next to say so.
            Ok(()) if world.is_void(self.number) => self.goes_on(),
            result => result,
        };
        self.fault();
        if self.published {
            world.board.finish(world.rank, self.number, MOST_TILES);
        }
        if let Err(Error::CallsDiffer(differ)) = &result {
            self.own.told.push(differ.number);
        }
        self.published = false;
        result
    }
}

impl Watch for Visit<'_> {
    fn world(&self) -> &World {
        self.world
    }

    fn ends(&self) -> bool {
        self.world.ends(self.number)
    }

    fn goes_on(&self) -> Result<(), Error> {
        Visit::goes_on(self)
    }

    fn is_patient(&self) -> bool {
        self.patient
    }

    fn deadline(&self) -> Duration {
        let deadline = self.world.deadline();
        // The first rank waits for other hosts meanwhile, and is to be the one that says so.
        if self.patient && self.world.rank != 0 { deadline.saturating_mul(2) } else { deadline }
    }

    fn needs(&self, rank: usize) -> bool {
        !self.world.board.finished(rank, self.number, MOST_TILES)
    }

    fn lost(&self, rank: usize, how: &str) -> Error {
        Visit::lost(self, rank, how)
    }

    fn late(&self, on: Option<usize>) -> Error {
        Visit::late(self, on)
    }
}

impl Drop for Visit<'_> {
    fn drop(&mut self) {
        if self.published {
            // A panic in a call; who failed first is the one to name.
            _ = self.lost(self.world.rank, "panicked");
        }
    }
}
