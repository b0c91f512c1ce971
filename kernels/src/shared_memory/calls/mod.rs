//! The calls of ranks that are processes: each rank publishes its call in the arena, with the number of its staged tiles,
//! and compares it with the calls of others. The numbers of calls are as for [ranks of all kinds](crate::call_numbers).

mod block_exchange;
mod call_failure;
pub(super) mod host_messages;
mod refusals;

use std::cell::Cell;
use std::sync::MutexGuard;
use std::time::Duration;

use roundelay_core::counts::RankBlocks;
use roundelay_core::ids::{RankId, SpanId};
use roundelay_core::schedule::Schedule;

use super::world::World;
use super::world::local_state::LocalState;
use super::world::memory::shared_state::{CallHeader, CallPosition, MOST_TILES};
use super::world::recording::{During, Recording};
use super::world::watch::{self, Watch};
use crate::Error;
use crate::call_numbers::CallsSeen as _;
use crate::recorder::Recorded;
use crate::sync::{Ordering, fence};

/// A call under way.
pub(crate) struct ActiveCall<'w> {
    pub(super) world: &'w World,
    pub(super) local: MutexGuard<'w, LocalState>,
    pub(super) number: u64,
    pub(super) header: CallHeader,
    /// This rank's blocks, in a call with a count for each block.
    pub(super) blocks: Option<&'w RankBlocks>,
    /// The schedule that the call runs, for error messages.
    pub(super) schedule: &'w Schedule,
    /// Whether the call waits for long work of other ranks.
    pub(super) patient: bool,
    pub(super) recording: Recording<'w>,
    published: bool,
    /// The number of the call that an awaited rank must make, without which the current wait cannot end; 0 where the
    /// wait is for something else.
    needs: Cell<u64>,
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
        // Checked first, as a refused call may be the reason why the world ended.
        local.call.numbers.hear(self)?;
        self.intact()?;
        let number = local.call.numbers.made + 1;
        let recording = self.record.recording(number, &header, schedule);
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
            recording,
            published,
            needs: Cell::new(0),
            places,
        };
        active.fault();
        active.make_room()
    }
}

impl<'w> ActiveCall<'w> {
    /// Waits until no rank reads the line that this call overwrites.
    fn make_room(mut self) -> Result<Self, Error> {
        while let Some((who, needs)) = self.local.call.numbers.awaited(self.world) {
            let room = self.wait_for_call(who, needs, || self.world.number(who) >= needs);
            self.hears(&room);
            room?;
        }
        Ok(self)
    }

    /// Publishes the call, with `staged` tiles staged.
    pub(super) fn publish(&mut self, staged: u64) {
        self.local.call.numbers.made = self.number;
        self.published = true;
        self.world.shared.stand(self.world.rank, CallPosition { step: 0, at: 0 });
        let (shared, rank) = (&self.world.shared, self.world.rank);
        shared.publish(rank, self.number, &self.header, staged);
        // The other ranks go on meanwhile.
        let site = self.local.sites.kept.as_mut().map(|sites| sites.number(shared, rank));
        shared.record_begin(rank, self.number, &self.header, site);
        if !self.local.sites.named.contains(&self.header.identity) {
            self.name();
        }
        self.fault();
    }

    /// Has the algorithm of the call named in the arena.
    #[cold]
    fn name(&mut self) {
        self.world.shared.name_algorithm(self.header.identity, self.schedule);
        self.local.sites.named.push(self.header.identity);
    }

    /// Stores this rank's position.
    pub(super) fn stand(&self, place: CallPosition) {
        self.world.shared.stand(self.world.rank, place);
        self.fault();
    }

    /// Stores this rank's position, and notes the work on its statement until the returned value is dropped.
    pub(super) fn step(&self, place: CallPosition) -> During<'w> {
        self.stand(place);
        self.recording.during(Recorded::Statement(SpanId(place.at.wrapping_sub(1))))
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
            self.wait_for_call(other, number, || {
                there = shared.staged(other, number);
                there.is_some()
            })?;
        }
        let theirs = shared.header(other, number);
        if !theirs.is(&self.header) || self.counts_differ(other, &theirs).is_some() {
            return Err(self.refuse(other, &theirs));
        }
        // Rank `other` is done with all earlier calls.
        self.local.call.finished[other] = self.local.call.finished[other].max(number - 1);
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
        self.local.call.finished[other] >= number
            || self.world.shared.finished(other, number, tiles)
    }

    /// Waits until `ready()`, for an action of rank `on`, or of any rank if `on` is `None`.
    pub(super) fn wait(
        &self,
        on: Option<usize>,
        mut ready: impl FnMut() -> bool,
    ) -> Result<(), Error> {
        if self.recording.is_on() && ready() {
            return Ok(());
        }
        let _wait = self.recording.during(Recorded::Wait(on.map(|on| on as u32)));
        watch::wait(self, on, ready)
    }

    /// Waits until `ready()`, which needs rank `other` to make call `needs`.
    fn wait_for_call(
        &self,
        other: usize,
        needs: u64,
        ready: impl FnMut() -> bool,
    ) -> Result<(), Error> {
        self.needs.set(needs);
        let done = self.wait(Some(other), ready);
        self.needs.set(0);
        done
    }

    /// Whether the call ends early.
    pub(crate) fn ends(&self) -> bool {
        self.world.ends(self.number)
    }

    /// Fails with the reason if the call ends early.
    pub(crate) fn goes_on(&self) -> Result<(), Error> {
        self.world.goes_on(self.number)
    }

    /// Makes the call void for all ranks and returns the error.
    fn refuse(&self, other: usize, theirs: &CallHeader) -> Error {
        let world = self.world;
        let (block, counts) = match self.counts_differ(other, theirs) {
            Some((block, counts)) => (block + 1, counts),
            None => (0, [0; 2]),
        };
        let found = [(world.rank, self.header, counts[0]), (other, *theirs, counts[1])];
        world.make_void(self.number, found, (block, ""))
    }

    /// Returns the root of the call's collective.
    pub(super) fn root(&self) -> RankId {
        self.schedule.root
    }

    /// Ends the world, as another rank wrote words that no correct rank writes: no shared word can be trusted any more.
    pub(super) fn corrupt(&self, what: String) -> Error {
        self.world.corrupt(what)
    }

    /// Ends the call, and returns its result.
    pub(crate) fn end(mut self, result: Result<(), Error>) -> Result<(), Error> {
        let world = self.world;
        let result = world.outcome(self.number, result);
        self.fault();
        if self.published {
            world.shared.finish(world.rank, self.number, MOST_TILES);
            world.shared.record_end(world.rank, self.number, result.is_err());
        }
        self.hears(&result);
        self.published = false;
        self.recording.end(result.is_err());
        result
    }

    /// Notes that the rank gets the error of a refused call. A call that was refused before this rank published it counts
    /// as made, as it does for the other ranks.
    fn hears<T>(&mut self, result: &Result<T, Error>) {
        let told = self.local.call.numbers.note(result);
        if told == Some(self.number) && !self.published {
            self.local.call.numbers.made = self.number;
            self.world.shared.skip(self.world.rank, self.number);
        }
    }
}

impl Watch for ActiveCall<'_> {
    fn world(&self) -> &World {
        self.world
    }

    fn ends(&self) -> bool {
        ActiveCall::ends(self)
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

    fn numbers(&self) -> [u64; 2] {
        [self.number, self.needs.get()]
    }

    fn in_circle(&self, on: usize, waited: Duration) -> Option<Error> {
        ActiveCall::in_circle(self, on, waited)
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
