//! The messages of a call that are under way, in the memory of this host and between hosts.

use std::collections::VecDeque;

use super::carrier::{Carrier, TAGS};
use super::form::{HostsRank, Leg, Place};
use crate::Error;
use crate::shared_memory::{ActiveCall, Counter, Parcel};

/// Tags of calls are below this number; those above are for messages beside calls.
pub(super) const CALLS: u32 = TAGS / 2;

/// A message in the memory of this host, with its place among the rank's own.
struct Nearby {
    leg: u32,
    parcel: Parcel,
}

/// So many parts of messages to another rank, and so many from there, are under way at a time: the next is begun before
/// the wire has done with the one before, and there are never so many that asking about them takes long.
const WINDOW: usize = 8;

/// The messages to one rank of another host, or from there. They are cut into parts, and those are begun one after the
/// other: so both ends begin them in the same order, by which they meet.
#[derive(Default)]
struct Way {
    /// Those that have begun and have parts left to begin, with where those lie.
    rest: VecDeque<Rest>,
    /// What the carrier has, with the message that it is a part of.
    requests: VecDeque<(u32, usize)>,
}

/// What is left to begin of a message.
struct Rest {
    leg: u32,
    at: *mut u8,
    bytes: usize,
}

/// What a rank has begun and not ended.
pub(super) struct Traffic<'c> {
    plan: &'c HostsRank,
    counter: Counter<'c>,
    /// Of each rank of this host, what goes there and what comes from there, in order.
    sends: Vec<VecDeque<Nearby>>,
    receives: Vec<VecDeque<Nearby>>,
    ways: Ways<'c>,
    /// Which messages are under way.
    open: Vec<bool>,
    tag: u32,
}

/// The messages between hosts. Whatever ends the call, nothing of them is left when this is dropped.
struct Ways<'c> {
    carrier: &'c dyn Carrier,
    all: Vec<Way>,
}

impl Drop for Ways<'_> {
    fn drop(&mut self) {
        for (_, request) in self.all.iter_mut().flat_map(|way| way.requests.drain(..)) {
            self.carrier.cancel(request);
        }
    }
}

impl<'c> Traffic<'c> {
    pub(super) fn new(plan: &'c HostsRank, visit: &ActiveCall<'_>, counter: Counter<'c>) -> Self {
        let queues = || {
            let nranks = plan.hosts.world.nranks();
            (0..nranks).map(|_| VecDeque::new()).collect()
        };
        Self {
            plan,
            counter,
            sends: queues(),
            receives: queues(),
            ways: Ways {
                carrier: &*plan.hosts.carrier,
                all: (0..plan.ways).map(|_| Way::default()).collect(),
            },
            open: vec![false; plan.legs.len()],
            tag: tag(plan, visit.number()),
        }
    }

    /// Begins a message.
    ///
    /// # Safety
    /// The bases point at the rank's buffers, which are good until this is dropped; what is sent is not written, and
    /// what is received is not touched, until the message [is done](Self::is_done).
    pub(super) unsafe fn begin(&mut self, leg: u32) -> Result<(), Error> {
        let Leg { number, sends, peer, place, buffer, offset, bytes, .. } =
            self.plan.legs[leg as usize];
        let at = self.plan.bases.get(buffer).wrapping_add(offset);
        self.open[leg as usize] = true;
        match place {
            Place::Nearby(peer) => {
                let queues = if sends { &mut self.sends } else { &mut self.receives };
                queues[peer].push_back(Nearby { leg, parcel: Parcel::new(number, at, bytes) });
                Ok(())
            }
            Place::Far(way) => {
                self.ways.all[way].rest.push_back(Rest { leg, at, bytes });
                // SAFETY: the caller's promise, for this message and those before it.
                unsafe { self.begin_parts(way, sends, peer) }
            }
        }
    }

    /// Begins parts of messages, as many as may be under way.
    ///
    /// # Safety
    /// As for [`Self::begin`], which all of these have been given to.
    unsafe fn begin_parts(&mut self, way: usize, sends: bool, peer: u32) -> Result<(), Error> {
        let carrier = self.ways.carrier;
        let way = &mut self.ways.all[way];
        while way.requests.len() < WINDOW
            && let Some(first) = way.rest.front_mut()
        {
            let len = first.bytes.min(carrier.piece());
            // SAFETY: within the message's region, which lowering found in its buffer; the caller's promise, as requests
            // end or are cancelled before this is gone.
            let request = unsafe {
                if sends {
                    carrier.send(peer, self.tag, first.at, len)
                } else {
                    carrier.receive(peer, self.tag, first.at, len)
                }
            };
            way.requests.push_back((first.leg, carried(self.plan, request)?));
            (first.at, first.bytes) = (first.at.wrapping_add(len), first.bytes - len);
            if first.bytes == 0 {
                way.rest.pop_front();
            }
        }
        Ok(())
    }

    /// Whether a message that has begun is done.
    pub(super) fn is_done(&self, leg: u32) -> bool {
        !self.open[leg as usize]
    }

    /// Whether a message of another host is under way.
    pub(super) fn polls(&self) -> bool {
        self.ways.all.iter().any(|way| !way.requests.is_empty())
    }

    /// Goes on with all messages, and says whether anything happened.
    pub(super) fn go_on(&mut self, visit: &ActiveCall<'_>) -> Result<bool, Error> {
        let mut moved = false;
        for (peer, queue) in self.sends.iter_mut().enumerate() {
            while let Some(first) = queue.front_mut() {
                // SAFETY: the promise of `begin`.
                moved |= unsafe { self.counter.send(visit, peer, &mut first.parcel)? };
                if !first.parcel.is_done() {
                    break;
                }
                self.open[first.leg as usize] = false;
                queue.pop_front();
            }
        }
        for (peer, queue) in self.receives.iter_mut().enumerate() {
            while let Some(first) = queue.front_mut() {
                // SAFETY: the promise of `begin`.
                moved |= unsafe { self.counter.receive(visit, peer, &mut first.parcel)? };
                if !first.parcel.is_done() {
                    break;
                }
                self.open[first.leg as usize] = false;
                queue.pop_front();
            }
        }
        for way in 0..self.ways.all.len() {
            moved |= self.go_on_with(way)?;
        }
        Ok(moved)
    }

    /// Goes on with messages to a rank of another host, or from there, and says whether anything happened. Whether a part
    /// has ended is asked when all before it have.
    fn go_on_with(&mut self, way: usize) -> Result<bool, Error> {
        let mut moved = false;
        while let Some((leg, request)) = self.ways.all[way].requests.front_mut() {
            let (leg, ended) = (*leg, self.ways.carrier.ended(request));
            if matches!(ended, Ok(false)) {
                break;
            }
            // One that failed is gone, too.
            self.ways.all[way].requests.pop_front();
            carried(self.plan, ended)?;
            let Leg { sends, peer, .. } = self.plan.legs[leg as usize];
            // SAFETY: the promise of `begin`.
            unsafe { self.begin_parts(way, sends, peer)? };
            let next = self.ways.all[way].requests.front();
            self.open[leg as usize] = next.is_some_and(|next| next.0 == leg);
            moved = true;
        }
        Ok(moved)
    }

    /// After all messages are done.
    pub(super) fn close(self, visit: &ActiveCall<'_>) -> Result<(), Error> {
        debug_assert!(self.open.iter().all(|open| !open), "all that begins ends");
        self.counter.close(visit)
    }
}

/// What the carrier says. Where it fails, the world ends: messages of later calls would meet those of this one.
fn carried<T>(plan: &HostsRank, said: Result<T, Error>) -> Result<T, Error> {
    said.map_err(|error| plan.hosts.world.give_up_for(error))
}

/// A number that ranks have in common which make the same call: messages of calls that differ do not meet, but by
/// chance.
fn tag(plan: &HostsRank, number: u64) -> u32 {
    let call = &plan.call;
    let op = if call.schedule.collective.reduces() { call.op as u64 } else { 0 };
    let words = [plan.identity, call.count, call.dtype as u64, op, number];
    let mixed = words.into_iter().fold(0_u64, |mixed, word| {
        (mixed ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29)
    });
    (mixed >> 32) as u32 % CALLS
}
