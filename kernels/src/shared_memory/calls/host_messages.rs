//! Messages of a call between ranks of a host, for plans that also exchange messages between hosts. Each ordered pair
//! of ranks has a ring for these messages, apart from its ring for messages beside calls. A send or a receive does not
//! wait: a rank has many messages under way, and advances all of them while it waits for one.
//!
//! If the system lets the receiver read the sender's memory, a long message is not copied into the ring: the ring then
//! holds only its address, and the send ends when the receiver has gone past the header.

use std::sync::{MutexGuard, PoisonError};
use std::time::Duration;

use roundelay_core::ids::SpanId;

use super::ActiveCall;
use crate::Error;
use crate::call_numbers::CallsSeen as _;
use crate::lowering::PlannedCall;
use crate::recorder::Recorded;
use crate::reduce::{Stores, copy};
use crate::shared_memory::world::World;
use crate::shared_memory::world::memory::arena::LINE;
use crate::shared_memory::world::memory::shared_state::{CallHeader, CallPosition, MOST_TILES};
use crate::shared_memory::world::queue_ends::Parcels;
use crate::shared_memory::world::ring::{Ring, UNIT};
use crate::shared_memory::world::watch::{self, AWAKE, Watch};
use crate::sync::Ordering;

/// Bytes of a header: the mark of the message, its length, and its address if the receiver is to read it there.
const HEADER: usize = 2 * UNIT;
/// The bits that every header has.
const MARK: u64 = 0x7270 << 48;
/// The least bytes of a message for which one copy by the system is quicker than two copies by the ranks.
const LENT: usize = 48 << 10;
/// The most bytes that a rank reads at once from another rank's memory, before it looks at its other messages.
const READ: usize = 4 << 20;
/// Nanoseconds of a sleep between looks at messages of other hosts, which do not ring.
const NAP: i64 = 50_000;
/// How long a rank with a core of its own polls for messages of other hosts before it sleeps between looks. A rank that
/// shares its core sleeps at once: where ranks only yield to each other, some systems leave a rank without a turn for
/// seconds.
const POLLED: Duration = Duration::from_secs(1);

/// A message under way, at one of its ends.
pub(crate) struct Parcel {
    /// The message's number in the call, equal at both ends.
    number: u32,
    at: *mut u8,
    bytes: usize,
    state: ParcelState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ParcelState {
    /// The header is not yet written to the ring, or not yet read from it.
    Begun,
    /// The given number of bytes is in the ring, or read from it.
    InRing(usize),
    /// The receiver reads the message in the sender's memory; the send ends when the reader has come to this position
    /// of the ring.
    Lent(u64),
    /// The message lies at this address of the sender's memory, and the given number of bytes is read.
    Read(u64, usize),
    Done,
}

impl Parcel {
    /// Creates a message of `bytes` bytes, which a send reads at `at` and a receive writes there.
    pub(crate) fn new(number: u32, at: *mut u8, bytes: usize) -> Self {
        Self { number, at, bytes, state: ParcelState::Begun }
    }

    /// Whether the message is done, so that the caller may use its memory again.
    pub(crate) fn is_done(&self) -> bool {
        self.state == ParcelState::Done
    }
}

/// This rank's ends of the rings between the ranks of its host, for a call.
pub(crate) struct Counter<'w> {
    ends: MutexGuard<'w, Parcels>,
    /// Whether ranks can read each other's memory, and a read there is quicker than two copies.
    lends: bool,
    /// The ranks whose memory this rank has read.
    read: Vec<usize>,
}

impl World {
    /// Begins a call in which ranks of this host exchange messages, and returns when all of these ranks have made the
    /// call; no message moves before that. `identity` stands for the schedule and the way to run it; `check` says
    /// whether the call is a check.
    ///
    /// # Errors
    /// E0414 where ranks of this host make different calls; else the errors of a call.
    pub(crate) fn enter_call<'w>(
        &'w self,
        identity: u64,
        call: &'w PlannedCall,
        check: bool,
    ) -> Result<(ActiveCall<'w>, Result<Counter<'w>, Error>), Error> {
        let PlannedCall { schedule, count, dtype, op, .. } = call;
        let shape = (schedule.collective, schedule.root);
        let header = CallHeader::new(identity, shape, (*count, *dtype, *op)).checks(check);
        let mut active = self.begin(header, schedule)?;
        active.publish(0);
        let met = self.others().try_for_each(|other| active.meet(other, 0).map(drop));
        let counter = met.map(|()| Counter {
            ends: self.parcels.lock().unwrap_or_else(PoisonError::into_inner),
            // A rank that shares its core has nothing to wait for while other ranks copy, so two copies are quicker
            // there.
            lends: self.nranks() > 1 && self.spins && self.all_reach(&mut active.local),
            read: Vec::new(),
        });
        Ok((active, counter))
    }
}

impl Counter<'_> {
    /// Advances the first message under way to rank `to`, and returns whether its state changed.
    ///
    /// # Safety
    /// The message's memory is valid, and no thread writes to it until the message is done.
    pub(crate) unsafe fn send(
        &mut self,
        active: &ActiveCall<'_>,
        to: usize,
        parcel: &mut Parcel,
    ) -> Result<bool, Error> {
        let world = active.world;
        let at = world.shared.arena.layout.parcels(world.rank, to);
        let end = &mut self.ends.sent[to];
        let mut ring = Ring { world, end, at, from: world.rank, to, writes: true };
        let before = parcel.state;
        if parcel.state == ParcelState::Begun {
            if ring.room()? < HEADER {
                return Ok(false);
            }
            let lends = self.lends && parcel.bytes >= LENT;
            ring.write([mark(active, parcel), parcel.bytes as u64]);
            ring.write([if lends { parcel.at.addr() as u64 } else { 0 }, 0]);
            ring.publish();
            parcel.state =
                if lends { ParcelState::Lent(ring.end.bytes) } else { ParcelState::InRing(0) };
        }
        match &mut parcel.state {
            ParcelState::Lent(until) => {
                let read = world.shared.arena.word(at + LINE).load(Ordering::Acquire);
                // Checks the reader's count: it only rises, and the reader has read no more than was written.
                ring.room()?;
                if read >= *until {
                    parcel.state = ParcelState::Done;
                }
            }
            ParcelState::InRing(done) => {
                while *done < parcel.bytes {
                    let room = ring.room()?;
                    if room == 0 {
                        break;
                    }
                    let (place, len) = ring.piece(room, parcel.bytes - *done);
                    // SAFETY: the rest of the message has these bytes, and the ring's reader is done with this part of
                    // the ring.
                    unsafe { copy(place, parcel.at.add(*done), len, Stores::Cached) };
                    *done += len;
                    ring.step(len);
                    ring.publish();
                }
                if *done == parcel.bytes {
                    parcel.state = ParcelState::Done;
                }
            }
            ParcelState::Begun | ParcelState::Read(..) | ParcelState::Done => {}
        }
        Ok(parcel.state != before)
    }

    /// Advances the first message under way from rank `from`, and returns whether its state changed.
    ///
    /// # Safety
    /// The message's memory is valid for writes, and no other thread accesses it until the message is done.
    pub(crate) unsafe fn receive(
        &mut self,
        active: &ActiveCall<'_>,
        from: usize,
        parcel: &mut Parcel,
    ) -> Result<bool, Error> {
        let world = active.world;
        let at = world.shared.arena.layout.parcels(from, world.rank);
        let end = &mut self.ends.received[from];
        let mut ring = Ring { world, end, at, from, to: world.rank, writes: false };
        let before = parcel.state;
        if parcel.state == ParcelState::Begun {
            if ring.filled()? == 0 {
                return Ok(false);
            }
            parcel.state = header(active, &ring, parcel)?;
            if !matches!(parcel.state, ParcelState::Read(..)) {
                ring.step(HEADER);
                ring.publish();
            }
        }
        match &mut parcel.state {
            ParcelState::Read(place, done) => {
                let len = READ.min(parcel.bytes - *done);
                let there = place.wrapping_add(*done as u64);
                // SAFETY: the rest of the message's memory has room for these bytes.
                unsafe { active.read_from(from, &[(there, parcel.at.add(*done), len)])? };
                *done += len;
                if *done == parcel.bytes {
                    if !self.read.contains(&from) {
                        self.read.push(from);
                    }
                    ring.step(HEADER);
                    ring.publish();
                    parcel.state = ParcelState::Done;
                }
            }
            ParcelState::InRing(done) => {
                while *done < parcel.bytes {
                    let filled = ring.filled()?;
                    if filled == 0 {
                        break;
                    }
                    let (place, len) = ring.piece(filled, parcel.bytes - *done);
                    // SAFETY: the rest of the message's memory has room for these bytes, which the ring's writer is
                    // done with; any bytes are elements.
                    unsafe { copy(parcel.at.add(*done), place, len, Stores::Cached) };
                    *done += len;
                    ring.step(len);
                    ring.publish();
                }
                if *done == parcel.bytes {
                    parcel.state = ParcelState::Done;
                }
            }
            ParcelState::Begun | ParcelState::Lent(_) | ParcelState::Done => {}
        }
        Ok(parcel.state != before)
    }

    /// Ends the messages of a call: checks that the ranks whose memory this rank has read were alive while it read.
    pub(crate) fn close(self, active: &ActiveCall<'_>) -> Result<(), Error> {
        active.were_there(&self.read, MOST_TILES)
    }
}

/// Returns the first word of a message's header: a mark, the call's number and the message's number in the call.
fn mark(active: &ActiveCall<'_>, parcel: &Parcel) -> u64 {
    MARK | (active.number & 0xffff) << 32 | u64::from(parcel.number)
}

/// Checks that the header at the reader's position is that of `parcel`, and returns the parcel's next state.
fn header(active: &ActiveCall<'_>, ring: &Ring<'_>, parcel: &Parcel) -> Result<ParcelState, Error> {
    let [[word, bytes], [place, rest]] = [0, 1].map(|unit| ring.look(unit));
    let whole = ring.filled()? >= HEADER;
    let expected = [mark(active, parcel), parcel.bytes as u64, 0];
    if !whole || [word, bytes, rest] != expected {
        let world = active.world;
        let [from, to] = [ring.from, ring.to].map(|rank| world.named(rank));
        return Err(world.corrupt(format!(
            "message {} of rank {from} to rank {to} in call {} begins with {word:#x} and a length of {bytes} bytes, not {:#x} and {}",
            parcel.number, active.number, expected[0], parcel.bytes
        )));
    }
    Ok(if place == 0 { ParcelState::InRing(0) } else { ParcelState::Read(place, 0) })
}

fn polled(world: &World) -> Duration {
    if world.spins { POLLED } else { Duration::ZERO }
}

/// A rank's wait for messages, some of which may come from other hosts.
struct Awaiting<'v, 'w> {
    active: &'v ActiveCall<'w>,
    /// Returns the text about the awaited message of another host. Messages of other hosts do not ring.
    far: Option<&'v dyn Fn() -> String>,
    /// Whether any message of another host is under way.
    polls: bool,
}

impl Watch for Awaiting<'_, '_> {
    fn world(&self) -> &World {
        self.active.world
    }

    fn ends(&self) -> bool {
        self.active.stops()
    }

    fn goes_on(&self) -> Result<(), Error> {
        self.active.goes_on()
    }

    fn needs(&self, rank: usize) -> bool {
        self.active.needs(rank)
    }

    fn lost(&self, rank: usize, how: &str) -> Error {
        Watch::lost(self.active, rank, how)
    }

    fn nap(&self) -> i64 {
        if self.polls { NAP } else { self.active.nap() }
    }

    fn awake(&self) -> Duration {
        if self.polls { polled(self.active.world) } else { AWAKE }
    }

    fn late(&self, on: Option<usize>) -> Error {
        match self.far {
            None => self.active.late(on),
            Some(what) => self.active.late_for(what()),
        }
    }
}

/// A rank's wait for a message of another host, beside all calls.
struct Beside<'w> {
    world: &'w World,
    wanted: &'w dyn Fn() -> String,
}

impl Watch for Beside<'_> {
    fn world(&self) -> &World {
        self.world
    }

    fn ends(&self) -> bool {
        self.goes_on().is_err()
    }

    fn goes_on(&self) -> Result<(), Error> {
        self.world.intact()
    }

    fn needs(&self, _: usize) -> bool {
        // The awaited rank is on another host.
        false
    }

    fn nap(&self) -> i64 {
        NAP
    }

    fn awake(&self) -> Duration {
        polled(self.world)
    }

    fn lost(&self, rank: usize, how: &str) -> Error {
        let what = format!("rank {} {how}", self.world.named(rank));
        self.world.give_up_for(Error::Late { what })
    }

    fn late(&self, _: Option<usize>) -> Error {
        let (rank, after) = (self.world.named(self.world.rank), self.world.deadline());
        let what = format!("rank {rank} waited {after:?}, and {}", (self.wanted)());
        self.world.give_up_for(Error::Late { what })
    }
}

impl World {
    /// Waits until `ready()`, for an action of another host, beside all calls. `wanted` returns a text about the
    /// missing action.
    pub(crate) fn await_beside(
        &self,
        wanted: &dyn Fn() -> String,
        ready: impl FnMut() -> bool,
    ) -> Result<(), Error> {
        watch::wait(&Beside { world: self, wanted }, None, ready)
    }
}

impl<'w> ActiveCall<'w> {
    /// Returns the number of the call.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// Stores that this rank has done `step` steps and is at the statement `at` of its schedule.
    pub(crate) fn stand_at(&self, step: u32, at: SpanId) {
        self.stand(CallPosition { step, at: at.0 + 1 });
    }

    /// Stores the position as [`Self::stand_at`] does, and notes the work on the statement until the returned value is
    /// dropped.
    pub(crate) fn step_at(&self, step: u32, at: SpanId) -> impl Drop + use<'w> {
        self.step(CallPosition { step, at: at.0 + 1 })
    }

    /// Whether the call ends early.
    pub(crate) fn stops(&self) -> bool {
        self.world.ends(self.number)
    }

    /// Waits for a message: `on` is the rank of this host at its other end, or returns the text about a message of
    /// another host. `polls` says whether any message of another host is under way.
    pub(crate) fn await_message(
        &self,
        on: Result<usize, &dyn Fn() -> String>,
        polls: bool,
        ready: impl FnMut() -> bool,
    ) -> Result<(), Error> {
        let (on, far) = (on.ok(), on.err());
        let _wait = self.recording.during(Recorded::Wait(on.map(|on| on as u32)));
        watch::wait(&Awaiting { active: self, far, polls }, on, ready)
    }
}
