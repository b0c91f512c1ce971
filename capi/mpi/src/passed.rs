//! The last call of each collective that was left to MPI for its size: the same call again is, too, and costs no more than
//! to see that it is the same.

use std::cell::Cell;
use std::ffi::c_int;

use roundelay_kernels::mpi::{Handle, Mpi};

use crate::call::{MpiCall, Values, MpiCollective};

/// What the choice goes by. Whatever else such calls differ in, they are MPI's.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Before {
    /// The communicator, and how many had gone by then: handles come again.
    comm: (Handle, u64),
    op: Handle,
    root: c_int,
    send: Side,
    recv: Side,
}

/// One side of a call. MPI ignores the count and the type of one that is in place.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Side {
    in_place: bool,
    count: i64,
    of: Handle,
}

/// How many collectives there are.
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
    let MpiCall { what, send, recv, op, root, comm } = *asked;
    // All ranks give the one count, whoever is the root; of others the root says which side counts.
    let root = if matches!(what, MpiCollective::Bcast | MpiCollective::Reduce) { 0 } else { root };
    Before { comm: (comm, gone), op, root, send: side(send), recv: side(recv) }
}

/// Whether it is the same call as the last one of this collective and thread, which was left to MPI. `gone`: communicators
/// so far.
pub(crate) fn is_again(mpi: &Mpi, asked: &MpiCall, gone: u64) -> bool {
    let before = BEFORE.with(|all| all[asked.what as usize].get());
    before.is_some_and(|before| before == summary(mpi, asked, gone))
}

/// The call was left to MPI for its size. It is remembered if nothing of it can come to mean something else, as the handle
/// of a type can that the program made.
pub(crate) fn remember(mpi: &Mpi, asked: &MpiCall, gone: u64) {
    let stays = |values: Values| mpi.elements(values.of).is_some();
    // A barrier has no types.
    if asked.what == MpiCollective::Barrier || [asked.send, asked.recv].into_iter().all(stays) {
        BEFORE.with(|all| all[asked.what as usize].set(Some(summary(mpi, asked, gone))));
    }
}
