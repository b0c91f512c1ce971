//! The communicator of this process alone that the library has for itself. Its calls return their errors, of which no
//! handler of the program hears.

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicUsize, Ordering};

use roundelay_kernels::mpi::{Handle, Mpi};

/// The communicator; 0 where there is none.
static OWN: AtomicUsize = AtomicUsize::new(0);

/// The tag of the receive that [`crate::progress`] posts, which no message has.
pub(crate) const PROGRESS_TAG: c_int = 0;
/// The tag of messages of this process to itself.
pub(crate) const COPY_TAG: c_int = 1;

/// Makes the communicator, after MPI has begun, and does `then` with it, while errors of calls without a communicator
/// are returned, too. Only this process is in the call, and no other thread calls MPI yet.
pub(crate) fn begin<R>(mpi: &Mpi, then: impl FnOnce(Handle) -> R) -> Option<R> {
    let functions = mpi.functions();
    let quiet = is_quiet as unsafe extern "C" fn(_, _);
    let (mut comm, mut handler) = (0, 0);
    // SAFETY: there is room for the handles; the handler may have more arguments than its function reads.
    let made = unsafe {
        (functions.comm_dup)(mpi.comm_self(), &raw mut comm) == 0
            && (functions.comm_create_errhandler)(quiet as *mut c_void, &raw mut handler) == 0
            && (functions.comm_set_errhandler)(comm, handler) == 0
    };
    if !made {
        return None;
    }
    OWN.store(comm, Ordering::Release);
    // MPI gives errors that have no communicator, and some that have one, to one of these two.
    let others =
        [mpi.comm_world(), mpi.comm_self()].map(|other| (other, replaced(mpi, other, handler)));
    let done = then(comm);
    for (other, before) in others {
        if let Some(mut before) = before {
            // SAFETY: the handler was the communicator's, and this reference to it goes.
            unsafe {
                (functions.comm_set_errhandler)(other, before);
                (functions.errhandler_free)(&raw mut before);
            }
        }
    }
    // SAFETY: the handler was made here, and the communicator keeps it.
    unsafe { (functions.errhandler_free)(&raw mut handler) };
    Some(done)
}

/// Gives a communicator another error handler, and returns the one that it had.
fn replaced(mpi: &Mpi, comm: Handle, by: Handle) -> Option<Handle> {
    let (functions, mut before) = (mpi.functions(), 0);
    // SAFETY: there is room for the handle; both handlers are handlers of communicators.
    unsafe {
        ((functions.comm_get_errhandler)(comm, &raw mut before) == 0
            && (functions.comm_set_errhandler)(comm, by) == 0)
            .then_some(before)
    }
}

/// Returns the communicator. Calls of the library come while it is there.
pub(crate) fn comm() -> Handle {
    OWN.load(Ordering::Acquire)
}

/// Frees the communicator, before MPI ends.
pub(crate) fn end(mpi: &Mpi) {
    let mut comm = OWN.swap(0, Ordering::AcqRel);
    if comm != 0 {
        // SAFETY: the communicator is this library's own, and no operation is under way on it.
        unsafe { (mpi.functions().comm_free)(&raw mut comm) };
    }
}

/// Leaves an error to the caller, as `MPI_ERRORS_RETURN` does, whose handle is not the same in all libraries of an ABI.
unsafe extern "C" fn is_quiet(_comm: *mut Handle, _code: *mut c_int) {}
