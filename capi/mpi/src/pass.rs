//! Calls that are MPI's: handed on as they were made.

use std::ffi::c_int;

use roundelay_kernels::mpi::{Abi, Functions};

use crate::call::{MpiCall, MpiCollective, RankNumbers, Values};

/// Values that a call of an MPI without counts of 64 bits is given at once.
const PIECE: i64 = 1 << 30;

/// Has MPI make the call; `large` says whether its program counts in 64 bits.
pub(crate) fn pass(functions: &Functions, asked: &MpiCall, large: bool) -> c_int {
    let made = if large { wide(functions, asked) } else { None };
    made.or_else(|| narrow(functions, asked)).unwrap_or_else(|| {
        // SAFETY: the communicator is the caller's, whose handler hears of the error as of those that MPI finds.
        unsafe { (functions.comm_call_errhandler)(asked.comm, Abi::ERR_COUNT) };
        Abi::ERR_COUNT
    })
}

/// Makes the call by the function with wide counts, if MPI has it.
fn wide(f: &Functions, asked: &MpiCall) -> Option<c_int> {
    let MpiCall { what, send, recv, op, root, comm, arrays } = *asked;
    let [given, taken] = arrays.map(|of| [of.counts, of.places].map(|of| of.at.cast::<i64>()));
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
            MpiCollective::Allgatherv => {
                let [counts, places] = taken;
                f.allgatherv_c?(
                    send.at, send.count, send.of, recv.at, counts, places, recv.of, comm,
                )
            }
            MpiCollective::ReduceScatter => {
                f.reduce_scatter_c?(send.at, recv.at, given[0], recv.of, op, comm)
            }
            MpiCollective::Gatherv => {
                let [counts, places] = taken;
                f.gatherv_c?(
                    send.at, send.count, send.of, recv.at, counts, places, recv.of, root, comm,
                )
            }
            MpiCollective::Scatterv => {
                let [counts, places] = given;
                f.scatterv_c?(
                    send.at, counts, places, send.of, recv.at, recv.count, recv.of, root, comm,
                )
            }
            MpiCollective::Alltoallv => {
                let ([sends, from], [receives, to]) = (given, taken);
                f.alltoallv_c?(send.at, sends, from, send.of, recv.at, receives, to, recv.of, comm)
            }
            MpiCollective::Barrier => (f.barrier)(comm),
        }
    })
}

/// Numbers of ranks of 32 bits: the program's, or those of a call with wide counts, made narrow.
enum Narrow {
    Given(*const c_int),
    Made(Vec<c_int>),
}

impl Narrow {
    /// Returns the numbers; `None` where one does not fit 32 bits.
    ///
    /// # Safety
    /// The address is null, or there is a number for each of `n` ranks.
    unsafe fn of(numbers: RankNumbers, n: u32) -> Option<Self> {
        if !numbers.wide {
            return Some(Self::Given(numbers.at.cast()));
        }
        // SAFETY: the caller's promise.
        let Some(wide) = (unsafe { numbers.read(n) }) else {
            return Some(Self::Given(std::ptr::null()));
        };
        let narrow = wide.into_iter().map(c_int::try_from).collect::<Result<_, _>>();
        narrow.ok().map(Self::Made)
    }

    fn at(&self) -> *const c_int {
        match self {
            Self::Given(at) => *at,
            Self::Made(made) => made.as_ptr(),
        }
    }
}

/// Makes a call with a count for each block by the function that counts in an `int`; `None` where a number does not
/// fit.
fn narrow_blocks(f: &Functions, asked: &MpiCall) -> Option<c_int> {
    let MpiCall { what, send, recv, op, root, comm, arrays } = *asked;
    // Between two groups, the arrays have a number for each rank of the other group.
    let (mut inter, mut n) = (0, 0);
    // SAFETY: there is room for the answers.
    let wrong = unsafe {
        match (f.comm_test_inter)(comm, &raw mut inter) {
            0 if inter == 0 || what == MpiCollective::ReduceScatter => {
                (f.comm_size)(comm, &raw mut n)
            }
            0 => (f.comm_remote_size)(comm, &raw mut n),
            wrong => wrong,
        }
    };
    let mut rank = 0;
    let wrong = match wrong {
        // SAFETY: there is room for the answer.
        0 => unsafe { (f.comm_rank)(comm, &raw mut rank) },
        wrong => wrong,
    };
    // Of two groups, `MPI_ROOT` is below all ranks and below the number of no process, in all libraries.
    let is_root = if inter == 0 { rank == root } else { root < -2 };
    if wrong != 0 {
        return Some(wrong);
    }
    let (sends, receives) = (c_int::try_from(send.count).ok()?, c_int::try_from(recv.count).ok()?);
    // SAFETY: the arguments are the program's: arrays that a rank has to give have a number for each rank, and MPI
    // ignores the others, which are read here only where they are wide, and not null.
    unsafe {
        let narrow = |numbers: RankNumbers| {
            let rooted = matches!(what, MpiCollective::Gatherv | MpiCollective::Scatterv);
            // Arrays of a rank that is not the root may be any addresses.
            let given = if rooted && !is_root { RankNumbers::NONE } else { numbers };
            Narrow::of(if numbers.wide { given } else { numbers }, n as u32)
        };
        let [given, wanted] = arrays;
        let (counts, places) = (narrow(given.counts)?, narrow(given.places)?);
        let (taken, to) = (narrow(wanted.counts)?, narrow(wanted.places)?);
        let ([counts, places], [taken, to]) = ([counts.at(), places.at()], [taken.at(), to.at()]);
        Some(match what {
            MpiCollective::Allgatherv => {
                (f.allgatherv)(send.at, sends, send.of, recv.at, taken, to, recv.of, comm)
            }
            MpiCollective::ReduceScatter => {
                (f.reduce_scatter)(send.at, recv.at, counts, recv.of, op, comm)
            }
            MpiCollective::Gatherv => {
                (f.gatherv)(send.at, sends, send.of, recv.at, taken, to, recv.of, root, comm)
            }
            MpiCollective::Scatterv => {
                let (at, of) = (recv.at, recv.of);
                (f.scatterv)(send.at, counts, places, send.of, at, receives, of, root, comm)
            }
            _ => {
                let (at, of) = (recv.at, recv.of);
                (f.alltoallv)(send.at, counts, places, send.of, at, taken, to, of, comm)
            }
        })
    }
}

/// Makes the call by the function that counts in an `int`; `None` where a number does not fit.
fn narrow(f: &Functions, asked: &MpiCall) -> Option<c_int> {
    if asked.has_blocks() {
        return narrow_blocks(f, asked);
    }
    let MpiCall { what, send, recv, op, root, comm, .. } = *asked;
    let (Ok(sends), Ok(receives)) = (c_int::try_from(send.count), c_int::try_from(recv.count))
    else {
        return in_pieces(f, asked);
    };
    // SAFETY: the arguments are the program's, whose counts fit an `int`.
    Some(unsafe {
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
            _ => unreachable!("collectives with a count for each block are made elsewhere"),
        }
    })
}

/// Makes a call with more values than an `int` counts, where MPI has no wide counts: by parts, for collectives that
/// treat each value alike; `None` for the others.
fn in_pieces(f: &Functions, asked: &MpiCall) -> Option<c_int> {
    let by_value = matches!(
        asked.what,
        MpiCollective::Allreduce | MpiCollective::Reduce | MpiCollective::Bcast
    );
    if !by_value || asked.recv.count < 0 {
        return None;
    }
    let (mut least, mut extent) = (0, 0);
    // SAFETY: there is room for the answers.
    let wrong = unsafe { (f.type_get_extent)(asked.recv.of, &raw mut least, &raw mut extent) };
    if wrong != 0 {
        return Some(wrong);
    }
    let mut done = 0;
    while done < asked.recv.count {
        let count = PIECE.min(asked.recv.count - done);
        let part = |values: Values| {
            // These addresses are `MPI_IN_PLACE` in one of the libraries, and no data's.
            let is_mark = [1, usize::MAX].contains(&values.at.addr());
            let offset = if is_mark { 0 } else { (done * extent) as isize };
            Values { at: values.at.wrapping_byte_offset(offset), count, ..values }
        };
        let piece = MpiCall { send: part(asked.send), recv: part(asked.recv), ..*asked };
        let code = narrow(f, &piece)?;
        if code != 0 {
            return Some(code);
        }
        done += count;
    }
    Some(0)
}
