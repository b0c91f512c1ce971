//! A worker of UCX: its endpoints, one for each rank that it has to do with, and its operations.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::c_int;
use std::ptr::{NonNull, null, null_mut};
use std::sync::atomic::{AtomicI8, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::functions::{
    BUSY, ContextParams, EndpointFacts, EndpointParams, LEAST, NOT_CONNECTED, Object, Received,
    RequestParams, SERIALIZED, Status, TAGGED, TransportName, UNDER_WAY, WAKES, WorkerFacts,
    WorkerParams, empty,
};
use super::library::{Library, text};

/// The version of the interface, by which the library knows what a caller may mean.
const INTERFACE: [u32; 2] = [1, 12];
/// The time that an endpoint has to close.
const CLOSING: Duration = Duration::from_secs(1);
/// The most transports of an endpoint that a report names.
const TRANSPORTS: usize = 16;

/// Locked while a context begins or ends: the library looks for the devices of the machine.
static BEGINNING: Mutex<()> = Mutex::new(());

/// An operation that is under way, until [`Worker::free`].
pub(super) type Operation = NonNull<std::ffi::c_void>;

/// A worker, with a context of its own. Its methods are called by one thread at a time.
pub(super) struct Worker {
    pub(super) library: &'static Library,
    context: Object,
    object: Object,
    endpoints: BTreeMap<u32, Endpoint>,
}

// SAFETY: the library was asked for objects that any thread may use, one at a time, and said that they are.
unsafe impl Send for Worker {}

/// A connection to a rank.
struct Endpoint {
    /// Null where none could be made.
    object: Object,
    /// The error with which the library said that the other end is lost; 0 before.
    lost: Box<AtomicI8>,
    /// The time at which that was seen first.
    seen: Option<Instant>,
}

/// Keeps the error of an endpoint whose other end is lost.
unsafe extern "C" fn lost(with: Object, _endpoint: Object, status: Status) {
    // SAFETY: the pointer is that of the endpoint's `lost`, which outlives the endpoint.
    unsafe { (*with.cast::<AtomicI8>()).store(status, Ordering::Relaxed) };
}

impl Worker {
    /// Begins a worker.
    ///
    /// # Errors
    /// The library's text.
    pub(super) fn new(library: &'static Library) -> Result<Self, String> {
        let functions = &library.functions;
        let _one = BEGINNING.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut config, mut context, mut worker) = (null_mut(), null_mut(), null_mut());
        let done = |what: &str, status: Status| match status {
            0 => Ok(()),
            status => Err(library.failed(what, status)),
        };
        // SAFETY: zeros and nulls are values of all fields; there is room for the answers, and the parameters are read
        // during the calls alone.
        unsafe {
            done("ucp_config_read", (functions.config_read)(null(), null(), &raw mut config))?;
            let mut params: ContextParams = empty();
            params.mask = ContextParams::FEATURES | ContextParams::SENDERS;
            params.features = TAGGED | WAKES;
            params.tag_sender_mask = u64::MAX << u32::BITS;
            let [major, minor] = INTERFACE;
            let begun = (functions.init)(major, minor, &raw const params, config, &raw mut context);
            (functions.config_release)(config);
            done("ucp_init", begun)?;
            let mut params: WorkerParams = empty();
            (params.mask, params.threads) = (WorkerParams::THREADS, SERIALIZED);
            let begun = (functions.worker_create)(context, &raw const params, &raw mut worker);
            if let Err(why) = done("ucp_worker_create", begun) {
                (functions.cleanup)(context);
                return Err(why);
            }
        }
        let made = Self { library, context, object: worker, endpoints: BTreeMap::new() };
        let threads = made.facts(WorkerFacts::THREADS)?.threads;
        if threads < SERIALIZED {
            return Err(format!(
                "UCX {} was built for programs of one thread, and threads call it by turns; another build has --enable-mt",
                library.version
            ));
        }
        Ok(made)
    }

    fn facts(&self, mask: u64) -> Result<WorkerFacts, String> {
        // SAFETY: zeros and nulls are values of all fields, and there is room for the answer.
        let (facts, status) = unsafe {
            let mut facts: WorkerFacts = empty();
            facts.mask = mask;
            facts.address_flags = WorkerFacts::OF_NETWORK;
            let status = (self.library.functions.worker_query)(self.object, &raw mut facts);
            (facts, status)
        };
        if status == 0 { Ok(facts) } else { Err(self.library.failed("ucp_worker_query", status)) }
    }

    /// Returns the address by which workers of other hosts reach this one.
    ///
    /// # Errors
    /// The library's text.
    pub(super) fn address(&self) -> Result<Vec<u8>, String> {
        let facts = self.facts(WorkerFacts::ADDRESS | WorkerFacts::ADDRESS_FLAGS)?;
        // SAFETY: the library says where the address is and how long; it stays until it is released, once.
        unsafe {
            let address = std::slice::from_raw_parts(facts.address.cast(), facts.address_len);
            let address = address.to_vec();
            (self.library.functions.release_address)(self.object, facts.address);
            Ok(address)
        }
    }

    /// Makes the endpoint of a rank, if that was not tried yet.
    ///
    /// # Errors
    /// The library's text. The rank counts as lost then.
    pub(super) fn connect(&mut self, peer: u32, address: &[u8]) -> Result<(), String> {
        if self.endpoints.contains_key(&peer) {
            return Ok(());
        }
        let (mut error, mut endpoint) = (Box::new(AtomicI8::new(0)), null_mut());
        // SAFETY: zeros and nulls are values of all fields; the address was made by a worker, there is room for the
        // answer, and `error` outlives the endpoint.
        let status = unsafe {
            let mut params: EndpointParams = empty();
            params.mask = EndpointParams::ADDRESS | EndpointParams::ERRORS | EndpointParams::LOST;
            params.address = address.as_ptr().cast();
            params.errors = EndpointParams::PEER;
            params.lost = Some(lost);
            params.lost_with = (&raw const *error).cast_mut().cast();
            (self.library.functions.endpoint_create)(
                self.object,
                &raw const params,
                &raw mut endpoint,
            )
        };
        if status != 0 {
            (endpoint, *error.get_mut()) = (null_mut(), status);
        }
        self.endpoints.insert(peer, Endpoint { object: endpoint, lost: error, seen: None });
        if status == 0 { Ok(()) } else { Err(self.library.failed("ucp_ep_create", status)) }
    }

    fn made(&self) -> impl Iterator<Item = &Endpoint> {
        self.endpoints.values().filter(|one| !one.object.is_null())
    }

    /// Returns the error with which a rank was lost, and the time for which that is known.
    pub(super) fn lost(&mut self, peer: u32) -> Option<(Status, Duration)> {
        let endpoint = self.endpoints.get_mut(&peer)?;
        let status = endpoint.lost.load(Ordering::Relaxed);
        let seen = |seen: &mut Option<Instant>| seen.get_or_insert_with(Instant::now).elapsed();
        (status != 0).then(|| (status, seen(&mut endpoint.seen)))
    }

    /// Begins to send to a rank that has an endpoint; `None` for a message that is sent.
    ///
    /// # Safety
    /// `from` is valid for `bytes` bytes, and no thread writes them, until the operation has ended.
    pub(super) unsafe fn send(
        &mut self,
        to: u32,
        tag: u64,
        from: *const u8,
        bytes: usize,
    ) -> Result<Option<Operation>, Status> {
        let Some(to) = self.endpoints.get(&to) else { return Err(NOT_CONNECTED) };
        if to.object.is_null() {
            return Err(to.lost.load(Ordering::Relaxed));
        }
        // SAFETY: zeros and nulls are values of all fields, and with no mask the data is bytes; the caller's promise.
        begun_at(unsafe {
            let params: RequestParams = empty();
            let from = from.cast();
            (self.library.functions.send)(to.object, from, bytes, tag, &raw const params)
        })
    }

    /// Begins to receive a message of this tag.
    ///
    /// # Safety
    /// `to` is valid for `bytes` bytes, and no other code touches them, until the operation has ended.
    pub(super) unsafe fn receive(
        &mut self,
        tag: u64,
        to: *mut u8,
        bytes: usize,
    ) -> Result<Option<Operation>, Status> {
        // SAFETY: as for `send`.
        begun_at(unsafe {
            let mut params: RequestParams = empty();
            params.mask = RequestParams::ALWAYS_REQUEST;
            let (to, every) = (to.cast(), u64::MAX);
            (self.library.functions.receive)(self.object, to, bytes, tag, every, &raw const params)
        })
    }

    /// Brings what was sent to all ranks out of this process, as far as the time suffices.
    pub(super) fn flush_all(&mut self, time: Duration) {
        let begun = Instant::now();
        // SAFETY: zeros and nulls are values of all fields; the endpoints are there.
        let flush = |one: &Endpoint| unsafe {
            let params: RequestParams = empty();
            begun_at((self.library.functions.endpoint_flush)(one.object, &raw const params))
        };
        let all: Vec<_> = self.made().map(flush).collect();
        // An error is that of a rank that is gone.
        for operation in all.into_iter().filter_map(|flushed| flushed.ok()?) {
            self.until_ended(operation, time.saturating_sub(begun.elapsed()));
            self.free(operation);
        }
    }

    /// Returns the result of an operation: [`UNDER_WAY`] until it has ended.
    pub(super) fn result(&mut self, operation: Operation) -> Status {
        // SAFETY: the operation was not freed.
        unsafe { (self.library.functions.check)(operation.as_ptr()) }
    }

    /// Returns the result of a receive, and the length of its message.
    pub(super) fn received(&mut self, operation: Operation) -> (Status, usize) {
        let mut got = Received::default();
        // SAFETY: the operation is a receive that was not freed, and there is room for the answer.
        let status = unsafe { (self.library.functions.received)(operation.as_ptr(), &raw mut got) };
        (status, got.len)
    }

    /// Frees an operation that has ended.
    pub(super) fn free(&mut self, operation: Operation) {
        // SAFETY: the caller has it no more.
        unsafe { (self.library.functions.free)(operation.as_ptr()) };
    }

    /// Asks the library to end a receive, which then ends soon unless its message has begun to come.
    pub(super) fn cancel(&mut self, operation: Operation) {
        // SAFETY: the operation was not freed.
        unsafe { (self.library.functions.cancel)(self.object, operation.as_ptr()) };
    }

    /// Goes on with all operations, and returns whether any of them went on.
    pub(super) fn progress(&mut self) -> bool {
        // SAFETY: the worker is there, and no callback calls it.
        unsafe { (self.library.functions.progress)(self.object) != 0 }
    }

    /// Goes on with all operations until one has ended or the time is over, and returns whether it has.
    pub(super) fn until_ended(&mut self, operation: Operation, time: Duration) -> bool {
        let begun = Instant::now();
        while self.result(operation) == UNDER_WAY {
            if !self.progress() {
                if begun.elapsed() > time {
                    return false;
                }
                std::thread::yield_now();
            }
        }
        true
    }

    /// Closes the endpoint of a rank: what is under way to it ends with an error.
    pub(super) fn close(&mut self, peer: u32) {
        let Some(Endpoint { object, lost, .. }) = self.endpoints.remove(&peer) else { return };
        if object.is_null() {
            return;
        }
        // SAFETY: zeros and nulls are values of all fields; the endpoint is there until it is closed.
        let closing = begun_at(unsafe {
            let mut params: RequestParams = empty();
            (params.mask, params.flags) = (RequestParams::FLAGS, RequestParams::FORCED);
            (self.library.functions.endpoint_close)(object, &raw const params)
        });
        if let Ok(Some(closing)) = closing {
            if !self.until_ended(closing, CLOSING) {
                // It ends with the worker, and may say until then that the rank is lost.
                Box::leak(lost);
            }
            self.free(closing);
        }
    }

    /// Returns the transports of all endpoints with their devices, as far as the library tells them.
    pub(super) fn transports(&self) -> BTreeSet<String> {
        let mut all = BTreeSet::new();
        for Endpoint { object, .. } in self.made() {
            let mut names = [TransportName { transport: null(), device: null() }; TRANSPORTS];
            // SAFETY: zeros and nulls are values of all fields; there is room for as many names as `count` says, and
            // names that are not told stay null.
            let told = unsafe {
                let mut facts: EndpointFacts = empty();
                facts.mask = EndpointFacts::TRANSPORTS;
                facts.transports = names.as_mut_ptr();
                (facts.count, facts.size) = (TRANSPORTS as u32, size_of::<TransportName>());
                (self.library.functions.endpoint_query)(*object, &raw mut facts)
            };
            let names = names.iter().filter(|one| told == 0 && !one.transport.is_null());
            all.extend(names.map(|one| format!("{} ({})", text(one.transport), text(one.device))));
        }
        all
    }

    /// Has the library wake a descriptor's readers when there is something to do.
    pub(super) fn arm(&mut self) -> Armed {
        let (functions, mut descriptor) = (&self.library.functions, -1);
        // SAFETY: the worker is there, and there is room for the answer.
        unsafe {
            match (functions.descriptor)(self.object, &raw mut descriptor) {
                0 => match (functions.arm)(self.object) {
                    0 => Armed::Wakes(descriptor),
                    BUSY => Armed::HasWork,
                    _ => Armed::Never,
                },
                _ => Armed::Never,
            }
        }
    }

    /// Wakes the readers of the descriptor.
    pub(super) fn wake(&mut self) {
        // SAFETY: the worker is there.
        unsafe { (self.library.functions.signal)(self.object) };
    }
}

/// The answer of a worker that is to wake a descriptor's readers.
pub(super) enum Armed {
    /// It wakes the readers of this descriptor, which stays as long as the worker.
    Wakes(c_int),
    /// There is something to do.
    HasWork,
    /// The library cannot.
    Never,
}

/// Sleeps until the descriptor of a worker is woken, or the time is over.
pub(super) fn await_event(descriptor: c_int, time: Duration) {
    let mut one = libc::pollfd { fd: descriptor, events: libc::POLLIN, revents: 0 };
    // SAFETY: there is one entry.
    unsafe { libc::poll(&raw mut one, 1, time.as_millis() as c_int) };
}

/// Returns the operation of a pointer of the library: a null has ended well, and the highest addresses are errors.
fn begun_at(at: Object) -> Result<Option<Operation>, Status> {
    let number = at as isize;
    if (LEAST..0).contains(&number) { Err(number as Status) } else { Ok(NonNull::new(at)) }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // A connection that is closed with data to be read may take along what was sent before.
        while self.progress() {}
        let peers: Vec<u32> = self.endpoints.keys().copied().collect();
        for peer in peers {
            self.close(peer);
        }
        let _one = BEGINNING.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: both are there, and no other code uses them after this.
        unsafe {
            (self.library.functions.worker_destroy)(self.object);
            (self.library.functions.cleanup)(self.context);
        }
    }
}
