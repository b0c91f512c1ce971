//! Messages of a call between ranks of a host, for plans that bring theirs to ranks of other hosts too: each ordered pair
//! of ranks has a ring for them, apart from the one for messages beside calls. Nothing here waits: a rank has many under
//! way, and goes on with all of them while it waits for one.
//!
//! A long message is not copied into the ring where the system lets the receiver read it in the sender's memory: then
//! only its address is, and the send ends when the receiver has gone past that.

use std::sync::{MutexGuard, PoisonError};
use std::time::Duration;

use roundelay_core::ids::SpanId;

use super::arena::LINE;
use super::calls::ActiveCall;
use super::queue_ends::Parcels;
use super::ring::{Ring, UNIT};
use super::shared_state::{CallHeader, CallPosition, MOST_TILES};
use super::watch::{self, AWAKE, Watch};
use super::world::World;
use crate::Error;
use crate::lowered::PlannedCall;
use crate::reduce::{Stores, copy};
use crate::sync::Ordering;

/// Bytes of a header: what it is of, its length, and where it lies if it is to be read there.
const HEADER: usize = 2 * UNIT;
/// What every header has in it.
const MARK: u64 = 0x7270 << 48;
/// Bytes of a message from which on one copy by the system is quicker than two of our own.
const LENT: usize = 48 << 10;
/// Bytes that are read at once from another's memory, before this rank looks at its other messages.
const READ: usize = 4 << 20;
/// Nanoseconds of a sleep between looks at messages that do not ring, those of other hosts.
const NAP: i64 = 50_000;
/// For so long a rank that has a core for itself looks for such messages before it sleeps in between. One that shares its
/// core sleeps at once: where ranks only give others turns, systems are known to leave some without a turn for seconds.
const POLLED: Duration = Duration::from_secs(1);

/// A message under way, for one of its ends.
pub(crate) struct Parcel {
    /// Its number in the call, the same at both ends.
    number: u32,
    at: *mut u8,
    bytes: usize,
    state: ParcelState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ParcelState {
    /// Its header is not in the ring, or not out of it.
    Begun,
    /// So many bytes have gone in or out.
    InRing(usize),
    /// It is to be read where it lies, which is done when the reader has come to this place of the ring.
    Lent(u64),
    /// It lies there in the sender's memory, and so many bytes of it are read.
    Read(u64, usize),
    Done,
}

impl Parcel {
    /// A message of so many bytes, from `at` if it is sent, and to there if it is received.
    pub(crate) fn new(number: u32, at: *mut u8, bytes: usize) -> Self {
        Self { number, at, bytes, state: ParcelState::Begun }
    }

    /// Whether the memory is the caller's again.
    pub(crate) fn is_done(&self) -> bool {
        self.state == ParcelState::Done
    }
}

/// This rank's ends of the rings of its host, for a call.
pub(crate) struct Counter<'w> {
    ends: MutexGuard<'w, Parcels>,
    /// Whether ranks can read each other's memory, and it pays.
    lends: bool,
    /// Whose memory was read.
    read: Vec<usize>,
}

impl World {
    /// Begins a call in which ranks of this host bring each other messages, and returns when all of them have made it:
    /// nothing has gone from rank to rank before. `identity` says which schedule it runs, and how.
    ///
    /// # Errors
    /// E0414 where ranks of this host make different calls; else those of a call.
    pub(crate) fn enter_call<'w>(
        &'w self,
        identity: u64,
        call: &'w PlannedCall,
    ) -> Result<(ActiveCall<'w>, Result<Counter<'w>, Error>), Error> {
        let PlannedCall { schedule, count, dtype, op, .. } = call;
        let shape = (schedule.collective, schedule.root);
        let mut active = self.begin(CallHeader::new(identity, shape, (*count, *dtype, *op)), schedule)?;
        active.publish(0);
        let met = self.others().try_for_each(|other| active.meet(other, 0).map(drop));
        let counter = met.map(|()| Counter {
            ends: self.parcels.lock().unwrap_or_else(PoisonError::into_inner),
            // Ranks that share a core have nothing to wait for while the others copy: two copies are quicker then.
            lends: self.nranks() > 1 && self.spins && self.all_reach(&mut active.local),
            read: Vec::new(),
        });
        Ok((active, counter))
    }
}

impl Counter<'_> {
    /// Goes on with the first message under way to a rank, and says whether anything happened.
    ///
    /// # Safety
    /// The message's memory is there, and nobody writes to it until it is done.
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
            parcel.state = if lends { ParcelState::Lent(ring.end.bytes) } else { ParcelState::InRing(0) };
        }
        match &mut parcel.state {
            ParcelState::Lent(until) => {
                let read = world.shared.arena.word(at + LINE).load(Ordering::Acquire);
                // Both only rise, and what is read was written.
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
                    // SAFETY: what is left of the message has these bytes, and the ring's reader has done with the room.
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

    /// Goes on with the first message under way from a rank, and says whether anything happened.
    ///
    /// # Safety
    /// The message's memory is there, writable, and nobody touches it until it is done.
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
                // SAFETY: what is left of the message's place has room for these bytes.
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
                    // SAFETY: what is left of the message's place has room for these bytes, which the ring's writer has
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

    /// After all messages: makes sure that what was read in others' memory was theirs.
    pub(crate) fn close(self, active: &ActiveCall<'_>) -> Result<(), Error> {
        active.were_there(&self.read, MOST_TILES)
    }
}

/// The first word of a message's header: the call and its number there.
fn mark(active: &ActiveCall<'_>, parcel: &Parcel) -> u64 {
    MARK | (active.number & 0xffff) << 32 | u64::from(parcel.number)
}

/// What comes after the header at which the reader stands, which must be that of `parcel`.
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

/// A rank that waits for messages, some of which may come from other hosts.
struct Awaiting<'v, 'w> {
    active: &'v ActiveCall<'w>,
    /// What it waits for on another host, in words: these do not ring.
    far: Option<&'v dyn Fn() -> String>,
    /// Whether any of those is under way.
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

/// A rank that waits for a message of another host, beside all calls.
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
        // Who it waits for is on another host.
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
    /// Waits for what another host brings about, beside all calls. `wanted` says in words what it has not done.
    pub(crate) fn await_beside(
        &self,
        wanted: &dyn Fn() -> String,
        ready: impl FnMut() -> bool,
    ) -> Result<(), Error> {
        watch::wait(&Beside { world: self, wanted }, None, ready)
    }
}

impl ActiveCall<'_> {
    /// The number of the call.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// Notes that this rank has so many steps behind it and is at this statement of its schedule.
    pub(crate) fn stand_at(&self, step: u32, at: SpanId) {
        self.stand(CallPosition { step, at: at.0 + 1 });
    }

    /// Whether the call ends early.
    pub(crate) fn stops(&self) -> bool {
        self.world.ends(self.number)
    }

    /// Waits for a message: from or to the rank `on` of this host, or of another host with what it is in words. `polls`
    /// says whether any message of another host is under way.
    pub(crate) fn await_message(
        &self,
        on: Result<usize, &dyn Fn() -> String>,
        polls: bool,
        ready: impl FnMut() -> bool,
    ) -> Result<(), Error> {
        let (on, far) = (on.ok(), on.err());
        watch::wait(&Awaiting { active: self, far, polls }, on, ready)
    }
}
