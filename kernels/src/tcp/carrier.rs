//! Messages between hosts by TCP: a connection for each direction between two ranks, made when the first message is sent.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};

use super::connections::{Incoming, Mailbox, Outgoing, Request, Requests};
use super::control::{Control, gone};
use super::key::Key;
use super::root::timespec;
use super::secure::Secure;
use super::{addresses, not_joined};
use crate::Error;
use crate::network::Carrier;

/// The use of connections between ranks.
const DATA: &[u8] = b"roundelay 1: data";
/// The most addresses of a rank, and the bytes of the record with which it tells them.
const ADDRESSES: usize = 4;
const RECORD: usize = 4 + 16 * ADDRESSES;
/// The time that a rank has to answer when a connection to it is made.
const CONNECT: Duration = Duration::from_secs(10);
/// The time between two looks for ranks that are gone.
const LOOK: Duration = Duration::from_millis(20);
/// The most connections that have not shown the key at a time.
const STRANGERS: usize = 64;
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
struct CarrierLock {
    stops: AtomicBool,
    state: Mutex<CarrierState>,
}

#[derive(Default)]
struct CarrierState {
    outgoing: BTreeMap<u32, Outgoing>,
    incoming: BTreeMap<u32, Incoming>,
    mailboxes: BTreeMap<u32, Mailbox>,
    requests: Requests,
    last: usize,
    looked: Option<Instant>,
    failed: Option<Error>,
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
        let any: [IpAddr; 2] = [Ipv6Addr::UNSPECIFIED.into(), Ipv4Addr::UNSPECIFIED.into()];
        let opened = any.iter().map(|ip| TcpListener::bind((*ip, 0))).reduce(Result::or);
        let refused = |error: io::Error| {
            not_joined(format!("a port for the messages of other hosts cannot be opened: {error}"))
        };
        let listener = opened.expect("two addresses").map_err(refused)?;
        let port = listener.local_addr().map_err(refused)?.port();
        let all = allgather(&record(port, control.local()))?;
        let peers = all.chunks_exact(RECORD).map(addresses_of).collect();
        let shared =
            Arc::new(CarrierLock { stops: AtomicBool::new(false), state: Mutex::default() });
        let (taken, with) = (shared.clone(), key.clone());
        let accepts = thread::spawn(move || accept(&listener, &with, &taken));
        Ok(Self { rank, key, peers, control, shared, accepts: Some(accepts) })
    }

    /// Returns the connection to a rank; makes it if there is none.
    fn connect(&self, to: u32) -> Result<Outgoing, Error> {
        let addresses = self.peers.get(to as usize).map_or(&[][..], Vec::as_slice);
        let made = Secure::connect(addresses, &self.key, DATA, Instant::now() + CONNECT);
        let made = made.and_then(|mut secure| {
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
        if let Some(failed) = &state.failed {
            return Err(failed.clone());
        }
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
        if sends {
            if let Some(to) = outgoing.get_mut(&peer) {
                to.queue.push_back(id);
            }
        } else {
            // SAFETY: the caller of `receive` lends the memory.
            let posted = unsafe { mailboxes.entry(peer).or_default().post(id, request) };
            posted.map_err(|error| wrong(peer, &error))?;
        }
        state.go_on_with(peer, sends, self.most())?;
        Ok(id)
    }
}

/// Returns the error of a connection.
fn wrong(peer: u32, error: &io::Error) -> Error {
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
            Some(Err(error)) => Err(wrong(peer, &error)),
            _ => Ok(()),
        }
    }

    /// Goes on with all messages.
    fn go_on(&mut self, most: usize) -> Result<(), Error> {
        let sends: Vec<u32> = self
            .outgoing
            .iter()
            .filter(|(_, to)| !to.queue.is_empty())
            .map(|(peer, _)| *peer)
            .collect();
        // A receive whose message has begun to come waits no more, and is not done.
        let reads =
            |peer: u32| self.incoming.get(&peer).is_some_and(|from| from.reads_into().is_some());
        let receives: Vec<u32> = (self.mailboxes.iter())
            .filter(|(peer, from)| from.waits() || reads(**peer))
            .map(|(peer, _)| *peer)
            .collect();
        for peer in sends {
            self.go_on_with(peer, true, most)?;
        }
        for peer in receives {
            self.go_on_with(peer, false, most)?;
            let closed = self.incoming.get(&peer).filter(|from| from.closed);
            if closed
                .is_some_and(|from| self.mailboxes[&peer].waits() || from.reads_into().is_some())
            {
                return Err(gone(peer, "its connection was closed"));
            }
        }
        Ok(())
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
            let mut failed = state.failed.clone();
            if failed.is_none() && state.looked.is_none_or(|looked| looked.elapsed() > LOOK) {
                state.looked = Some(Instant::now());
                failed = self.control.gone();
            }
            let went = failed.map_or_else(|| state.go_on(self.most()), Err);
            if let Err(error) = went {
                // The rank that is gone may be another than the one whose connection shows it first.
                let error = self.control.gone().unwrap_or(error);
                state.failed = Some(error.clone());
                state.requests.remove(request);
                return Err(error);
            }
        }
        if state.requests.get(request).is_some_and(|request| !request.done) {
            return Ok(false);
        }
        state.requests.remove(request);
        Ok(true)
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
            for waiting in state.mailboxes.values_mut().flat_map(|from| from.posted.values_mut()) {
                waiting.retain(|id| *id != request);
            }
            state.failed.get_or_insert_with(|| {
                not_joined("a call of this world failed with messages under way".to_owned())
            });
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

/// Takes connections of other ranks until the carrier is dropped.
fn accept(listener: &TcpListener, key: &Key, shared: &Arc<CarrierLock>) {
    let open = Arc::new(AtomicUsize::new(0));
    if listener.set_nonblocking(true).is_err() {
        return;
    }
    while !shared.stops.load(Ordering::Relaxed) {
        let mut fds = [PollFd::new(listener, PollFlags::IN)];
        _ = poll(&mut fds, Some(&timespec(LOOK)));
        let stream = match listener.accept() {
            Ok((stream, _)) => stream,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
            Err(_) => {
                thread::sleep(LOOK);
                continue;
            }
        };
        if open.fetch_add(1, Ordering::Relaxed) >= STRANGERS {
            open.fetch_sub(1, Ordering::Relaxed);
            continue;
        }
        let (key, shared, opened) = (key.clone(), shared.clone(), open.clone());
        let hears = move || {
            let met = stream.set_nonblocking(false).and_then(|()| {
                let mut secure = Secure::accept(stream, &key, DATA)?;
                let from = secure.receive()?;
                secure.stream.set_nonblocking(true)?;
                Ok((from, secure.stream))
            });
            opened.fetch_sub(1, Ordering::Relaxed);
            if let Ok((from, stream)) = met
                && let Ok(from) = from.try_into().map(u32::from_le_bytes)
            {
                // The first connection of a rank stays.
                shared.state().incoming.entry(from).or_insert_with(|| Incoming::new(stream));
            }
        };
        if thread::Builder::new().stack_size(256 << 10).spawn(hears).is_err() {
            open.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// Returns the record with which a rank tells its addresses: that by which it reached the root first.
fn record(port: u16, root: Option<SocketAddr>) -> [u8; RECORD] {
    let reached = root.map(|address| address.ip().to_canonical()).filter(|ip| !ip.is_loopback());
    let mut own = addresses::own();
    if let Some(reached) = reached {
        own.retain(|ip| *ip != reached);
        own.insert(0, reached);
    }
    let mut record = [0; RECORD];
    record[..2].copy_from_slice(&port.to_le_bytes());
    record[2] = own.len().min(ADDRESSES) as u8;
    for (place, ip) in record[4..].chunks_exact_mut(16).zip(own) {
        let ip = match ip {
            IpAddr::V4(v4) => v4.to_ipv6_mapped(),
            IpAddr::V6(v6) => v6,
        };
        place.copy_from_slice(&ip.octets());
    }
    record
}

fn addresses_of(record: &[u8]) -> Vec<SocketAddr> {
    let port = u16::from_le_bytes([record[0], record[1]]);
    let places = record[4..].chunks_exact(16).take(record[2].into());
    let address = |place: &[u8]| {
        let mut octets = [0; 16];
        octets.copy_from_slice(place);
        SocketAddr::new(IpAddr::from(octets).to_canonical(), port)
    };
    places.map(address).collect()
}
