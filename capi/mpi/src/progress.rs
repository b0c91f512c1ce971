//! What a rank does for MPI while it waits in a call of ours: a look for messages lets those go on that are under way.

use std::cell::Cell;
use std::ffi::c_int;

use roundelay_kernels::mpi::Mpi;

thread_local! {
    /// Whether this thread is in a call of the program's, and may call MPI.
    static CALLING: Cell<bool> = const { Cell::new(false) };
}

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

/// Lets MPI go on.
pub(crate) fn make(mpi: &Mpi) {
    if !CALLING.get() {
        return;
    }
    let abi = mpi.abi();
    let mut flag: c_int = 0;
    // SAFETY: there is room for the answer, and nothing is received; this thread may call MPI, as it is in a call of it.
    unsafe {
        (mpi.functions().iprobe)(
            abi.any_source(),
            abi.any_tag(),
            mpi.comm_self(),
            &raw mut flag,
            abi.status_ignore(),
        );
    }
}
