//! The last call of each collective that was left to MPI for its size or its type: an equal call is left to MPI, too,
//! at the cost of the comparison alone.

use std::cell::Cell;
use std::ffi::c_int;

use roundelay_kernels::mpi::{Handle, Mpi};

use crate::call::{MpiCall, MpiCollective, Values};

/// The properties of a call that the choice depends on. Calls that are equal in them are treated alike.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Before {
    /// The communicator, and how many had gone by then: handles come again.
    comm: (Handle, u64),
    op: Handle,
    root: c_int,
    send: Side,
    recv: Side,
}

/// One side of a call. MPI ignores the count and the type of a side that is in place.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Side {
    in_place: bool,
    count: i64,
    of: Handle,
}

/// The number of collectives.
const ALL: usize = MpiCollective::Barrier as usize + 1;

thread_local! {
    static BEFORE: [Cell<Option<Before>>; ALL] = const { [const { Cell::new(None) }; ALL] };
}

fn summary(mpi: &Mpi, asked: &MpiCall, gone: u64) -> Before {
    let side = |values: Values| Side {
        in_place: values.at.addr() == mpi.abi().in_place(),
        count: values.count,
        of: values.of,
    };
    let MpiCall { what, send, recv, op, root, comm, .. } = *asked;
    // All ranks of these give one count, and the root does not matter; in other collectives the root decides which side
    // counts.
    let root = if matches!(what, MpiCollective::Bcast | MpiCollective::Reduce) { 0 } else { root };
    Before { comm: (comm, gone), op, root, send: side(send), recv: side(recv) }
}

/// Whether the call equals the last call of this collective and thread, which was left to MPI. `gone`: the number of
/// communicators that were freed so far.
pub(crate) fn is_again(mpi: &Mpi, asked: &MpiCall, gone: u64) -> bool {
    // The counts of blocks would have to be compared, too.
    if asked.has_blocks() {
        return false;
    }
    let before = BEFORE.with(|all| all[asked.what as usize].get());
    before.is_some_and(|before| before == summary(mpi, asked, gone))
}

/// Remembers a call that was left to MPI for its size or its type, unless one of its handles may change its meaning,
/// such as the handle of a type that the program made.
pub(crate) fn remember(mpi: &Mpi, asked: &MpiCall, gone: u64) {
    let stays = |values: Values| mpi.elements(values.of).is_some();
    // A barrier has no types.
    if asked.has_blocks() {
        return;
    }
    if asked.what == MpiCollective::Barrier || [asked.send, asked.recv].into_iter().all(stays) {
        BEFORE.with(|all| all[asked.what as usize].set(Some(summary(mpi, asked, gone))));
    }
}
