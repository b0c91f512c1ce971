//! A library to preload: an unchanged MPI program's collectives run in Roundelay where that is faster or where the user
//! chose an algorithm, and are passed on to MPI everywhere else. It is linked to no MPI, and knows the handles of Open
//! MPI, of MPICH and Intel MPI, and of the standard's ABI.
//!
//! process (MPI, settings, job) -> seats (communicators) -> decide (ours or MPI's, by choice) -> take (the call, by
//! worlds, buffers, progress, and verify) or pass. fortran converts Fortran calls to C calls.
#![cfg(all(target_os = "linux", target_pointer_width = "64", target_endian = "little"))]

mod buffers;
mod call;
mod choice;
mod decide;
mod faults;
mod fortran;
mod job;
mod pass;
mod passed;
mod process;
mod progress;
mod rendezvous;
mod report;
mod seats;
mod settings;
mod take;
mod types;
mod verify;
mod worlds;

use std::ffi::{c_char, c_int, c_void};
use std::ptr::null_mut;

use call::{MpiCall, MpiCollective, Values};
use process::process;
use roundelay_kernels::mpi::Handle;
use take::collective;

/// A buffer that is read.
type In = *const c_void;
/// A buffer that is written.
type Out = *mut c_void;

const fn values(at: *mut c_void, count: i64, of: Handle) -> Values {
    Values { at, count, of }
}

/// Begins MPI.
///
/// # Safety
/// The arguments are valid as the MPI standard requires.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn MPI_Init(count: *mut c_int, words: *mut *mut *mut c_char) -> c_int {
    let Some(functions) = process().functions() else { return 16 };
    // SAFETY: the caller's arguments.
    let code = unsafe { (functions.init)(count, words) };
    if code == 0 {
        process().begin();
    }
    code
}

/// Begins MPI for threads.
///
/// # Safety
/// The arguments are valid as the MPI standard requires.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn MPI_Init_thread(
    count: *mut c_int,
    words: *mut *mut *mut c_char,
    required: c_int,
    provided: *mut c_int,
) -> c_int {
    let Some(functions) = process().functions() else { return 16 };
    // SAFETY: the caller's arguments.
    let code = unsafe { (functions.init_thread)(count, words, required, provided) };
    if code == 0 {
        process().begin();
    }
    code
}

/// Ends MPI.
///
/// # Safety
/// The arguments are valid as the MPI standard requires.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn MPI_Finalize() -> c_int {
    let Some(functions) = process().functions() else { return 16 };
    process().end();
    // SAFETY: the caller's call.
    unsafe { (functions.finalize)() }
}

macro_rules! reduces {
    ($($name:ident, $large:ident, $what:ident;)*) => {$(
        /// Combines values of all ranks.
        ///
        /// # Safety
        /// The arguments are valid as the MPI standard requires.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(
            send: In, recv: Out, count: c_int, of: Handle, op: Handle, comm: Handle,
        ) -> c_int {
            let (send, recv) = (values(send.cast_mut(), count.into(), of), values(recv, count.into(), of));
            collective(&MpiCall { what: MpiCollective::$what, send, recv, op, root: 0, comm }, false)
        }

        /// Combines values of all ranks, with a wide count.
        ///
        /// # Safety
        /// The arguments are valid as the MPI standard requires.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $large(
            send: In, recv: Out, count: i64, of: Handle, op: Handle, comm: Handle,
        ) -> c_int {
            let (send, recv) = (values(send.cast_mut(), count, of), values(recv, count, of));
            collective(&MpiCall { what: MpiCollective::$what, send, recv, op, root: 0, comm }, true)
        }
    )*};
}

reduces! {
    MPI_Allreduce, MPI_Allreduce_c, Allreduce;
    MPI_Reduce_scatter_block, MPI_Reduce_scatter_block_c, ReduceScatterBlock;
}

macro_rules! moves {
    ($($name:ident, $large:ident, $what:ident ($($root:ident)?);)*) => {$(
        /// Moves blocks between ranks.
        ///
        /// # Safety
        /// The arguments are valid as the MPI standard requires.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(
            send: In, sends: c_int, send_type: Handle,
            recv: Out, receives: c_int, recv_type: Handle, $($root: c_int,)? comm: Handle,
        ) -> c_int {
            let send = values(send.cast_mut(), sends.into(), send_type);
            let recv = values(recv, receives.into(), recv_type);
            let root = 0 $(+ $root)?;
            collective(&MpiCall { what: MpiCollective::$what, send, recv, op: 0, root, comm }, false)
        }

        /// Moves blocks between ranks, with wide counts.
        ///
        /// # Safety
        /// The arguments are valid as the MPI standard requires.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $large(
            send: In, sends: i64, send_type: Handle,
            recv: Out, receives: i64, recv_type: Handle, $($root: c_int,)? comm: Handle,
        ) -> c_int {
            let send = values(send.cast_mut(), sends, send_type);
            let recv = values(recv, receives, recv_type);
            let root = 0 $(+ $root)?;
            collective(&MpiCall { what: MpiCollective::$what, send, recv, op: 0, root, comm }, true)
        }
    )*};
}

moves! {
    MPI_Allgather, MPI_Allgather_c, Allgather();
    MPI_Alltoall, MPI_Alltoall_c, Alltoall();
    MPI_Scatter, MPI_Scatter_c, Scatter(root);
    MPI_Gather, MPI_Gather_c, Gather(root);
}

/// Combines values of all ranks at one.
///
/// # Safety
/// The arguments are valid as the MPI standard requires.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn MPI_Reduce(
    send: In,
    recv: Out,
    count: c_int,
    of: Handle,
    op: Handle,
    root: c_int,
    comm: Handle,
) -> c_int {
    let (send, recv) = (values(send.cast_mut(), count.into(), of), values(recv, count.into(), of));
    collective(&MpiCall { what: MpiCollective::Reduce, send, recv, op, root, comm }, false)
}

/// Combines values of all ranks at one, with a wide count.
///
/// # Safety
/// The arguments are valid as the MPI standard requires.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn MPI_Reduce_c(
    send: In,
    recv: Out,
    count: i64,
    of: Handle,
    op: Handle,
    root: c_int,
    comm: Handle,
) -> c_int {
    let (send, recv) = (values(send.cast_mut(), count, of), values(recv, count, of));
    collective(&MpiCall { what: MpiCollective::Reduce, send, recv, op, root, comm }, true)
}

/// Copies values of one rank to all.
///
/// # Safety
/// The arguments are valid as the MPI standard requires.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn MPI_Bcast(
    buffer: Out,
    count: c_int,
    of: Handle,
    root: c_int,
    comm: Handle,
) -> c_int {
    let (send, recv) = (values(null_mut(), 0, of), values(buffer, count.into(), of));
    collective(&MpiCall { what: MpiCollective::Bcast, send, recv, op: 0, root, comm }, false)
}

/// Copies values of one rank to all, with a wide count.
///
/// # Safety
/// The arguments are valid as the MPI standard requires.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn MPI_Bcast_c(
    buffer: Out,
    count: i64,
    of: Handle,
    root: c_int,
    comm: Handle,
) -> c_int {
    let (send, recv) = (values(null_mut(), 0, of), values(buffer, count, of));
    collective(&MpiCall { what: MpiCollective::Bcast, send, recv, op: 0, root, comm }, true)
}

/// Returns when all ranks have called it.
///
/// # Safety
/// The arguments are valid as the MPI standard requires.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn MPI_Barrier(comm: Handle) -> c_int {
    let (send, recv) = (values(null_mut(), 0, 0), values(null_mut(), 0, 0));
    collective(&MpiCall { what: MpiCollective::Barrier, send, recv, op: 0, root: 0, comm }, false)
}
