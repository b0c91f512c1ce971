//! Progress of MPI while a rank waits in a call of ours: the rank has a receive posted that never completes, and tests
//! it, which lets MPI's operations go on that are under way.

use std::cell::Cell;
use std::ffi::c_int;
use std::ptr::null_mut;
use std::sync::{Mutex, PoisonError};

use roundelay_kernels::mpi::{Functions, Handle, Mpi};

thread_local! {
    /// Whether this thread is in a call of the program's, and may call MPI.
    static CALLING: Cell<bool> = const { Cell::new(false) };
}

/// A receive that no rank sends to, on a communicator of this process alone.
struct PendingReceive {
    comm: Handle,
    request: Handle,
}

static ASKED: Mutex<Option<PendingReceive>> = Mutex::new(None);

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
    let (mut comm, mut request) = (0, 0);
    // SAFETY: there is room for the handles; the message has no bytes.
    let wrong = unsafe {
        match (functions.comm_dup)(mpi.comm_self(), &raw mut comm) {
            0 => (functions.irecv)(null_mut(), 0, mpi.byte(), 0, 0, comm, &raw mut request),
            wrong => wrong,
        }
    };
    if wrong != 0 {
        return Err("MPI lets no message wait");
    }
    *asked = Some(PendingReceive { comm, request });
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

fn test(functions: &Functions, asked: &mut PendingReceive, status: usize) -> bool {
    let mut flag: c_int = 0;
    // SAFETY: the request is this process's own, and one thread has it; it may call MPI, as it is in a call of it.
    let wrong = unsafe { (functions.test)(&raw mut asked.request, &raw mut flag, status) };
    wrong == 0 && flag != 0
}

/// Asks no longer: MPI is to end.
pub(crate) fn end(mpi: &Mpi) {
    let asked = ASKED.lock().unwrap_or_else(PoisonError::into_inner).take();
    let Some(mut asked) = asked else { return };
    let functions = mpi.functions();
    // SAFETY: the request is under way, and this process's own.
    unsafe { (functions.cancel)(&raw mut asked.request) };
    // A receive without a matching send is cancelled at once.
    while !test(functions, &mut asked, mpi.abi().status_ignore()) {}
    // SAFETY: no operation is under way on the communicator.
    unsafe { (functions.comm_free)(&raw mut asked.comm) };
}
