//! Messages between hosts by TCP: a connection for each direction between two ranks, made when the first message is sent.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::connections::{Incoming, Mailbox, Outgoing, Request, Requests};
use super::control::{Control, gone};
use super::door::Door;
use super::failure::CarrierFailure;
use super::key::Key;
use super::root::Root;
use super::secure::Secure;
use super::survivors::Invitations;
use super::{addresses, not_joined};
use crate::network::{Carrier, ConnectionFacts, Survivors};
use crate::shared_memory::{UniqueId, addresses_in, put_addresses};
use crate::{Error, Options};

/// The use of connections between ranks.
const DATA: &[u8] = b"roundelay 1: data";
/// The most addresses of a rank, and the bytes of the record with which it tells them.
const ADDRESSES: usize = 4;
const RECORD: usize = 3 + 16 * ADDRESSES;
/// The time that a rank has to answer when a connection to it is made.
const CONNECT: Duration = Duration::from_secs(10);
/// The time in which a rank that has connected says why.
const PATIENCE: Duration = Duration::from_secs(30);
/// Bytes of a part of a message.
const PIECE: usize = 128 << 10;

/// Carries messages between the ranks of a job by TCP. Data goes in clear; the ends of a connection show each other the key
/// of the job before it.
pub struct TcpCarrier {
    rank: u32,
    key: Key,
    /// The addresses of each rank.
    peers: Vec<Vec<SocketAddr>>,
    control: Arc<Control>,
    shared: Arc<CarrierLock>,
    accepts: Option<JoinHandle<()>>,
}

/// The state that calls and the thread that takes connections share.
#[derive(Default)]
struct CarrierLock {
    stops: AtomicBool,
    state: Mutex<CarrierState>,
    invitations: Invitations,
}

#[derive(Default)]
struct CarrierState {
    outgoing: BTreeMap<u32, Outgoing>,
    incoming: BTreeMap<u32, Incoming>,
    mailboxes: BTreeMap<u32, Mailbox>,
    requests: Requests,
    last: usize,
    failure: CarrierFailure,
}

// SAFETY: the pointers of requests are used under the state's lock alone, and their memory is lent until they end.
unsafe impl Send for CarrierState {}

impl fmt::Debug for TcpCarrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TcpCarrier").field("rank", &self.rank).finish_non_exhaustive()
    }
}

impl TcpCarrier {
    pub(super) fn new(
        rank: u32,
        key: Key,
        control: Arc<Control>,
        allgather: impl FnOnce(&[u8]) -> Result<Vec<u8>, Error>,
    ) -> Result<Self, Error> {
        let door = Door::open(0).map_err(|error| {
            not_joined(format!("a port for the messages of other hosts cannot be opened: {error}"))
        })?;
        let all = allgather(&record(door.port, control.local()))?;
        let peers = all.chunks_exact(RECORD).map(addresses_in).collect();
        let shared = Arc::new(CarrierLock::default());
        let (taken, with) = (shared.clone(), key.clone());
        let accepts = thread::spawn(move || {
            let stays = || !taken.stops.load(Ordering::Relaxed);
            let shared = taken.clone();
            door.serve((&with, DATA), 0, stays, move |secure| {
                _ = shared.take(secure);
            });
        });
        Ok(Self { rank, key, peers, control, shared, accepts: Some(accepts) })
    }

    /// The rank that is gone or has ended all calls, as the root says.
    pub(crate) fn gone(&self) -> Option<Error> {
        self.control.gone()
    }

    /// Connects to a rank, which takes connections as long as its carrier is there.
    fn reach(&self, rank: u32) -> io::Result<Secure> {
        let addresses = self.peers.get(rank as usize).map_or(&[][..], Vec::as_slice);
        Secure::connect(addresses, &self.key, DATA, Instant::now() + CONNECT)
    }

    /// Returns the connection to a rank; makes it if there is none.
    fn connect(&self, to: u32) -> Result<Outgoing, Error> {
        let addresses = self.peers.get(to as usize).map_or(&[][..], Vec::as_slice);
        let made = self.reach(to).and_then(|mut secure| {
            secure.send(&self.rank.to_le_bytes())?;
            secure.stream.set_nonblocking(true)?;
            Ok(Outgoing::new(secure.stream))
        });
        made.map_err(|error| {
            if let Some(gone) = self.control.gone() {
                return gone;
            }
            let shown: Vec<_> = addresses.iter().map(ToString::to_string).collect();
            let shown = shown.join(", ");
            not_joined(format!("rank {} reaches rank {to} at none of {shown}: {error}", self.rank))
        })
    }

    fn begin(&self, request: Request) -> Result<usize, Error> {
        let (peer, sends) = (request.peer, request.sends);
        let mut state = self.shared.state();
        state.failure.check()?;
        if sends && !state.outgoing.contains_key(&peer) {
            // Others may send meanwhile.
            drop(state);
            let made = self.connect(peer)?;
            state = self.shared.state();
            state.outgoing.entry(peer).or_insert(made);
        }
        state.last += 1;
        let id = state.last;
        let CarrierState { outgoing, mailboxes, requests, .. } = &mut *state;
        let request = requests.entry(id).or_insert(request);
        let mut posted = Ok(());
        if sends {
            if let Some(to) = outgoing.get_mut(&peer) {
                to.queue.push_back(id);
            }
        } else {
            // SAFETY: the caller of `receive` lends the memory.
            posted = unsafe { mailboxes.entry(peer).or_default().post(id, request) };
        }
        let begun = posted.map_err(|error| lost_connection(peer, &error));
        match begun.and_then(|()| state.go_on_with(peer, sends, self.most())) {
            Ok(()) => Ok(id),
            // The memory is the caller's again.
            Err(error) => Err(state.fail(id, error)),
        }
    }
}

/// Returns the error of a connection to a rank, or of its messages.
pub(crate) fn lost_connection(peer: u32, error: &io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::InvalidData | io::ErrorKind::OutOfMemory => {
            not_joined(format!("the messages of rank {peer} make no sense: {error}"))
        }
        _ => gone(peer, &format!("its connection was lost ({error})")),
    }
}

impl CarrierLock {
    fn state(&self) -> MutexGuard<'_, CarrierState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the connection of a rank, whose first message is its number: the first connection of a rank stays. Or the
    /// message is an invitation.
    fn take(&self, mut secure: Secure) -> io::Result<()> {
        secure.patient_for(PATIENCE)?;
        let first = secure.receive()?;
        secure.stream.set_nonblocking(true)?;
        match first.try_into().map(u32::from_le_bytes) {
            Ok(from) => {
                self.state().incoming.entry(from).or_insert_with(|| Incoming::new(secure.stream));
            }
            Err(other) => self.invitations.put(&other),
        }
        Ok(())
    }
}

impl CarrierState {
    /// Goes on with the messages to a rank, or from it.
    fn go_on_with(&mut self, peer: u32, sends: bool, most: usize) -> Result<(), Error> {
        let Self { outgoing, incoming, mailboxes, requests, .. } = self;
        let went = if sends {
            // SAFETY: requests that have not ended lend their memory.
            outgoing.get_mut(&peer).map(|to| unsafe { to.go_on(requests) })
        } else {
            let mailbox = mailboxes.entry(peer).or_default();
            // SAFETY: requests that have not ended lend their memory.
            incoming.get_mut(&peer).map(|from| unsafe { from.go_on(mailbox, requests, most) })
        };
        match went {
            Some(Err(error)) => Err(lost_connection(peer, &error)),
            _ => Ok(()),
        }
    }

    /// Goes on with all messages.
    fn go_on(&mut self, most: usize) -> Result<(), Error> {
        let Self { outgoing, incoming, mailboxes, requests, .. } = self;
        for (peer, to) in outgoing {
            // SAFETY: requests that have not ended lend their memory.
            unsafe { to.go_on(requests) }.map_err(|error| lost_connection(*peer, &error))?;
        }
        for (peer, from) in incoming {
            let mailbox = mailboxes.entry(*peer).or_default();
            // SAFETY: requests that have not ended lend their memory.
            let went = unsafe { from.go_on(mailbox, requests, most) };
            went.map_err(|error| lost_connection(*peer, &error))?;
            if from.closed && from.is_awaited(mailbox) {
                return Err(gone(*peer, "its connection was closed"));
            }
        }
        Ok(())
    }

    /// Ends a request, and all that are to come, with an error.
    fn fail(&mut self, request: usize, error: Error) -> Error {
        self.requests.remove(&request);
        self.failure.set(error)
    }
}

impl Carrier for TcpCarrier {
    fn piece(&self) -> usize {
        PIECE
    }

    unsafe fn send(
        &self,
        to: u32,
        tag: u32,
        from: *const u8,
        bytes: usize,
    ) -> Result<usize, Error> {
        self.begin(Request { peer: to, done: false, tag, at: from.cast_mut(), bytes, sends: true })
    }

    unsafe fn receive(
        &self,
        from: u32,
        tag: u32,
        to: *mut u8,
        bytes: usize,
    ) -> Result<usize, Error> {
        self.begin(Request { peer: from, done: false, tag, at: to, bytes, sends: false })
    }

    fn ended(&self, request: &mut usize) -> Result<bool, Error> {
        let mut state = self.shared.state();
        if !state.requests.get(request).is_none_or(|request| request.done) {
            let looked = state.failure.look(|| self.control.gone());
            if let Err(error) = looked.and_then(|()| state.go_on(self.most())) {
                // The rank that is gone may be another than the one whose connection shows it first.
                let error = self.control.gone().unwrap_or(error);
                return Err(state.fail(*request, error));
            }
        }
        if state.requests.get(request).is_some_and(|request| !request.done) {
            return Ok(false);
        }
        state.requests.remove(request);
        Ok(true)
    }

    fn abort(&self, why: &str) {
        self.control.abort(why);
    }

    fn connection(&self, to: u32) -> Option<ConnectionFacts> {
        self.shared.state().outgoing.get(&to)?.facts()
    }

    fn name(&self) -> String {
        let own = self.control.local().map(|address| address.ip().to_canonical());
        match own.and_then(|ip| Some((addresses::interface(ip)?, ip))) {
            Some((interface, ip)) => format!("TCP over {interface}, {ip}"),
            None => "TCP".to_owned(),
        }
    }

    fn open_place(&self, options: Options) -> Result<UniqueId, Error> {
        // The ranks tell each other the id by messages, which are not encrypted.
        let salt = Key::new()?;
        let root = Root::open(0, &self.key.of_part(&salt.0), None, options.deadline)?;
        UniqueId::of_addresses(root.addresses(), &salt.0)
    }

    fn with_key(&self, id: &UniqueId) -> Result<UniqueId, Error> {
        id.check_bytes()?;
        let addresses = id.addresses().unwrap_or_default();
        UniqueId::of_addresses(&addresses, &self.key.of_part(&id.secret()).0)
    }

    fn survivors(&self, options: Options) -> Result<Survivors, Error> {
        let places = [self.rank, self.peers.len() as u32];
        self.shared.invitations.agree(places, options, |rank| self.reach(rank))
    }

    fn cancel(&self, request: usize) {
        let mut state = self.shared.state();
        let Some(taken) = state.requests.remove(&request) else { return };
        // The rest of the message has nowhere to go: no later message may come behind it.
        if !taken.done {
            let reads = |from: &Incoming| from.reads_into() == Some(request);
            if taken.sends {
                state.outgoing.remove(&taken.peer);
            } else if state.incoming.get(&taken.peer).is_some_and(reads) {
                state.incoming.remove(&taken.peer);
            }
            state.mailboxes.values_mut().for_each(|from| from.forget(request));
            state.failure.set_cut();
        }
    }
}

impl Drop for TcpCarrier {
    fn drop(&mut self) {
        self.shared.stops.store(true, Ordering::Relaxed);
        if let Some(accepts) = self.accepts.take() {
            _ = accepts.join();
        }
    }
}

/// Returns the record with which a rank tells its addresses: that by which it reached the root first.
fn record(port: u16, root: Option<SocketAddr>) -> [u8; RECORD] {
    let reached = root.map(|address| address.ip().to_canonical()).filter(|ip| !ip.is_loopback());
    let mut own = addresses::own(port);
    if let Some(reached) = reached {
        own.retain(|address| address.ip() != reached);
        own.insert(0, SocketAddr::new(reached, port));
    }
    let mut record = [0; RECORD];
    put_addresses(&mut record, &own);
    record
}
