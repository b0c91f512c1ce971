//! The messages of a call that are under way, in the memory of this host and between hosts.

use std::collections::VecDeque;

use super::carrier::{Carrier, TAGS};
use super::form::{HostsPlan, Leg};
use crate::Error;
use crate::process::{Counter, Parcel, Visit};

/// Tags of calls are below this number; those above are for messages beside calls.
pub(super) const CALLS: u32 = TAGS / 2;

/// A message in the memory of this host, with its place among the rank's own.
struct Nearby {
    leg: u32,
    parcel: Parcel,
}

/// What a rank has begun and not ended.
pub(super) struct Traffic<'c, 'w> {
    plan: &'c HostsPlan,
    visit: &'c Visit<'w>,
    counter: Counter<'w>,
    /// Of each rank of this host, what goes there and what comes from there, in order.
    sends: Vec<VecDeque<Nearby>>,
    receives: Vec<VecDeque<Nearby>>,
    /// What the carrier has, with the message that it is a part of.
    requests: Requests<'c>,
    /// How many parts of each message are under way.
    open: Vec<u32>,
    tag: u32,
}

/// Requests of a carrier. Whatever ends the call, nothing of them is left when this is dropped.
struct Requests<'c> {
    carrier: &'c dyn Carrier,
    all: Vec<(u32, usize)>,
}

impl Drop for Requests<'_> {
    fn drop(&mut self) {
        for (_, request) in self.all.drain(..) {
            self.carrier.cancel(request);
        }
    }
}

impl<'c, 'w> Traffic<'c, 'w> {
    pub(super) fn new(plan: &'c HostsPlan, visit: &'c Visit<'w>, counter: Counter<'w>) -> Self {
        let queues = || {
            let nranks = plan.hosts.world.nranks();
            (0..nranks).map(|_| VecDeque::new()).collect()
        };
        Self {
            plan,
            visit,
            counter,
            sends: queues(),
            receives: queues(),
            requests: Requests { carrier: &*plan.hosts.carrier, all: Vec::new() },
            open: vec![0; plan.legs.len()],
            tag: tag(plan, visit.number()),
        }
    }

    /// Begins a message.
    ///
    /// # Safety
    /// The bases point at the rank's buffers, which are good until this is dropped; what is sent is not written, and
    /// what is received is not touched, until the message [is done](Self::is_done).
    pub(super) unsafe fn begin(&mut self, leg: u32) -> Result<(), Error> {
        let Leg { number, sends, peer, nearby, buffer, offset, bytes, .. } =
            self.plan.legs[leg as usize];
        let at = self.plan.bases.get(buffer).wrapping_add(offset);
        if let Some(peer) = nearby {
            let queues = if sends { &mut self.sends } else { &mut self.receives };
            queues[peer].push_back(Nearby { leg, parcel: Parcel::new(number, at, bytes) });
            self.open[leg as usize] += 1;
            return Ok(());
        }
        let carrier = self.requests.carrier;
        for first in (0..bytes).step_by(carrier.most()) {
            let (at, len) = (at.wrapping_add(first), carrier.most().min(bytes - first));
            // SAFETY: within the message's region, which lowering found in its buffer; the caller's promise, as requests
            // end or are cancelled before this is gone.
            let request = unsafe {
                if sends {
                    carrier.send(peer, self.tag, at, len)
                } else {
                    carrier.receive(peer, self.tag, at, len)
                }
            };
            self.requests.all.push((leg, self.carried(request)?));
            self.open[leg as usize] += 1;
        }
        Ok(())
    }

    /// Whether a message that has begun is done.
    pub(super) fn is_done(&self, leg: u32) -> bool {
        self.open[leg as usize] == 0
    }

    /// Whether a message of another host is under way.
    pub(super) fn polls(&self) -> bool {
        !self.requests.all.is_empty()
    }

    /// Goes on with all messages, and says whether anything happened.
    pub(super) fn go_on(&mut self) -> Result<bool, Error> {
        let mut moved = false;
        for (peer, queue) in self.sends.iter_mut().enumerate() {
            while let Some(first) = queue.front_mut() {
                // SAFETY: the promise of `begin`.
                moved |= unsafe { self.counter.send(self.visit, peer, &mut first.parcel)? };
                if !first.parcel.is_done() {
                    break;
                }
                self.open[first.leg as usize] -= 1;
                queue.pop_front();
            }
        }
        for (peer, queue) in self.receives.iter_mut().enumerate() {
            while let Some(first) = queue.front_mut() {
                // SAFETY: the promise of `begin`.
                moved |= unsafe { self.counter.receive(self.visit, peer, &mut first.parcel)? };
                if !first.parcel.is_done() {
                    break;
                }
                self.open[first.leg as usize] -= 1;
                queue.pop_front();
            }
        }
        let mut at = 0;
        while let Some((leg, request)) = self.requests.all.get_mut(at) {
            let (leg, ended) = (*leg, self.requests.carrier.ended(request));
            if matches!(ended, Ok(false)) {
                at += 1;
                continue;
            }
            // One that failed is gone, too.
            self.requests.all.swap_remove(at);
            self.carried(ended)?;
            self.open[leg as usize] -= 1;
            moved = true;
        }
        Ok(moved)
    }

    /// What the carrier says. Where it fails, this world ends: messages of later calls would meet those of this one.
    fn carried<T>(&self, said: Result<T, Error>) -> Result<T, Error> {
        said.map_err(|error| self.plan.hosts.world.give_up_for(error))
    }

    /// After all messages are done.
    pub(super) fn close(self) -> Result<(), Error> {
        debug_assert!(self.open.iter().all(|open| *open == 0), "all that begins ends");
        self.counter.close(self.visit)
    }
}

/// A number that ranks have in common which make the same call: messages of calls that differ do not meet, but by
/// chance.
fn tag(plan: &HostsPlan, number: u64) -> u32 {
    let call = &plan.call;
    let op = if call.schedule.collective.reduces() { call.op as u64 } else { 0 };
    let words = [plan.identity, call.count, call.dtype as u64, op, number];
    let mixed = words.into_iter().fold(0_u64, |mixed, word| {
        (mixed ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29)
    });
    (mixed >> 32) as u32 % CALLS
}
