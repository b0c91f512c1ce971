//! Messages between hosts by UCX. Ranks meet by TCP, and tell each other there the addresses of their workers.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::functions::{Status, TRUNCATED, UNDER_WAY};
use super::library::Library;
use super::worker::{Armed, Operation, Worker, await_event};
use crate::network::{Carrier, Survivors};
use crate::shared_memory::UniqueId;
use crate::tcp::{CarrierFailure, TcpCarrier, TcpJob, lost_connection, not_joined, other_length};
use crate::{Error, Options};

/// Bytes of a part of a message.
const PIECE: usize = 1 << 20;
/// The bytes with which a rank tells the length of its address and its version.
const RECORD: usize = 32;
/// The time in which messages that a lost rank has sent may still come.
const GRACE: Duration = Duration::from_millis(20);
/// The time in which a receive that is taken back ends by itself, and the longest time that an operation may take whose
/// endpoint was closed.
const SOON: Duration = Duration::from_millis(20);
const PATIENCE: Duration = Duration::from_secs(10);
/// The time for which a look of a call for messages counts, and the longest sleep of the thread that looks otherwise.
const ATTENDED: Duration = Duration::from_millis(2);
const ROUND: Duration = Duration::from_secs(1);
/// The time in which the last messages leave this process.
const LEAVING: Duration = Duration::from_secs(2);

/// Carries messages between the ranks of a job by UCX: each rank has a worker, whose address the others were told by the
/// encrypted exchange at which the ranks met. **Data is neither encrypted nor authenticated**: a worker takes the messages of
/// any process that knows its address.
pub struct UcxCarrier {
    rank: u32,
    /// The address of each rank's worker.
    addresses: Vec<Vec<u8>>,
    shared: Arc<UcxLock>,
    attends: Option<JoinHandle<()>>,
    /// The carrier by which the ranks have met, hear of each other's end, and make other worlds. It is dropped last.
    meeting: TcpCarrier,
}

/// The state that calls share with the thread that attends to messages while no call does.
struct UcxLock {
    stops: AtomicBool,
    state: Mutex<UcxState>,
}

struct UcxState {
    worker: Worker,
    /// The time at which a call looked for messages last.
    polled: Option<Instant>,
    requests: BTreeMap<usize, UcxRequest>,
    last: usize,
    failure: CarrierFailure,
}

/// A send or a receive that has not ended.
#[derive(Clone, Copy)]
struct UcxRequest {
    peer: u32,
    tag: u32,
    bytes: usize,
    sends: bool,
    /// The library's operation, unless it has ended.
    operation: Option<Operation>,
}

// SAFETY: operations are used under the lock of the state alone, with the worker, which any thread may call.
unsafe impl Send for UcxRequest {}

impl fmt::Debug for UcxCarrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UcxCarrier").field("rank", &self.rank).finish_non_exhaustive()
    }
}

/// Returns the record of an address's length and a version.
fn record(len: usize, version: &str) -> [u8; RECORD] {
    let mut record = [0; RECORD];
    record[..4].copy_from_slice(&(len as u32).to_le_bytes());
    let text = version.bytes().take(RECORD - 4);
    record[4..].iter_mut().zip(text).for_each(|(to, from)| *to = from);
    record
}

/// Returns the length and the version of a record.
fn read(record: &[u8]) -> Option<(usize, &[u8])> {
    let (len, version) = record.split_first_chunk()?;
    let text = version.split(|byte| *byte == 0).next()?;
    Some((u32::from_le_bytes(*len) as usize, text))
}

/// Returns the 64 bits by which a message and its receive meet.
fn full_tag(sender: u32, tag: u32) -> u64 {
    u64::from(sender) << u32::BITS | u64::from(tag)
}

impl UcxCarrier {
    /// Finds the library: a rank that has none says so before the ranks make their carriers.
    ///
    /// # Errors
    /// E0427 where there is none, or it cannot be used.
    pub fn find_library() -> Result<(), Error> {
        Library::get().map(drop)
    }

    /// A carrier of messages to the ranks of other hosts: all ranks of the job call it.
    ///
    /// # Errors
    /// E0427 where there is no library, a rank has none, or a rank is gone.
    pub fn of_job(job: &TcpJob) -> Result<Self, Error> {
        let begun = Library::get().and_then(|library| {
            let worker = Worker::new(library).map_err(not_joined)?;
            let address = worker.address().map_err(not_joined)?;
            Ok((worker, address))
        });
        // A rank without a worker has no address, and the others wait for none.
        let (own, version) = begun
            .as_ref()
            .map_or((&[][..], ""), |(worker, address)| (address, &worker.library.version));
        let told = job.allgather(&record(own.len(), version))?;
        let told: Vec<(usize, &[u8])> = told.chunks_exact(RECORD).filter_map(read).collect();
        let most = told.iter().map(|(len, _)| *len).max().unwrap_or(0);
        let mut padded = own.to_vec();
        padded.resize(most, 0);
        let all = job.allgather(&padded)?;
        let (worker, _) = begun?;
        if let Some(rank) = told.iter().position(|(len, _)| *len == 0) {
            return Err(not_joined(format!("rank {rank} cannot send by UCX, as it says")));
        }
        // UCX ends the process where a message of another version makes no sense to it.
        let (rank, mine) = (job.rank, told[job.rank as usize].1);
        if let Some(other) = told.iter().position(|(_, version)| *version != mine) {
            let [mine, others] = [mine, told[other].1].map(String::from_utf8_lossy);
            return Err(not_joined(format!(
                "rank {rank} has UCX {mine}, and rank {other} UCX {others}, and UCX takes no messages of other versions; give all hosts one, by ROUNDELAY_UCX_LIB"
            )));
        }
        let parts = all.chunks_exact(most).zip(&told);
        let addresses = parts.map(|(part, (len, _))| part[..*len].to_vec()).collect();
        let (requests, failure) = (BTreeMap::new(), CarrierFailure::default());
        let state = UcxState { worker, polled: None, requests, last: 0, failure };
        let shared = UcxLock { stops: AtomicBool::new(false), state: Mutex::new(state) };
        let (meeting, shared) = (job.tcp_carrier()?, Arc::new(shared));
        let attended = shared.clone();
        let attends = Some(thread::spawn(move || attended.attend()));
        Ok(Self { rank, addresses, shared, attends, meeting })
    }

    /// Begins a send or a receive of a rank, by `begin`.
    fn begin(
        &self,
        request: UcxRequest,
        begin: impl FnOnce(&mut Worker) -> Result<Option<Operation>, Status>,
    ) -> Result<usize, Error> {
        let mut state = self.shared.state();
        state.failure.check()?;
        let peer = request.peer;
        let address = self.addresses.get(peer as usize).map_or(&[][..], Vec::as_slice);
        let made = match state.worker.connect(peer, address) {
            // The rank may have sent its message and left.
            Err(_) if !request.sends => Ok(()),
            made => made.map_err(not_joined),
        };
        let begun = made.and_then(|()| {
            begin(&mut state.worker).map_err(|status| lost(&state.worker, peer, status))
        });
        match begun {
            Ok(operation) => {
                state.last += 1;
                let id = state.last;
                state.requests.insert(id, UcxRequest { operation, ..request });
                Ok(id)
            }
            Err(error) => Err(state.failure.set(self.meeting.gone().unwrap_or(error))),
        }
    }
}

impl UcxLock {
    fn state(&self) -> MutexGuard<'_, UcxState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Goes on with messages while no call does: the other end may need this one for a message that has ended here. The
    /// thread sleeps until the library's descriptor wakes it.
    fn attend(&self) {
        while !self.stops.load(Ordering::Relaxed) {
            let mut state = self.state();
            if state.polled.is_some_and(|polled| polled.elapsed() < ATTENDED) {
                drop(state);
                thread::sleep(ATTENDED);
                continue;
            }
            while state.worker.progress() {}
            let armed = state.worker.arm();
            drop(state);
            match armed {
                Armed::Wakes(descriptor) => await_event(descriptor, ROUND),
                Armed::HasWork => {}
                Armed::Never => thread::sleep(ATTENDED),
            }
        }
    }
}

impl UcxState {
    /// Whether a request has ended; it is removed then.
    fn step(&mut self, id: usize) -> Result<bool, Error> {
        let Some(request) = self.requests.get_mut(&id) else { return Ok(true) };
        if let Some(operation) = request.operation {
            let (status, len) = if request.sends {
                (self.worker.result(operation), request.bytes)
            } else {
                self.worker.received(operation)
            };
            if status == UNDER_WAY {
                return Ok(false);
            }
            request.operation = None;
            let request = *request;
            self.worker.free(operation);
            self.worker.check(&request, status, len)?;
        }
        self.requests.remove(&id);
        Ok(true)
    }

    /// Returns the error of a receive from a rank that is lost.
    fn find_lost(&mut self, id: usize) -> Result<(), Error> {
        let request = self.requests.get(&id).filter(|request| !request.sends);
        let Some(peer) = request.map(|request| request.peer) else { return Ok(()) };
        match self.worker.lost(peer) {
            Some((status, known)) if known > GRACE => Err(lost(&self.worker, peer, status)),
            _ => Ok(()),
        }
    }

    /// Takes back a request, whose memory is then the caller's again.
    fn take_back(&mut self, id: usize) {
        let Some(UcxRequest { peer, sends, operation, .. }) = self.requests.remove(&id) else {
            return;
        };
        let Some(operation) = operation else { return };
        if !sends {
            self.worker.cancel(operation);
        }
        if sends || !self.worker.until_ended(operation, SOON) {
            // The library takes back no message that has begun, but ends those of an endpoint that is closed.
            self.worker.close(peer);
            if !self.worker.until_ended(operation, PATIENCE) {
                // The message's memory is about to be reused, while the library may read it or write there.
                eprintln!("roundelay: a message under way cannot be taken back from UCX");
                std::process::abort();
            }
        }
        self.worker.free(operation);
    }

    /// Ends a request, and all that are to come, with an error.
    fn fail(&mut self, id: usize, error: Error) -> Error {
        self.take_back(id);
        self.failure.set(error)
    }
}

impl Worker {
    /// Returns the error of an operation that has ended.
    fn check(&self, request: &UcxRequest, status: Status, len: usize) -> Result<(), Error> {
        let UcxRequest { peer, tag, bytes, .. } = *request;
        if status == TRUNCATED || status == 0 && len != bytes {
            return Err(lost_connection(peer, &other_length(tag, len, bytes)));
        }
        if status == 0 { Ok(()) } else { Err(lost(self, peer, status)) }
    }
}

/// Returns the error of a rank that is lost.
fn lost(worker: &Worker, peer: u32, status: Status) -> Error {
    lost_connection(peer, &io::Error::other(format!("UCX: {}", worker.library.text(status))))
}

impl Carrier for UcxCarrier {
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
        let request = UcxRequest { peer: to, tag, bytes, sends: true, operation: None };
        let tag = full_tag(self.rank, tag);
        // SAFETY: the caller's promise: the operation ends before the request has ended or was cancelled.
        self.begin(request, |worker| unsafe { worker.send(to, tag, from, bytes) })
    }

    unsafe fn receive(
        &self,
        from: u32,
        tag: u32,
        to: *mut u8,
        bytes: usize,
    ) -> Result<usize, Error> {
        let request = UcxRequest { peer: from, tag, bytes, sends: false, operation: None };
        let tag = full_tag(from, tag);
        // SAFETY: as for `send`.
        self.begin(request, |worker| unsafe { worker.receive(tag, to, bytes) })
    }

    fn ended(&self, request: &mut usize) -> Result<bool, Error> {
        let mut state = self.shared.state();
        let mut ended = state.step(*request);
        if ended == Ok(false) {
            state.polled = Some(Instant::now());
            let looked = state.failure.look(|| self.meeting.gone());
            ended = looked.and_then(|()| {
                let went = state.worker.progress();
                let ended = state.step(*request)?;
                if !ended && !went {
                    state.find_lost(*request)?;
                }
                Ok(ended)
            });
        }
        ended.map_err(|error| {
            // The rank that is gone may be another than the one whose connection shows it first.
            state.fail(*request, self.meeting.gone().unwrap_or(error))
        })
    }

    fn cancel(&self, request: usize) {
        let mut state = self.shared.state();
        if !matches!(state.step(request), Ok(true)) {
            state.take_back(request);
            state.failure.set_cut();
        }
    }

    fn abort(&self, why: &str) {
        self.meeting.abort(why);
    }

    fn name(&self) -> String {
        let state = self.shared.state();
        let name = format!("UCX {}", state.worker.library.version);
        let transports: Vec<_> = state.worker.transports().into_iter().collect();
        match (&transports[..], std::env::var("UCX_TLS")) {
            ([], Ok(named)) => format!("{name} over UCX_TLS={named}"),
            ([], Err(_)) => name,
            (all, _) => format!("{name} over {}", all.join(", ")),
        }
    }

    fn open_place(&self, options: Options) -> Result<UniqueId, Error> {
        self.meeting.open_place(options)
    }

    fn with_key(&self, id: &UniqueId) -> Result<UniqueId, Error> {
        self.meeting.with_key(id)
    }

    fn survivors(&self, options: Options) -> Result<Survivors, Error> {
        self.meeting.survivors(options)
    }
}

impl Drop for UcxCarrier {
    fn drop(&mut self) {
        self.shared.stops.store(true, Ordering::Relaxed);
        self.shared.state().worker.wake();
        if let Some(attends) = self.attends.take() {
            _ = attends.join();
        }
        let mut state = self.shared.state();
        let left: Vec<usize> = state.requests.keys().copied().collect();
        for request in left {
            state.take_back(request);
        }
        if state.failure.check().is_ok() {
            state.worker.flush_all(LEAVING);
        }
    }
}
