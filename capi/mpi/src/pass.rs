//! Calls that are MPI's: handed on as they were made.

use std::ffi::c_int;

use roundelay_kernels::mpi::{Abi, Functions};

use crate::call::{MpiCall, MpiCollective, Values};

/// Values that a call of an MPI without counts of 64 bits is given at once.
const PIECE: i64 = 1 << 30;

/// Has MPI make the call; `large` says whether its program counts in 64 bits.
pub(crate) fn pass(functions: &Functions, asked: &MpiCall, large: bool) -> c_int {
    let made = if large { wide(functions, asked) } else { None };
    made.unwrap_or_else(|| narrow(functions, asked))
}

/// Makes the call by the function with wide counts, if MPI has it.
fn wide(f: &Functions, asked: &MpiCall) -> Option<c_int> {
    let MpiCall { what, send, recv, op, root, comm } = *asked;
    // SAFETY: the arguments are the program's for this function.
    Some(unsafe {
        match what {
            MpiCollective::Allreduce => {
                f.allreduce_c?(send.at, recv.at, recv.count, recv.of, op, comm)
            }
            MpiCollective::Reduce => {
                f.reduce_c?(send.at, recv.at, recv.count, recv.of, op, root, comm)
            }
            MpiCollective::ReduceScatterBlock => {
                f.reduce_scatter_block_c?(send.at, recv.at, recv.count, recv.of, op, comm)
            }
            MpiCollective::Bcast => f.bcast_c?(recv.at, recv.count, recv.of, root, comm),
            MpiCollective::Allgather => {
                f.allgather_c?(send.at, send.count, send.of, recv.at, recv.count, recv.of, comm)
            }
            MpiCollective::Alltoall => {
                f.alltoall_c?(send.at, send.count, send.of, recv.at, recv.count, recv.of, comm)
            }
            MpiCollective::Scatter => {
                f.scatter_c?(send.at, send.count, send.of, recv.at, recv.count, recv.of, root, comm)
            }
            MpiCollective::Gather => {
                f.gather_c?(send.at, send.count, send.of, recv.at, recv.count, recv.of, root, comm)
            }
            MpiCollective::Barrier => (f.barrier)(comm),
        }
    })
}

/// Makes the call by the function that counts in an `int`.
fn narrow(f: &Functions, asked: &MpiCall) -> c_int {
    let MpiCall { what, send, recv, op, root, comm } = *asked;
    let (Ok(sends), Ok(receives)) = (c_int::try_from(send.count), c_int::try_from(recv.count))
    else {
        return in_pieces(f, asked);
    };
    // SAFETY: the arguments are the program's, whose counts fit an `int`.
    unsafe {
        match what {
            MpiCollective::Allreduce => {
                (f.allreduce)(send.at, recv.at, receives, recv.of, op, comm)
            }
            MpiCollective::Reduce => {
                (f.reduce)(send.at, recv.at, receives, recv.of, op, root, comm)
            }
            MpiCollective::ReduceScatterBlock => {
                (f.reduce_scatter_block)(send.at, recv.at, receives, recv.of, op, comm)
            }
            MpiCollective::Bcast => (f.bcast)(recv.at, receives, recv.of, root, comm),
            MpiCollective::Allgather => {
                (f.allgather)(send.at, sends, send.of, recv.at, receives, recv.of, comm)
            }
            MpiCollective::Alltoall => {
                (f.alltoall)(send.at, sends, send.of, recv.at, receives, recv.of, comm)
            }
            MpiCollective::Scatter => {
                (f.scatter)(send.at, sends, send.of, recv.at, receives, recv.of, root, comm)
            }
            MpiCollective::Gather => {
                (f.gather)(send.at, sends, send.of, recv.at, receives, recv.of, root, comm)
            }
            MpiCollective::Barrier => (f.barrier)(comm),
        }
    }
}

/// Makes a call with more values than an `int` counts, where MPI has no wide counts: by parts, for collectives that
/// treat each value alike.
fn in_pieces(f: &Functions, asked: &MpiCall) -> c_int {
    let by_value = matches!(
        asked.what,
        MpiCollective::Allreduce | MpiCollective::Reduce | MpiCollective::Bcast
    );
    if !by_value || asked.recv.count < 0 {
        return Abi::ERR_COUNT;
    }
    let (mut least, mut extent) = (0, 0);
    // SAFETY: there is room for the answers.
    let wrong = unsafe { (f.type_get_extent)(asked.recv.of, &raw mut least, &raw mut extent) };
    if wrong != 0 {
        return wrong;
    }
    let mut done = 0;
    while done < asked.recv.count {
        let count = PIECE.min(asked.recv.count - done);
        let part = |values: Values| {
            // Small addresses are marks such as `MPI_IN_PLACE`, and so is the highest one.
            let is_mark = values.at.addr() <= 1 || values.at.addr() == usize::MAX;
            let offset = if is_mark { 0 } else { (done * extent) as isize };
            Values { at: values.at.wrapping_byte_offset(offset), count, ..values }
        };
        let piece = MpiCall { send: part(asked.send), recv: part(asked.recv), ..*asked };
        let code = narrow(f, &piece);
        if code != 0 {
            return code;
        }
        done += count;
    }
    0
}
