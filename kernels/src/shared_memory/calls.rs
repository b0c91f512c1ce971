//! The calls of ranks that are processes. Each rank publishes its call. Before a rank takes, moves or reduces data, it
//! compares its call with the calls of the ranks that it waits for or whose memory it accesses. If two ranks make
//! different calls under one number, the call is *refused*: the number is void for all ranks, each rank gets the error
//! once, and calls with later numbers work as usual. Every other failure ends all calls, now and later.

use std::cell::Cell;
use std::sync::MutexGuard;
use std::time::{Duration, Instant};

use roundelay_core::collective::Collective;
use roundelay_core::counts::{RankBlocks, block_name};
use roundelay_core::ids::{RankId, SpanId};
use roundelay_core::schedule::Schedule;

use super::arena::WINDOW;
use super::failure::{self, Cause};
use super::shared_state::{CallHeader, CallPosition, MOST_TILES};
use super::watch::{self, LOOK, Watch};
use super::world::{LocalState, World};
use crate::error::{Differ, Ended, Missing};
use crate::sync::{AtomicU64, Ordering, fence};
use crate::{Error, Stuck};

/// The place of the number of refused calls, in the arena's first page.
const REFUSED: usize = 192;
/// States of the record of a refused call, in the low two bits of its first word; the call's number is above them.
const WRITING: u64 = 1;
const WRITTEN: u64 = 2;

/// Whether the system reports that a process is stopped, as by SIGSTOP; false where the system does not report it, or
/// numbers processes in another way.
fn is_stopped(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The state stands behind the program's name, which may hold any characters.
    stat.rsplit_once(')').is_some_and(|(_, rest)| rest.trim_start().starts_with(['T', 't']))
}

/// A call under way.
pub(crate) struct ActiveCall<'w> {
    pub(super) world: &'w World,
    pub(super) local: MutexGuard<'w, LocalState>,
    pub(super) number: u64,
    pub(super) header: CallHeader,
    /// This rank's blocks, in a call with a count for each block.
    pub(super) blocks: Option<&'w RankBlocks>,
    /// The schedule that the call runs, for error messages.
    schedule: &'w Schedule,
    /// Whether the call waits for long work of other ranks.
    pub(super) patient: bool,
    published: bool,
    /// The number of the next place of the call, for tests that end a process at a given place.
    places: Cell<u32>,
}

impl World {
    /// Begins a call and waits for a free line; the call is not published yet.
    pub(super) fn begin<'w>(
        &'w self,
        header: CallHeader,
        schedule: &'w Schedule,
    ) -> Result<ActiveCall<'w>, Error> {
        let mut local = self.enter()?;
        let number = local.number + 1;
        // Checked first, as a refused call may be the reason why the world ended.
        if self.refused().load(Ordering::Acquire) != local.heard {
            self.hear(&mut local, number)?;
        }
        self.intact()?;
        let places = Cell::new(0);
        let (patient, published) = (false, false);
        let active = ActiveCall {
            world: self,
            local,
            number,
            header,
            blocks: None,
            schedule,
            patient,
            published,
            places,
        };
        active.fault();
        active.make_room()
    }

    fn refused(&self) -> &AtomicU64 {
        self.shared.arena.word(REFUSED)
    }

    fn void(&self, number: u64, word: usize) -> &AtomicU64 {
        self.shared.arena.word(self.shared.arena.layout.void(number) + 8 * word)
    }

    /// Whether call `number` was refused.
    fn is_void(&self, number: u64) -> bool {
        self.void(number, 0).load(Ordering::Relaxed) >> 2 == number
    }

    /// Whether call `number` ends early.
    pub(super) fn ends(&self, number: u64) -> bool {
        failure::has_failed(&self.shared.arena) || self.is_void(number)
    }

    /// Fails if an earlier call was refused after this rank had left it.
    fn hear(&self, local: &mut LocalState, number: u64) -> Result<(), Error> {
        let heard = self.refused().load(Ordering::Acquire);
        // A rank that finds a difference is in one of the two calls, so a refused call is at most so far back.
        let first = number.saturating_sub(2 * WINDOW).max(1);
        for before in first..number {
            if self.is_void(before) && !local.told.contains(&before) {
                local.told.push(before);
                local.told.retain(|told| *told >= first);
                let mut differ = self.differ(before);
                differ.late = Some(self.named(self.rank));
                return Err(Error::CallsDiffer(Box::new(differ)));
            }
        }
        local.heard = heard;
        Ok(())
    }

    /// Returns the error of an earlier refused call, if this rank has not returned it yet.
    pub(crate) fn refusal(&self) -> Option<Error> {
        let mut local = self.enter().ok()?;
        let number = local.number + 1;
        self.hear(&mut local, number).err()
    }

    /// Returns the record of a refused call.
    fn differ(&self, number: u64) -> Differ {
        let since = Instant::now();
        while self.void(number, 0).load(Ordering::Acquire) != number << 2 | WRITTEN {
            // The rank that writes the record may have ended.
            if since.elapsed() > LOOK {
                break;
            }
            std::thread::yield_now();
        }
        let word = |at: usize| self.void(number, at).load(Ordering::Relaxed);
        let known = |rank: u64| (rank as usize).min(self.shared.nranks() - 1);
        let ranks = [word(1), word(2)].map(|rank| self.named(known(rank)));
        let headers =
            [[word(3), word(4), word(5)], [word(6), word(7), word(8)]].map(CallHeader::of_words);
        let calls = [0, 1].map(|at: usize| {
            let name = headers[at].name().unwrap_or_else(|| "no call that there is".to_owned());
            let [identity, other] = [headers[at].identity, headers[1 - at].identity];
            let same = headers[1 - at].name().is_some_and(|other| other == name);
            // The calls have one name, and different schedules or counts.
            if same && identity != other {
                format!("{name} by schedule {identity:016x}")
            } else if let Some(block) = word(9).checked_sub(1).filter(|_| headers[at].has_blocks())
            {
                let of = headers[at].collective().unwrap_or(Collective::AllGather);
                let block = block_name(of, self.nranks(), block as u32);
                format!("{name} with {} elements in {block}", word(10 + at))
            } else {
                name
            }
        });
        Differ { number, ranks, calls, late: None }
    }
}

impl ActiveCall<'_> {
    /// Waits until no rank reads the line that this call overwrites.
    fn make_room(mut self) -> Result<Self, Error> {
        while self.number > self.local.room {
            let shared = &self.world.shared;
            let slowest = self.world.others().map(|other| (shared.number(other), other)).min();
            let Some((slowest, who)) = slowest else {
                self.local.room = u64::MAX;
                break;
            };
            if slowest.saturating_add(WINDOW) > self.number {
                self.local.room = slowest.saturating_add(WINDOW - 1);
            } else {
                let number = self.number;
                let room =
                    self.wait(Some(who), || shared.number(who).saturating_add(WINDOW) > number);
                self.hears(&room);
                room?;
            }
        }
        Ok(self)
    }

    /// Publishes the call, with `staged` tiles staged.
    pub(super) fn publish(&mut self, staged: u64) {
        self.local.number = self.number;
        self.published = true;
        self.world.shared.stand(self.world.rank, CallPosition { step: 0, at: 0 });
        self.world.shared.publish(self.world.rank, self.number, &self.header, staged);
        self.fault();
    }

    /// Stores this rank's position.
    pub(super) fn stand(&self, place: CallPosition) {
        self.world.shared.stand(self.world.rank, place);
        self.fault();
    }

    /// Injects the fault that a test has set for this place of the call.
    fn fault(&self) {
        let place = self.places.replace(self.places.get() + 1);
        self.world.fault.happen(self.number, place);
    }

    /// Waits until rank `other` has made this call and staged `staged` tiles of it, and compares the two calls.
    pub(super) fn meet(&mut self, other: usize, staged: u64) -> Result<CallHeader, Error> {
        let (shared, number) = (&self.world.shared, self.number);
        let mut there = shared.staged(other, number);
        if there.is_none() {
            self.wait(Some(other), || {
                there = shared.staged(other, number);
                there.is_some()
            })?;
        }
        let theirs = shared.header(other, number);
        if !theirs.is(&self.header) || self.counts_differ(other, &theirs).is_some() {
            return Err(self.refuse(other, &theirs));
        }
        // Rank `other` is done with all earlier calls.
        self.local.finished[other] = self.local.finished[other].max(number - 1);
        if there.is_some_and(|there| there >= staged) {
            return Ok(theirs);
        }
        // This wait comes after the comparison, as a different call may have other tiles.
        self.wait(Some(other), || {
            shared.staged(other, number).is_some_and(|there| there >= staged)
        })?;
        // The header names the slot of the first tile only once that tile is staged.
        Ok(shared.header(other, number))
    }

    /// Compares the call with the calls of `readers`, as far as these have made theirs. The readers read from this
    /// rank, which does not wait for them: this is for a rank that meets no rank. If no rank waits for another, the
    /// last rank that comes here finds a difference.
    pub(super) fn glance(&self, readers: &[usize]) -> Result<(), Error> {
        // This rank has published its call before it reads the calls of the readers.
        fence(Ordering::SeqCst);
        let (shared, number) = (&self.world.shared, self.number);
        for &reader in readers {
            if shared.staged(reader, number).is_some() {
                let theirs = shared.header(reader, number);
                if !theirs.is(&self.header) {
                    return Err(self.refuse(reader, &theirs));
                }
            }
        }
        Ok(())
    }

    /// Whether rank `other` is done with `tiles` tiles of call `number`.
    pub(super) fn is_done(&self, other: usize, number: u64, tiles: u64) -> bool {
        self.local.finished[other] >= number || self.world.shared.finished(other, number, tiles)
    }

    /// Waits until `ready()`, for an action of rank `on`, or of any rank if `on` is `None`.
    pub(super) fn wait(&self, on: Option<usize>, ready: impl FnMut() -> bool) -> Result<(), Error> {
        watch::wait(self, on, ready)
    }

    /// Fails with the reason if the call ends early.
    pub(crate) fn goes_on(&self) -> Result<(), Error> {
        let world = self.world;
        // Checked first, as a refused call may be the reason why the world ended.
        if world.is_void(self.number) {
            return Err(Error::CallsDiffer(Box::new(world.differ(self.number))));
        }
        world.intact()
    }

    /// Makes the call void for all ranks and returns the error. The first rank that finds the difference writes the
    /// record.
    fn refuse(&self, other: usize, theirs: &CallHeader) -> Error {
        let (world, number) = (self.world, self.number);
        let (block, counts) = match self.counts_differ(other, theirs) {
            Some((block, counts)) => (u64::from(block) + 1, counts),
            None => (0, [0; 2]),
        };
        let mut found = [(world.rank, self.header, counts[0]), (other, *theirs, counts[1])];
        found.sort_by_key(|(rank, ..)| *rank);
        let state = world.void(number, 0);
        let before = state.load(Ordering::Relaxed);
        let writing = number << 2 | WRITING;
        let first = before >> 2 != number
            && state.compare_exchange(before, writing, Ordering::AcqRel, Ordering::Relaxed).is_ok();
        if first {
            let ranks = found.map(|(rank, ..)| rank as u64);
            let words = found.map(|(_, header, _)| header.words());
            let words = ranks.into_iter().chain(words.into_iter().flatten());
            let counts = found.map(|(.., count)| count);
            for (at, word) in (1..).zip(words.chain([block]).chain(counts)) {
                world.void(number, at).store(word, Ordering::Relaxed);
            }
            state.store(number << 2 | WRITTEN, Ordering::Release);
            world.refused().fetch_add(1, Ordering::Release);
            world.shared.wake_all();
        }
        Error::CallsDiffer(Box::new(world.differ(number)))
    }

    /// Returns the root of the call's collective.
    pub(super) fn root(&self) -> RankId {
        self.schedule.root
    }

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

    /// Ends the world, as another rank wrote words that no correct rank writes: no shared word can be trusted any more.
    pub(super) fn corrupt(&self, what: String) -> Error {
        self.world.corrupt(what)
    }

    /// Ends the world, as a rank ended that this call needs.
    fn lost(&self, rank: usize, how: &str) -> Error {
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
    fn late(&self, on: Option<usize>) -> Error {
        let (world, shared) = (self.world, &self.world.shared);
        let on = self.blamed(on);
        let made = shared.number(on);
        let error = if made < self.number {
            let name = |number| {
                let all =
                    (0..shared.nranks()).filter(|rank| shared.staged(*rank, number).is_some());
                all.map(|rank| shared.header(rank, number)).find_map(|header| header.name())
            };
            let busy = made != 0 && !shared.finished(on, made, MOST_TILES);
            Error::Missing(Box::new(Missing {
                rank: world.named(world.rank),
                waits_in: self.number,
                missing: world.named(on),
                number: made + 1,
                call: name(made + 1).or_else(|| self.header.name()).unwrap_or_default(),
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

    /// Ends the world, as the deadline of a wait for another host is over; `what` is the text about that wait.
    pub(super) fn late_for(&self, what: String) -> Error {
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

    /// Ends the call, and returns its result.
    pub(crate) fn end(mut self, result: Result<(), Error>) -> Result<(), Error> {
        let world = self.world;
        let result = match result {
            // The data has moved; but if the call is void, this call reports that, so that no rank has to wait for the
            // next.
            Ok(()) if world.is_void(self.number) => self.goes_on(),
            result => result,
        };
        self.fault();
        if self.published {
            world.shared.finish(world.rank, self.number, MOST_TILES);
        }
        self.hears(&result);
        self.published = false;
        result
    }

    /// Notes that the rank gets the error of a refused call. A call that was refused before this rank published it counts
    /// as made, as it does for the other ranks.
    fn hears<T>(&mut self, result: &Result<T, Error>) {
        let Err(Error::CallsDiffer(differ)) = result else { return };
        self.local.told.push(differ.number);
        if differ.number == self.number && !self.published {
            let (world, number) = (self.world, self.number);
            self.local.number = number;
            world.shared.skip(world.rank, number);
        }
    }
}

impl Watch for ActiveCall<'_> {
    fn world(&self) -> &World {
        self.world
    }

    fn ends(&self) -> bool {
        self.world.ends(self.number)
    }

    fn goes_on(&self) -> Result<(), Error> {
        ActiveCall::goes_on(self)
    }

    fn is_patient(&self) -> bool {
        self.patient
    }

    fn deadline(&self) -> Duration {
        let deadline = self.world.deadline();
        // Rank 0 waits for other hosts meanwhile, and its error is to come first.
        if self.patient && self.world.rank != 0 { deadline.saturating_mul(2) } else { deadline }
    }

    fn needs(&self, rank: usize) -> bool {
        !self.world.shared.finished(rank, self.number, MOST_TILES)
    }

    fn lost(&self, rank: usize, how: &str) -> Error {
        ActiveCall::lost(self, rank, how)
    }

    fn late(&self, on: Option<usize>) -> Error {
        ActiveCall::late(self, on)
    }
}

impl Drop for ActiveCall<'_> {
    fn drop(&mut self) {
        if self.published {
            // The call panicked. An earlier failure of another rank stays the cause.
            _ = self.lost(self.world.rank, "panicked");
        }
    }
}
