//! Calls that were started, by their handles.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use roundelay::{Error, Pending};

use crate::status::Outcome;
use crate::table::HandleTable;

static REQUESTS: HandleTable<Arc<Request>> = HandleTable::new("request");

/// A call that threads wait for, until one of them takes its end.
type Request = RwLock<Option<Box<dyn Started>>>;

/// The timeout of an unlimited wait.
const EVER: Duration = Duration::from_secs(u32::MAX as u64);

/// A call that was started, for any kind of buffers.
pub(crate) trait Started: Send + Sync {
    /// Whether it is done within this time.
    fn within(&self, timeout: Duration) -> bool;

    /// Waits for the call and returns its result.
    fn end(self: Box<Self>) -> Result<(), Error>;
}

impl<B: Send> Started for Pending<B> {
    fn within(&self, timeout: Duration) -> bool {
        self.wait_timeout(timeout)
    }

    fn end(self: Box<Self>) -> Result<(), Error> {
        self.wait().map(drop)
    }
}

/// The result of a wait.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Waited {
    Done,
    UnderWay,
}

pub(crate) fn held(started: Box<dyn Started>) -> u64 {
    REQUESTS.insert(Arc::new(RwLock::new(Some(started))))
}

/// Waits for `timeout_ms` milliseconds, or until the call is done where the number is negative.
pub(crate) fn wait(handle: u64, timeout_ms: i64) -> Outcome<Waited> {
    let request = REQUESTS.look(handle, Arc::clone)?;
    let timeout = u64::try_from(timeout_ms).map_or(EVER, Duration::from_millis);
    let started = request.read().unwrap_or_else(PoisonError::into_inner);
    if started.as_ref().is_some_and(|call| !call.within(timeout)) {
        return Ok(Waited::UnderWay);
    }
    drop(started);
    // One of several threads that waited takes it.
    let ended = request.write().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(call) = ended {
        REQUESTS.take(handle)?;
        call.end()?;
    }
    Ok(Waited::Done)
}

/// Drops the handle of a call. The call goes on; if it fails, the next call of its rank returns the error.
pub(crate) fn release(handle: u64) -> Outcome<()> {
    REQUESTS.take(handle).map(drop)
}
