//! Progress of MPI while a rank waits in a call of ours: the rank has a receive posted that never completes, and tests
//! it, which lets MPI's operations go on that are under way.

use std::cell::Cell;
use std::ffi::c_int;
use std::ptr::null_mut;
use std::sync::{Mutex, PoisonError};

use roundelay_kernels::mpi::{Functions, Handle, Mpi};

use crate::own;

thread_local! {
    /// Whether this thread is in a call of the program's, and may call MPI.
    static CALLING: Cell<bool> = const { Cell::new(false) };
}

/// The request of a receive without a sender, on the library's own communicator.
static ASKED: Mutex<Option<Handle>> = Mutex::new(None);

/// Does `then`, in which this thread may call MPI.
pub(crate) fn calling<R>(then: impl FnOnce() -> R) -> R {
    struct Over;
    impl Drop for Over {
        fn drop(&mut self) {
            CALLING.set(false);
        }
    }
    CALLING.set(true);
    let _over = Over;
    then()
}

/// Posts the receive. Only this process is in the call.
///
/// # Errors
/// MPI refuses the receive.
pub(crate) fn begin(mpi: &Mpi) -> Result<(), &'static str> {
    let mut asked = ASKED.lock().unwrap_or_else(PoisonError::into_inner);
    if asked.is_some() {
        return Ok(());
    }
    let functions = mpi.functions();
    let (mut request, tag) = (0, own::PROGRESS_TAG);
    // SAFETY: there is room for the handle; the message has no bytes.
    let wrong = unsafe {
        (functions.irecv)(null_mut(), 0, mpi.byte(), 0, tag, own::comm(), &raw mut request)
    };
    if wrong != 0 {
        return Err("MPI lets no message wait");
    }
    *asked = Some(request);
    Ok(())
}

/// Lets MPI go on.
pub(crate) fn make(mpi: &Mpi) {
    if !CALLING.get() {
        return;
    }
    // Another thread that looks does it for this one.
    if let Ok(mut asked) = ASKED.try_lock()
        && let Some(asked) = &mut *asked
    {
        test(mpi.functions(), asked, mpi.abi().status_ignore());
    }
}

fn test(functions: &Functions, request: &mut Handle, status: usize) -> bool {
    let mut flag: c_int = 0;
    // SAFETY: the request is this process's own, and one thread has it; it may call MPI, as it is in a call of it.
    let wrong = unsafe { (functions.test)(request, &raw mut flag, status) };
    wrong == 0 && flag != 0
}

/// Asks no longer: MPI is to end.
pub(crate) fn end(mpi: &Mpi) {
    let asked = ASKED.lock().unwrap_or_else(PoisonError::into_inner).take();
    let Some(mut asked) = asked else { return };
    let functions = mpi.functions();
    // SAFETY: the request is under way, and this process's own.
    unsafe { (functions.cancel)(&raw mut asked) };
    // A receive without a matching send is cancelled at once.
    while !test(functions, &mut asked, mpi.abi().status_ignore()) {}
}
