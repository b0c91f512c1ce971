//! A carrier between threads of one process, for tests: it brings messages as early or as late as any transport may.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::carrier::Carrier;
use crate::Error;

/// The behavior of [`Channels`].
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct How {
    /// Whether a send ends only with its receive, which reads its data then; else a send ends when it begins, and its
    /// data is read at once.
    pub synchronous: bool,
    /// The most calls of [`Carrier::ended`] that return false for a request before it may end.
    pub patience: u32,
    /// The most bytes of a message.
    pub most: usize,
    /// The number of sends and receives after which all further sends and receives fail.
    pub fails_after: u64,
    /// The seed of the delays.
    pub seed: u64,
}

/// The routes between all ranks.
struct Routes {
    how: How,
    state: Mutex<ChannelState>,
}

/// A route: its sender, its receiver, and a tag.
type Route = (u32, u32, u32);

#[derive(Default)]
struct ChannelState {
    /// The number of messages begun on a route, by its sender (`true`) and by its receiver.
    begun: BTreeMap<(Route, bool), u64>,
    /// The messages that were sent and not received, by their place on their route.
    sent: BTreeMap<(Route, u64), Sent>,
    requests: BTreeMap<usize, Request>,
    last: usize,
    dice: u64,
}

enum Sent {
    Data(Vec<u8>),
    /// An address, a length, and the request.
    At(usize, usize, usize),
}

struct Request {
    route: Route,
    place: u64,
    sends: bool,
    at: usize,
    bytes: usize,
    /// The number of further calls of [`Carrier::ended`] that return false.
    patience: u32,
    done: bool,
}

/// One rank's end of all routes.
#[doc(hidden)]
pub struct Channels {
    routes: Arc<Routes>,
    rank: u32,
}

impl Channels {
    /// Makes the ends of `nranks` ranks.
    pub fn new(nranks: u32, how: How) -> Vec<Arc<Self>> {
        let state = Mutex::new(ChannelState { dice: how.seed, ..ChannelState::default() });
        let routes = Arc::new(Routes { how, state });
        (0..nranks).map(|rank| Arc::new(Self { routes: routes.clone(), rank })).collect()
    }

    /// Returns the number of requests that have not ended.
    pub fn open(&self) -> usize {
        self.state().requests.len()
    }

    fn state(&self) -> MutexGuard<'_, ChannelState> {
        self.routes.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin(&self, route: Route, sends: bool, at: *mut u8, bytes: usize) -> Result<usize, Error> {
        let (mut state, how) = (self.state(), self.routes.how);
        if state.last as u64 >= how.fails_after {
            return Err(Error::SystemRefused { what: "the test's wire is cut".to_owned() });
        }
        state.last += 1;
        state.dice = state.dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let patience = (state.dice >> 33) as u32 % (how.patience + 1);
        let begun = state.begun.entry((route, sends)).or_default();
        let place = *begun;
        *begun += 1;
        let (at, id) = (at.expose_provenance(), state.last);
        let done = sends && !how.synchronous;
        let request = Request { route, place, sends, at, bytes, patience, done };
        state.requests.insert(id, request);
        if sends {
            let sent = if how.synchronous {
                Sent::At(at, bytes, id)
            } else {
                // SAFETY: the sender lends `bytes` bytes.
                Sent::Data(unsafe { std::slice::from_raw_parts(pointer(at), bytes) }.to_vec())
            };
            state.sent.insert((route, place), sent);
        } else {
            // Rubbish, as no thread may read the buffer yet.
            // SAFETY: the receiver lends `bytes` bytes.
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
        self.routes.how.most
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
        let ChannelState { requests, sent, .. } = &mut *state;
        let asked = requests.get_mut(request).expect("it has not ended");
        if asked.patience > 0 {
            asked.patience -= 1;
            return Ok(false);
        }
        if !asked.done && !asked.sends {
            let (to, room, place) = (pointer(asked.at), asked.bytes, (asked.route, asked.place));
            let Some(message) = sent.remove(&place) else { return Ok(false) };
            let (from, bytes) = match &message {
                Sent::Data(data) => (data.as_ptr(), data.len()),
                Sent::At(at, bytes, _) => (pointer(*at).cast_const(), *bytes),
            };
            asked.done = true;
            if bytes == room {
                // SAFETY: both ends lend `bytes` bytes until they learn that the request has ended, for which they need
                // the lock.
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
        if gone.sends && self.routes.how.synchronous {
            state.sent.remove(&(gone.route, gone.place));
        }
    }
}
