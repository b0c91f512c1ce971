//! A carrier between threads of one process, for tests: it brings messages as early or as late as any transport may.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::carrier::Carrier;
use crate::Error;

/// How messages travel.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct How {
    /// Whether a send ends only with its receive, and its data is read then; else both are done when it begins.
    pub synchronous: bool,
    /// How often at most an end is asked for in vain.
    pub patience: u32,
    /// The most bytes of a message.
    pub most: usize,
    /// After so many sends and receives all others fail.
    pub fails_after: u64,
    /// What the delays follow from.
    pub seed: u64,
}

/// The ways between all ranks.
struct Ways {
    how: How,
    state: Mutex<State>,
}

/// From a rank to a rank, by a tag.
type Way = (u32, u32, u32);

#[derive(Default)]
struct State {
    /// How many messages were begun on a way: by its sender, and by its receiver.
    begun: HashMap<(Way, bool), u64>,
    /// What was sent and not received, by its place on its way.
    sent: HashMap<(Way, u64), Sent>,
    requests: HashMap<usize, Request>,
    last: usize,
    dice: u64,
}

enum Sent {
    Data(Vec<u8>),
    /// An address, a length, and the request.
    At(usize, usize, usize),
}

struct Request {
    way: Way,
    place: u64,
    sends: bool,
    at: usize,
    bytes: usize,
    /// How often it is asked for in vain.
    patience: u32,
    done: bool,
}

/// One rank's end of all ways.
#[doc(hidden)]
pub struct Channels {
    ways: Arc<Ways>,
    rank: u32,
}

impl Channels {
    /// The ends of so many ranks.
    pub fn new(nranks: u32, how: How) -> Vec<Arc<Self>> {
        let state = Mutex::new(State { dice: how.seed, ..State::default() });
        let ways = Arc::new(Ways { how, state });
        (0..nranks).map(|rank| Arc::new(Self { ways: ways.clone(), rank })).collect()
    }

    /// How many requests have not ended.
    pub fn open(&self) -> usize {
        self.state().requests.len()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.ways.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin(&self, way: Way, sends: bool, at: *mut u8, bytes: usize) -> Result<usize, Error> {
        let (mut state, how) = (self.state(), self.ways.how);
        if state.last as u64 >= how.fails_after {
            return Err(Error::SystemRefused { what: "the test's wire is cut".to_owned() });
        }
        state.last += 1;
        state.dice = state.dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let patience = (state.dice >> 33) as u32 % (how.patience + 1);
        let begun = state.begun.entry((way, sends)).or_default();
        let place = *begun;
        *begun += 1;
        let (at, id) = (at.expose_provenance(), state.last);
        let done = sends && !how.synchronous;
        let request = Request { way, place, sends, at, bytes, patience, done };
        state.requests.insert(id, request);
        if sends {
            let sent = if how.synchronous {
                Sent::At(at, bytes, id)
            } else {
                // SAFETY: whoever sends lends so many bytes.
                Sent::Data(unsafe { std::slice::from_raw_parts(pointer(at), bytes) }.to_vec())
            };
            state.sent.insert((way, place), sent);
        } else {
            // What nobody may read yet.
            // SAFETY: whoever receives lends so many bytes.
            unsafe { pointer(at).write_bytes(0xBA, bytes) };
        }
        Ok(id)
    }
}

fn pointer(at: usize) -> *mut u8 {
    std::ptr::with_exposed_provenance_mut(at)
}

impl Carrier for Channels {
    fn most(&self) -> usize {
        self.ways.how.most
    }

    unsafe fn send(
        &self,
        to: u32,
        tag: u32,
        from: *const u8,
        bytes: usize,
    ) -> Result<usize, Error> {
        self.begin((self.rank, to, tag), true, from.cast_mut(), bytes)
    }

    unsafe fn receive(
        &self,
        from: u32,
        tag: u32,
        to: *mut u8,
        bytes: usize,
    ) -> Result<usize, Error> {
        self.begin((from, self.rank, tag), false, to, bytes)
    }

    fn ended(&self, request: &mut usize) -> Result<bool, Error> {
        let mut state = self.state();
        let State { requests, sent, .. } = &mut *state;
        let asked = requests.get_mut(request).expect("it has not ended");
        if asked.patience > 0 {
            asked.patience -= 1;
            return Ok(false);
        }
        if !asked.done && !asked.sends {
            let (to, room, place) = (pointer(asked.at), asked.bytes, (asked.way, asked.place));
            let Some(message) = sent.remove(&place) else { return Ok(false) };
            let (from, bytes) = match &message {
                Sent::Data(data) => (data.as_ptr(), data.len()),
                Sent::At(at, bytes, _) => (pointer(*at).cast_const(), *bytes),
            };
            asked.done = true;
            if bytes == room {
                // SAFETY: both ends lend so many bytes until they are told that it has ended, for which they need the
                // lock.
                unsafe { from.copy_to_nonoverlapping(to, bytes) };
            }
            if let Sent::At(_, _, id) = message
                && let Some(sender) = requests.get_mut(&id)
            {
                sender.done = true;
            }
            if bytes != room {
                requests.remove(request);
                let what = format!("a message of {bytes} bytes where {room} were expected");
                return Err(Error::SystemRefused { what });
            }
        }
        let done = requests[request].done;
        if done {
            requests.remove(request);
        }
        Ok(done)
    }

    fn cancel(&self, request: usize) {
        let mut state = self.state();
        let Some(gone) = state.requests.remove(&request) else { return };
        if gone.sends && self.ways.how.synchronous {
            state.sent.remove(&(gone.way, gone.place));
        }
    }
}
