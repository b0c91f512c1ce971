//! NCCL's functions without NCCL: communicators are worlds of processes with a GPU each, and operations run proved
//! algorithms on it. Several ranks may share a GPU, or be of one process. The mode is that of the whole process, by
//! `ROUNDELAY_NCCL=alone`.

use std::ffi::c_int;
use std::ptr::null_mut;
use std::sync::Arc;
use std::time::Duration;

use roundelay::UniqueId as WorldId;
use roundelay::cuda::CudaRank;
use roundelay_kernels::library_files::{ALONE, NCCL};

use crate::call_config::check_comm;
use crate::call_errors::{Refusal, answer, guard, write, wrong};
use crate::functions::NcclFunctions;
use crate::group;
use crate::last_error;
use crate::name::Name;
use crate::new_comms::{NewComm, device_of, make};
use crate::own_comm::{DEADLINE, OwnComm, RankPlace};
use crate::own_memory;
use crate::process::process;
use crate::seats::{self, CommSeat, seat, world};
use crate::types::{Answer, Code, Comm, Out, UniqueId};

/// The version of NCCL whose functions the table has.
const VERSION: c_int = 23_203;

/// The time in which all ranks of a communicator that was revoked come to split it.
const PATIENCE: Duration = Duration::from_secs(60);

/// `NCCL_SHRINK_ABORT`: calls that are under way end.
const SHRINK_ABORT: c_int = 1;

/// The functions where no NCCL is behind the library.
pub(crate) struct Alone;

/// Makes a world the communicator of a handle and of that name.
fn sit(name: String, made: Result<OwnComm, Refusal>) -> Result<Comm, Refusal> {
    let seat = CommSeat::new(name);
    let comm = std::ptr::without_provenance_mut(Arc::as_ptr(&seat).addr());
    seat.set_world(made?);
    seat.sit(comm);
    Ok(comm)
}

/// Returns what remains to be done for a rank of a world.
fn new_rank(at: *mut Comm, name: String, id: WorldId, place: RankPlace) -> NewComm {
    NewComm::new(at, move |_, _| {
        let rank = place.rank;
        let comm = sit(name, OwnComm::meet(&id, &place, DEADLINE))?;
        process().joins(rank as i32);
        Ok(comm)
    })
}

/// Finishes communicators, or keeps them for the end of the group.
fn finish(new: Result<Vec<NewComm>, Refusal>) -> Code {
    match guard(|| new) {
        // SAFETY: the program keeps the places of the handles until its group has ended.
        Ok(new) => unsafe { make(new, Code::SUCCESS, group::is_open()) },
        Err(code) => {
            group::fail(code);
            code
        }
    }
}

/// Joins the world of an id.
///
/// # Safety
/// `config` is null or a configuration of NCCL.
unsafe fn join(comm: *mut Comm, nranks: c_int, id: &UniqueId, rank: c_int, config: Out) -> Code {
    let number = |what: &str, value: c_int| {
        u32::try_from(value).map_err(|_| wrong(format!("{what} is {value}")))
    };
    let place = || {
        // A call that is done at once is right for a nonblocking communicator, too; the rest is about NCCL's channels.
        // SAFETY: the caller's promise.
        unsafe { check_comm(config) }?;
        let (nranks, rank) = (number("nranks", nranks)?, number("rank", rank)?);
        if nranks == 0 || rank >= nranks {
            return Err(wrong(format!("there is no rank {rank} of {nranks}")));
        }
        if comm.is_null() {
            return Err(wrong("comm is null"));
        }
        let device = CudaRank::current_device().map_err(Refusal::from);
        Ok(RankPlace { nranks, rank, device })
    };
    let (name, world) = (seats::name_of_id(id), WorldId::from_bytes(id.bytes()));
    finish(place().map(|place| vec![new_rank(comm, name, world, place)]))
}

/// Leaves the world of a communicator, after `then`.
fn leave(comm: Comm, then: impl FnOnce(&CommSeat, &OwnComm)) -> Code {
    if comm.is_null() {
        return Code::SUCCESS;
    }
    answer(|| {
        let (seat, own) = seat(comm)?;
        then(&seat, &own);
        drop((seats::remove(comm), seat));
        OwnComm::leave(own)
    })
}

impl NcclFunctions for Alone {
    unsafe fn otherwise<F: Copy, R: Answer>(&self, name: Name, _: impl FnOnce(F) -> R) -> R {
        last_error::tell(&format!(
            "{name} is not there without an NCCL behind the library ({NCCL}={ALONE})"
        ));
        R::REFUSED
    }

    unsafe fn GetVersion(&self, version: *mut c_int) -> Code {
        // SAFETY: the caller's promise.
        answer(|| unsafe { write(version, "version", VERSION) })
    }

    unsafe fn GetUniqueId(&self, id: *mut UniqueId) -> Code {
        // SAFETY: the caller's promise.
        answer(|| unsafe { write(id, "id", UniqueId::new(*WorldId::new()?.as_bytes())) })
    }

    unsafe fn CommInitRank(
        &self,
        comm: *mut Comm,
        nranks: c_int,
        id: UniqueId,
        rank: c_int,
    ) -> Code {
        // SAFETY: there is no configuration.
        unsafe { join(comm, nranks, &id, rank, null_mut()) }
    }

    unsafe fn CommInitRankConfig(
        &self,
        comm: *mut Comm,
        nranks: c_int,
        id: UniqueId,
        rank: c_int,
        config: Out,
    ) -> Code {
        // SAFETY: the caller's promise.
        unsafe { join(comm, nranks, &id, rank, config) }
    }

    unsafe fn CommInitRankScalable(
        &self,
        comm: *mut Comm,
        nranks: c_int,
        rank: c_int,
        nids: c_int,
        ids: *mut UniqueId,
        config: Out,
    ) -> Code {
        if ids.is_null() || nids < 1 {
            return answer(|| Err(wrong(format!("{nids} ids"))));
        }
        // All ranks have the same ids.
        // SAFETY: the caller's promise: there is at least one.
        unsafe { join(comm, nranks, &*ids, rank, config) }
    }

    unsafe fn CommSplit(
        &self,
        comm: Comm,
        color: c_int,
        key: c_int,
        made: *mut Comm,
        config: Out,
    ) -> Code {
        let part = || {
            let (seat, own) = seat(comm)?;
            // SAFETY: the caller's promise.
            unsafe { check_comm(config) }?;
            if made.is_null() {
                return Err(wrong("newcomm is null"));
            }
            let split = seat.name_of_split();
            let name = seats::name_of_part(&split, color);
            let color = match color {
                -1 => None,
                color => Some(u32::try_from(color).map_err(|_| wrong(format!("color {color}")))?),
            };
            Ok(vec![NewComm::new(made, move |_, _| {
                let part = if own.is_revoked() {
                    // All ranks meet anew.
                    let (nranks, rank) = (own.nranks(), own.world.rank().id());
                    let place = RankPlace { nranks, rank, device: Ok(own.device) };
                    OwnComm::join(&WorldId::of_job(&split), &place, PATIENCE)?
                        .split(color, key.into())?
                } else {
                    own.world.split(color, key.into())?
                };
                let device = Ok(own.device);
                let Some(part) = part else { return Ok(null_mut()) };
                sit(name, OwnComm::on_device(part.deadline(DEADLINE), &device))
            })])
        };
        finish(part())
    }

    unsafe fn CommInitAll(&self, comms: *mut Comm, ndevices: c_int, devices: *const c_int) -> Code {
        let all = || {
            let count = CudaRank::devices()?;
            let nranks = u32::try_from(ndevices).ok().filter(|nranks| *nranks > 0);
            let nranks = nranks.ok_or_else(|| wrong(format!("ndev is {ndevices}")))?;
            if comms.is_null() {
                return Err(wrong("comm is null"));
            }
            let id = WorldId::new()?;
            let device = |rank: u32| {
                // SAFETY: the caller's promise.
                let device = unsafe { device_of(devices, rank) };
                let known = usize::try_from(device).ok().filter(|device| *device < count);
                known.ok_or_else(|| wrong(format!("there is no device {device} among {count}")))
            };
            let new = |rank| {
                let place = RankPlace { nranks, rank, device: Ok(device(rank)?) };
                // SAFETY: the caller's promise: there is room for as many handles.
                let at = unsafe { comms.add(rank as usize) };
                Ok(new_rank(at, id.to_hex(), id.clone(), place))
            };
            (0..nranks).map(new).collect()
        };
        finish(all())
    }

    unsafe fn CommShrink(
        &self,
        comm: Comm,
        without: *mut c_int,
        count: c_int,
        made: *mut Comm,
        config: Out,
        flags: c_int,
    ) -> Code {
        let rest = || {
            let (seat, own) = seat(comm)?;
            // SAFETY: the caller's promise.
            unsafe { check_comm(config) }?;
            let (nranks, rank) = (own.nranks(), own.world.rank().id());
            let count =
                usize::try_from(count).ok().filter(|count| (1..nranks as usize).contains(count));
            let count = count.filter(|_| !without.is_null() && !made.is_null());
            let count = count.ok_or_else(|| {
                wrong(format!(
                    "newcomm or the list of ranks is null, or is not of 1 to {} ranks",
                    nranks - 1
                ))
            })?;
            // SAFETY: the caller's promise.
            let mut ranks: Vec<_> =
                (0..count).map(|at| unsafe { without.add(at).read_unaligned() }).collect();
            ranks.sort_unstable();
            let is_rank = |rank: &c_int| u32::try_from(*rank).is_ok_and(|rank| rank < nranks);
            if !ranks.iter().all(is_rank) || ranks.windows(2).any(|two| two[0] == two[1]) {
                return Err(wrong(format!("the ranks {ranks:?} are not some of {nranks}")));
            }
            if ranks.contains(&(rank as c_int)) {
                return Err(wrong(format!("rank {rank} calls, which is to be left out")));
            }
            if flags & SHRINK_ABORT != 0 {
                own.abort(Code::REMOTE, "the program called ncclCommShrink, which ends its calls");
            }
            let before = ranks.iter().filter(|other| **other < rank as c_int).count() as u32;
            let (nranks, rank) = (nranks - count as u32, rank - before);
            let name = seat.name_without(&ranks);
            let place = RankPlace { nranks, rank, device: Ok(own.device) };
            let id = WorldId::of_job(&name);
            Ok(vec![new_rank(made, name, id, place)])
        };
        finish(rest())
    }

    unsafe fn RedOpCreatePreMulSum(
        &self,
        op: *mut c_int,
        scalar: Out,
        dtype: c_int,
        place: c_int,
        comm: Comm,
    ) -> Code {
        answer(|| {
            let own = world(comm)?;
            if op.is_null() {
                return Err(wrong("op is null"));
            }
            // SAFETY: the caller's promise.
            unsafe { write(op, "op", own.operators.make(own.calls.rank(), scalar, dtype, place)?) }
        })
    }

    unsafe fn RedOpDestroy(&self, op: c_int, comm: Comm) -> Code {
        answer(|| world(comm)?.operators.destroy(op))
    }

    unsafe fn MemAlloc(&self, at: *mut Out, size: usize) -> Code {
        // SAFETY: the caller's promise.
        answer(|| unsafe { write(at, "ptr", own_memory::allocate(size)?) })
    }

    unsafe fn MemFree(&self, at: Out) -> Code {
        answer(|| own_memory::free(at))
    }

    unsafe fn CommFinalize(&self, comm: Comm) -> Code {
        if comm.is_null() {
            return Code::SUCCESS;
        }
        answer(|| {
            let (seat, own) = seat(comm)?;
            own.calls.wait()?;
            seat.lanes.wait()
        })
    }

    unsafe fn CommDestroy(&self, comm: Comm) -> Code {
        leave(comm, |_, _| {})
    }

    unsafe fn CommAbort(&self, comm: Comm) -> Code {
        leave(comm, |seat, own| {
            let why = "the program called ncclCommAbort";
            seat.lanes.abort(Code::REMOTE, why);
            own.abort(Code::REMOTE, why);
        })
    }

    unsafe fn CommRevoke(&self, comm: Comm, flags: c_int) -> Code {
        if comm.is_null() {
            return Code::SUCCESS;
        }
        answer(|| {
            let (seat, own) = seat(comm)?;
            if flags != 0 {
                return Err(wrong(format!("flags are {flags}, and there are none")));
            }
            let why = "the program called ncclCommRevoke";
            seat.lanes.abort(Code::INVALID_USAGE, why);
            own.abort(Code::INVALID_USAGE, why);
            Ok(())
        })
    }

    unsafe fn CommGetAsyncError(&self, comm: Comm, state: *mut c_int) -> Code {
        answer(|| {
            let (seat, own) = seat(comm)?;
            let failed = seat.lanes.state().map(|failed| own.keep(failed));
            let code = own.state().or(failed).map_or(Code::SUCCESS, Refusal::tell);
            // SAFETY: the caller's promise.
            unsafe { write(state, "asyncError", code.0) }
        })
    }

    unsafe fn CommCount(&self, comm: Comm, count: *mut c_int) -> Code {
        // SAFETY: the caller's promise.
        answer(|| unsafe { write(count, "count", world(comm)?.nranks() as c_int) })
    }

    unsafe fn CommCuDevice(&self, comm: Comm, device: *mut c_int) -> Code {
        // SAFETY: the caller's promise.
        answer(|| unsafe { write(device, "device", world(comm)?.device as c_int) })
    }

    unsafe fn CommUserRank(&self, comm: Comm, rank: *mut c_int) -> Code {
        // SAFETY: the caller's promise.
        answer(|| unsafe { write(rank, "rank", world(comm)?.world.rank().id() as c_int) })
    }

    unsafe fn CommRegister(&self, comm: Comm, at: Out, _size: usize, handle: *mut Out) -> Code {
        // The ranks offer each other buffers as they are called with: nothing is to be kept of them.
        answer(|| {
            world(comm)?;
            // SAFETY: the caller's promise.
            unsafe { write(handle, "handle", at) }
        })
    }

    unsafe fn CommDeregister(&self, comm: Comm, _handle: Out) -> Code {
        answer(|| world(comm).map(drop))
    }

    unsafe fn GroupStart(&self) -> Code {
        Code::SUCCESS
    }

    unsafe fn GroupEnd(&self) -> Code {
        Code::SUCCESS
    }
}
