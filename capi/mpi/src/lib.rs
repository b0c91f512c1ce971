//! A library to preload: an unchanged MPI program's collectives run in Roundelay where that is faster or where the user
//! chose an algorithm, and are passed on to MPI everywhere else. It is linked to no MPI, and knows the handles of Open
//! MPI, of MPICH and Intel MPI, and of the standard's ABI.
//!
//! process (MPI, settings, job) -> seats (communicators) -> arguments (their rules) -> decide (ours or MPI's, by
//! choice) -> take (the call, by worlds, buffers, progress, and verify) or pass. fortran converts Fortran calls to C
//! calls, own is a communicator for questions to MPI, and bypassed reports programs that do not come here.
#![cfg(all(target_os = "linux", target_pointer_width = "64", target_endian = "little"))]

mod arguments;
mod block_counts;
mod bypass;
mod call;
mod call_buffers;
mod choice;
mod contests;
mod decide;
mod faults;
mod fortran;
mod last_passes;
mod mpi_job;
mod own;
mod pass;
mod process;
mod progress;
mod refusals;
mod rendezvous;
mod report;
mod rules;
mod seats;
mod settings;
mod take;
mod types;
mod verify;
mod why;
mod worlds;

use std::ffi::{c_char, c_int, c_void};
use std::ptr::null_mut;

use call::{BlockArrays, MpiCall, MpiCollective, RankNumbers, Values};
use process::process;
use roundelay_kernels::mpi::Handle;
use take::collective;

/// A buffer that is read.
type In = *const c_void;
/// A buffer that is written.
type Out = *mut c_void;

/// The arrays of a collective with one count.
const EVEN: [BlockArrays; 2] = [BlockArrays::NONE; 2];

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

/// Defines both functions of a collective: the counts and places of `$name` have 32 bits, those of `$large` 64 bits.
macro_rules! both {
    ($($name:ident, $large:ident, $what:ident $arguments:tt $body:tt;)*) => {$(
        both!(@one $name, c_int, false, $what $arguments $body);
        both!(@one $large, i64, true, $what $arguments $body);
    )*};
    (@one $name:ident, $int:ident, $wide:literal, $what:ident
        ($($arg:ident: $kind:ident),*) { $send:expr, $recv:expr, $op:expr, $root:expr, $arrays:expr }
    ) => {
        /// Moves or combines the values of all ranks.
        ///
        /// # Safety
        /// The arguments are valid as the MPI standard requires.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($arg: both!(@type $kind $int)),*, comm: Handle) -> c_int {
            $(let $arg = both!(@value $kind $arg $wide);)*
            let (send, recv, arrays) = ($send, $recv, $arrays);
            let what = MpiCollective::$what;
            collective(&MpiCall { what, send, recv, op: $op, root: $root, comm, arrays }, $wide)
        }
    };
    (@type read $int:ident) => { In };
    (@type written $int:ident) => { Out };
    (@type count $int:ident) => { $int };
    (@type numbers $int:ident) => { *const $int };
    (@type handle $int:ident) => { Handle };
    (@type root $int:ident) => { c_int };
    (@value read $arg:ident $wide:literal) => { $arg.cast_mut() };
    (@value count $arg:ident $wide:literal) => { i64::from($arg) };
    (@value numbers $arg:ident $wide:literal) => { RankNumbers { at: $arg.cast(), wide: $wide } };
    (@value $kind:ident $arg:ident $wide:literal) => { $arg };
}

/// The counts and places of one side.
const fn arrays(counts: RankNumbers, places: RankNumbers) -> BlockArrays {
    BlockArrays { counts, places }
}

both! {
    MPI_Allreduce, MPI_Allreduce_c, Allreduce
        (send: read, recv: written, count: count, of: handle, op: handle)
        { values(send, count, of), values(recv, count, of), op, 0, EVEN };
    MPI_Reduce_scatter_block, MPI_Reduce_scatter_block_c, ReduceScatterBlock
        (send: read, recv: written, count: count, of: handle, op: handle)
        { values(send, count, of), values(recv, count, of), op, 0, EVEN };
    MPI_Reduce, MPI_Reduce_c, Reduce
        (send: read, recv: written, count: count, of: handle, op: handle, root: root)
        { values(send, count, of), values(recv, count, of), op, root, EVEN };
    MPI_Bcast, MPI_Bcast_c, Bcast
        (buffer: written, count: count, of: handle, root: root)
        { values(null_mut(), 0, of), values(buffer, count, of), 0, root, EVEN };
    MPI_Allgather, MPI_Allgather_c, Allgather
        (send: read, sends: count, sent: handle, recv: written, receives: count, of: handle)
        { values(send, sends, sent), values(recv, receives, of), 0, 0, EVEN };
    MPI_Alltoall, MPI_Alltoall_c, Alltoall
        (send: read, sends: count, sent: handle, recv: written, receives: count, of: handle)
        { values(send, sends, sent), values(recv, receives, of), 0, 0, EVEN };
    MPI_Scatter, MPI_Scatter_c, Scatter
        (send: read, sends: count, sent: handle, recv: written, receives: count, of: handle, root: root)
        { values(send, sends, sent), values(recv, receives, of), 0, root, EVEN };
    MPI_Gather, MPI_Gather_c, Gather
        (send: read, sends: count, sent: handle, recv: written, receives: count, of: handle, root: root)
        { values(send, sends, sent), values(recv, receives, of), 0, root, EVEN };
    MPI_Allgatherv, MPI_Allgatherv_c, Allgatherv
        (send: read, count: count, sent: handle, recv: written, counts: numbers, places: numbers, of: handle)
        { values(send, count, sent), values(recv, 0, of), 0, 0, [BlockArrays::NONE, arrays(counts, places)] };
    MPI_Reduce_scatter, MPI_Reduce_scatter_c, ReduceScatter
        (send: read, recv: written, counts: numbers, of: handle, op: handle)
        { values(send, 0, of), values(recv, 0, of), op, 0, [arrays(counts, RankNumbers::NONE), BlockArrays::NONE] };
    MPI_Gatherv, MPI_Gatherv_c, Gatherv
        (send: read, count: count, sent: handle, recv: written, counts: numbers, places: numbers, of: handle, root: root)
        { values(send, count, sent), values(recv, 0, of), 0, root, [BlockArrays::NONE, arrays(counts, places)] };
    MPI_Scatterv, MPI_Scatterv_c, Scatterv
        (send: read, counts: numbers, places: numbers, sent: handle, recv: written, count: count, of: handle, root: root)
        { values(send, 0, sent), values(recv, count, of), 0, root, [arrays(counts, places), BlockArrays::NONE] };
    MPI_Alltoallv, MPI_Alltoallv_c, Alltoallv
        (send: read, sends: numbers, from: numbers, sent: handle,
         recv: written, receives: numbers, to: numbers, of: handle)
        { values(send, 0, sent), values(recv, 0, of), 0, 0, [arrays(sends, from), arrays(receives, to)] };
}

/// Returns when all ranks have called it.
///
/// # Safety
/// The arguments are valid as the MPI standard requires.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn MPI_Barrier(comm: Handle) -> c_int {
    let (send, recv) = (values(null_mut(), 0, 0), values(null_mut(), 0, 0));
    collective(
        &MpiCall { what: MpiCollective::Barrier, send, recv, op: 0, root: 0, comm, arrays: EVEN },
        false,
    )
}
