//! The messages of a call that are under way, in the memory of this host and between hosts.

use std::collections::VecDeque;

use super::carrier::{Carrier, TAGS};
use super::form::{HostsRank, PeerLocation, Transfer};
use crate::Error;
use crate::shared_memory::{ActiveCall, Counter, Parcel};

/// The bound of the tags of calls; tags from this number on are for messages beside calls.
pub(super) const CALLS: u32 = TAGS / 2;

/// A message in the memory of this host, with its number among the rank's transfers.
struct Nearby {
    transfer: u32,
    parcel: Parcel,
}

/// The most parts under way on a route at a time: the next part begins before the wire has done with the part before,
/// and polling the parts does not take long.
const WINDOW: usize = 8;

/// The messages to one rank of another host, or from it. They are cut into parts, which are begun one after the other:
/// so both ends begin the parts in the same order, by which they meet.
#[derive(Default)]
struct Route {
    /// The messages that have begun and have parts left to begin, with the bytes of these parts.
    rest: VecDeque<Rest>,
    /// The carrier's requests, each with the number of its transfer.
    requests: VecDeque<(u32, usize)>,
}

/// The bytes of a message that are left to begin.
struct Rest {
    transfer: u32,
    at: *mut u8,
    bytes: usize,
}

/// The messages that a rank has begun and not ended.
pub(super) struct OpenTransfers<'c> {
    plan: &'c HostsRank,
    counter: Counter<'c>,
    /// For each rank of this host: the messages to it and the messages from it, in order.
    sends: Vec<VecDeque<Nearby>>,
    receives: Vec<VecDeque<Nearby>>,
    routes: Routes<'c>,
    /// Whether each message is under way.
    open: Vec<bool>,
    tag: u32,
}

/// The messages between hosts. However the call ends, no request is left when this is dropped.
struct Routes<'c> {
    carrier: &'c dyn Carrier,
    all: Vec<Route>,
}

impl Drop for Routes<'_> {
    fn drop(&mut self) {
        for (_, request) in self.all.iter_mut().flat_map(|route| route.requests.drain(..)) {
            self.carrier.cancel(request);
        }
    }
}

impl<'c> OpenTransfers<'c> {
    pub(super) fn new(
        plan: &'c HostsRank,
        active: &ActiveCall<'_>,
        counter: Counter<'c>,
        check: bool,
    ) -> Self {
        let queues = || {
            let nranks = plan.hosts.world.nranks();
            (0..nranks).map(|_| VecDeque::new()).collect()
        };
        Self {
            plan,
            counter,
            sends: queues(),
            receives: queues(),
            routes: Routes {
                carrier: &*plan.hosts.carrier,
                all: (0..plan.routes).map(|_| Route::default()).collect(),
            },
            open: vec![false; plan.transfers.len()],
            tag: tag(plan, active.number(), check),
        }
    }

    /// Begins a message.
    ///
    /// # Safety
    /// The bases point at the rank's buffers, which are valid until this is dropped; until the message [is
    /// done](Self::is_done), no code writes its bytes if they are sent, or touches them if they are received.
    pub(super) unsafe fn begin(&mut self, transfer: u32) -> Result<(), Error> {
        let Transfer { number, sends, peer, place, buffer, offset, bytes, .. } =
            self.plan.transfers[transfer as usize];
        let at = self.plan.memory.bases.get(buffer).wrapping_add(offset);
        self.open[transfer as usize] = true;
        match place {
            PeerLocation::Nearby(peer) => {
                let queues = if sends { &mut self.sends } else { &mut self.receives };
                queues[peer].push_back(Nearby { transfer, parcel: Parcel::new(number, at, bytes) });
                Ok(())
            }
            PeerLocation::Far(route) => {
                self.routes.all[route].rest.push_back(Rest { transfer, at, bytes });
                // SAFETY: the caller's promise, for this message and the messages before it.
                unsafe { self.begin_parts(route, sends, peer) }
            }
        }
    }

    /// Begins parts of a route's messages, as many as may be under way.
    ///
    /// # Safety
    /// As for [`Self::begin`], to which all messages of the route were given.
    unsafe fn begin_parts(&mut self, route: usize, sends: bool, peer: u32) -> Result<(), Error> {
        let carrier = self.routes.carrier;
        let route = &mut self.routes.all[route];
        while route.requests.len() < WINDOW
            && let Some(first) = route.rest.front_mut()
        {
            let len = first.bytes.min(carrier.piece());
            // SAFETY: the part is within the message's region, which lowering found in its buffer; the caller's
            // promise, as requests end or are cancelled before `self` is gone.
            let request = unsafe {
                if sends {
                    carrier.send(peer, self.tag, first.at, len)
                } else {
                    carrier.receive(peer, self.tag, first.at, len)
                }
            };
            route.requests.push_back((first.transfer, carried(self.plan, request)?));
            (first.at, first.bytes) = (first.at.wrapping_add(len), first.bytes - len);
            if first.bytes == 0 {
                route.rest.pop_front();
            }
        }
        Ok(())
    }

    /// Whether a message that has begun is done.
    pub(super) fn is_done(&self, transfer: u32) -> bool {
        !self.open[transfer as usize]
    }

    /// Whether a message of another host is under way.
    pub(super) fn polls(&self) -> bool {
        self.routes.all.iter().any(|route| !route.requests.is_empty())
    }

    /// Goes on with all messages, and returns whether any of them got further.
    pub(super) fn go_on(&mut self, active: &ActiveCall<'_>) -> Result<bool, Error> {
        let mut moved = false;
        for (peer, queue) in self.sends.iter_mut().enumerate() {
            while let Some(first) = queue.front_mut() {
                // SAFETY: the promise of `begin`.
                moved |= unsafe { self.counter.send(active, peer, &mut first.parcel)? };
                if !first.parcel.is_done() {
                    break;
                }
                self.open[first.transfer as usize] = false;
                queue.pop_front();
            }
        }
        for (peer, queue) in self.receives.iter_mut().enumerate() {
            while let Some(first) = queue.front_mut() {
                // SAFETY: the promise of `begin`.
                moved |= unsafe { self.counter.receive(active, peer, &mut first.parcel)? };
                if !first.parcel.is_done() {
                    break;
                }
                self.open[first.transfer as usize] = false;
                queue.pop_front();
            }
        }
        for route in 0..self.routes.all.len() {
            moved |= self.go_on_with(route)?;
        }
        Ok(moved)
    }

    /// Goes on with the messages of a route, and returns whether any of them got further. A part is polled when all
    /// parts before it have ended.
    fn go_on_with(&mut self, route: usize) -> Result<bool, Error> {
        let mut moved = false;
        while let Some((transfer, request)) = self.routes.all[route].requests.front_mut() {
            let (transfer, ended) = (*transfer, self.routes.carrier.ended(request));
            if matches!(ended, Ok(false)) {
                break;
            }
            // A request that failed is gone, too.
            self.routes.all[route].requests.pop_front();
            carried(self.plan, ended)?;
            let Transfer { sends, peer, .. } = self.plan.transfers[transfer as usize];
            // SAFETY: the promise of `begin`.
            unsafe { self.begin_parts(route, sends, peer)? };
            let next = self.routes.all[route].requests.front();
            self.open[transfer as usize] = next.is_some_and(|next| next.0 == transfer);
            moved = true;
        }
        Ok(moved)
    }

    /// Checks the reads of other ranks' memory, after all messages are done.
    pub(super) fn close(self, active: &ActiveCall<'_>) -> Result<(), Error> {
        debug_assert!(self.open.iter().all(|open| !open), "all that begins ends");
        self.counter.close(active)
    }
}

/// Returns the carrier's result. If it is an error, the world ends: messages of later calls would meet messages of this
/// call.
fn carried<T>(plan: &HostsRank, said: Result<T, Error>) -> Result<T, Error> {
    said.map_err(|error| plan.hosts.world.give_up_for(error))
}

/// Returns the tag of a call, equal for all ranks that make the same call: messages of calls that differ meet only by
/// chance.
fn tag(plan: &HostsRank, number: u64, check: bool) -> u32 {
    let call = &plan.part.call;
    let op = if call.schedule.collective.reduces() { call.op as u64 } else { 0 };
    let kind = (call.dtype as u64) << 1 | u64::from(check);
    let words = [plan.identity, call.count, kind, op, number];
    let mixed = words.into_iter().fold(0_u64, |mixed, word| {
        (mixed ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29)
    });
    (mixed >> 32) as u32 % CALLS
}
