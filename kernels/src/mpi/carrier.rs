//! Messages between hosts by MPI.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use super::abi::{Abi, Handle};
use super::{Functions, Mpi};
use crate::Error;
use crate::network::Carrier;

/// Carries messages between the ranks of a communicator by MPI's functions for single messages. No other code uses the
/// communicator. MPI must have begun; where it was not begun for several threads at once, the callers must make their
/// calls one at a time.
#[derive(Debug)]
pub struct MpiCarrier {
    mpi: &'static Mpi,
    comm: Handle,
    turns: Turns,
}

/// Whether a call failed with messages under way: then the launcher must learn of it.
pub(super) static FAILED: AtomicBool = AtomicBool::new(false);

/// The threads that may call MPI.
#[derive(Debug)]
enum Turns {
    /// Any threads, at once.
    Any,
    /// Any thread, one at a time.
    OneByOne(Mutex<()>),
    /// Only this thread.
    Alone(ThreadId),
}

/// The longest time that a cancelled message may take: MPI cancels a message that it has not begun, and a begun message
/// ends when the other rank goes on.
const PATIENCE: Duration = Duration::from_secs(10);

impl MpiCarrier {
    /// A carrier over a copy of `comm` with its ranks, whose numbers are those of the messages. All ranks call it, as
    /// `MPI_Comm_dup`.
    ///
    /// # Errors
    /// E0427 where MPI makes no copy.
    pub fn of_copy(mpi: &'static Mpi, comm: Handle) -> Result<Self, Error> {
        let mut copy = 0;
        // SAFETY: there is room for the handle, and MPI knows whether `comm` is one.
        let code = unsafe { (mpi.functions().comm_dup)(comm, &raw mut copy) };
        if code != 0 {
            return Err(mpi.error("MPI_Comm_dup", code));
        }
        Ok(Self { mpi, comm: copy, turns: Turns::Any })
    }

    /// Restricts calls to one thread at a time, as MPI was begun; or with `alone` to this thread.
    #[must_use]
    pub(super) fn by_turns(mut self, alone: bool) -> Self {
        self.turns = if alone {
            Turns::Alone(thread::current().id())
        } else {
            Turns::OneByOne(Mutex::new(()))
        };
        self
    }

    /// Returns a length as MPI counts it.
    fn int(&self, bytes: usize, what: &str) -> Result<c_int, Error> {
        c_int::try_from(bytes).map_err(|_| self.mpi.error(what, Abi::ERR_COUNT))
    }

    /// Calls MPI when it is this thread's turn.
    fn with<R>(&self, call: impl FnOnce(&Functions) -> R) -> Result<R, Error> {
        let _turn = match &self.turns {
            Turns::Any => None,
            Turns::OneByOne(turn) => Some(turn.lock().unwrap_or_else(PoisonError::into_inner)),
            Turns::Alone(thread) if *thread == thread::current().id() => None,
            Turns::Alone(_) => {
                let what = "MPI was begun for one thread, and another calls for ranks on other hosts; begin MPI by MPI_Init_thread with MPI_THREAD_SERIALIZED or more, or not at all".to_owned();
                return Err(Error::NotJoined { what });
            }
        };
        Ok(call(self.mpi.functions()))
    }
}

impl Drop for MpiCarrier {
    fn drop(&mut self) {
        if thread::panicking() {
            FAILED.store(true, Ordering::Relaxed);
            return;
        }
        let functions = self.mpi.functions();
        let mut over: c_int = 0;
        // SAFETY: the communicator is this carrier's, and no message is under way on it. After the end of MPI there is
        // none.
        unsafe {
            if (functions.finalized)(&raw mut over) == 0 && over == 0 {
                (functions.comm_free)(&raw mut self.comm);
            }
        }
    }
}

/// Bytes of a part of a message. MPI sends a message of this length at once, while longer ones wait for the receiver:
/// over TCP that took up to 1.7 times as long where several ranks of a host send (Open MPI 5.0.11, 1 Gbit/s).
const PIECE: usize = 32 << 10;

impl Carrier for MpiCarrier {
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
        let (mut request, from) = (0, from.cast::<c_void>());
        let bytes = self.int(bytes, "MPI_Isend")?;
        let (to, tag) = (to as c_int, tag as c_int);
        let (byte, comm) = (self.mpi.byte(), self.comm);
        // SAFETY: the caller's promise for the memory; there is room for the request.
        let code = self.with(|functions| unsafe {
            (functions.isend)(from, bytes, byte, to, tag, comm, &raw mut request)
        })?;
        if code == 0 { Ok(request) } else { Err(self.mpi.error("MPI_Isend", code)) }
    }

    unsafe fn receive(
        &self,
        from: u32,
        tag: u32,
        to: *mut u8,
        bytes: usize,
    ) -> Result<usize, Error> {
        let (mut request, to) = (0, to.cast::<c_void>());
        let bytes = self.int(bytes, "MPI_Irecv")?;
        let (from, tag) = (from as c_int, tag as c_int);
        let (byte, comm) = (self.mpi.byte(), self.comm);
        // SAFETY: the caller's promise for the memory; there is room for the request.
        let code = self.with(|functions| unsafe {
            (functions.irecv)(to, bytes, byte, from, tag, comm, &raw mut request)
        })?;
        if code == 0 { Ok(request) } else { Err(self.mpi.error("MPI_Irecv", code)) }
    }

    fn ended(&self, request: &mut usize) -> Result<bool, Error> {
        let mut flag: c_int = 0;
        let status = self.mpi.abi().status_ignore();
        // SAFETY: the request is one of this carrier's that has not ended, and there is room for the answer.
        let code =
            self.with(|functions| unsafe { (functions.test)(request, &raw mut flag, status) })?;
        if code == 0 { Ok(flag != 0) } else { Err(self.mpi.error("MPI_Test", code)) }
    }

    fn name(&self) -> String {
        // Open MPI tells its package behind its version.
        let version = self.mpi.version().split(',').next().unwrap_or_default();
        format!("MPI, {version}")
    }

    fn cancel(&self, request: usize) {
        FAILED.store(true, Ordering::Relaxed);
        let mut request = request;
        // SAFETY: the request is one of this carrier's that has not ended. Where only another thread may call MPI, no
        // message was begun.
        _ = self.with(|functions| unsafe { (functions.cancel)(&raw mut request) });
        let begun = Instant::now();
        while matches!(self.ended(&mut request), Ok(false)) {
            if begun.elapsed() > PATIENCE {
                // The message's memory is about to be reused, while MPI may read it or write there.
                eprintln!("roundelay: a message under way cannot be taken back from MPI");
                // SAFETY: `MPI_Abort` may be called at any time once MPI has begun.
                unsafe { (self.mpi.functions().abort)(self.comm, 1) };
                std::process::abort();
            }
            std::thread::yield_now();
        }
    }
}

impl Mpi {
    /// E0427 with MPI's text for one of its codes.
    pub fn error(&self, what: &str, code: c_int) -> Error {
        // `MPI_MAX_ERROR_STRING` is 1024 at most.
        let (mut text, mut len) = (vec![0_u8; 1 << 12], 0);
        let to = text.as_mut_ptr().cast::<c_char>();
        // SAFETY: there is room for the text.
        let known = unsafe { (self.functions().error_string)(code, to, &raw mut len) } == 0;
        let text = CStr::from_bytes_until_nul(&text).unwrap_or_default().to_string_lossy();
        let text = if known { text.into_owned() } else { format!("error {code}") };
        Error::NotJoined { what: format!("{what} failed: {text}") }
    }
}
