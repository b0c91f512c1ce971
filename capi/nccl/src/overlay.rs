//! NCCL's functions over the real library: each goes on, and beside a communicator stands the world of its ranks where they
//! are on one host and agree, for the operations that an algorithm is selected for.

use std::ffi::c_int;
use std::sync::Arc;
use std::thread::sleep;
use std::time::Duration;

use roundelay::UniqueId as WorldId;
use roundelay::cuda::CudaRank;

use crate::call_errors::{Refusal, answer};
use crate::functions::{Behind, NcclFunctions};
use crate::group;
use crate::name::Name;
use crate::new_comms::{NewComm, device_of, make};
use crate::own_comm::{OwnComm, RankPlace};
use crate::pass::{has, pass};
use crate::seats::{self, CommSeat, name_of_id};
use crate::settings::settings;
use crate::types::{Answer, Code, Comm, Out, UniqueId};

/// The pause between two looks at a communicator that NCCL is making.
const PAUSE: Duration = Duration::from_millis(1);

/// The functions over the real library.
pub(crate) struct Overlay;

/// A rank's place in a new communicator.
enum Seating {
    Known {
        place: RankPlace,
        several: bool,
    },
    /// NCCL says it.
    Asked,
}

/// Returns what remains to be done for a communicator of that name.
fn new_comm(at: *mut Comm, name: String, seating: Seating) -> NewComm {
    let device = current_device();
    NewComm::new(at, move |comm, goes_on| {
        if comm.is_null() {
            return Ok(comm);
        }
        let seat = CommSeat::new(name);
        seat.sit(comm);
        let ready = if goes_on { wait_for(&seat, comm) } else { Ok(()) };
        let placed = ready.and_then(|()| match seating {
            Seating::Known { place, several } => Ok((place, several)),
            Seating::Asked => ask(&seat, comm, device).map(|place| (place, false)),
        });
        match placed {
            Ok((place, several)) => seat.meet(&place, several),
            Err(why) => seat.set(Err(why)),
        }
        Ok(comm)
    })
}

fn current_device() -> Result<usize, Refusal> {
    CudaRank::current_device().map_err(Refusal::from)
}

/// Waits until NCCL has made a communicator.
fn wait_for(seat: &Arc<CommSeat>, comm: Comm) -> Result<(), Refusal> {
    loop {
        let mut state = Code::SUCCESS.0;
        // SAFETY: the communicator is there, and the value outlives the call.
        let asked = seat
            .while_there(|| unsafe { Behind.CommGetAsyncError(comm, &raw mut state) })
            .map(|code| if code == Code::SUCCESS { Code(state) } else { code });
        match asked {
            Some(Code::IN_PROGRESS) => sleep(PAUSE),
            Some(Code::SUCCESS) => return Ok(()),
            Some(code) => return Err(Refusal(code, "NCCL did not make the communicator".into())),
            None => return Err(Refusal(Code::INVALID_USAGE, "it was let go of before".into())),
        }
    }
}

/// Asks NCCL for this rank's place in a communicator.
fn ask(seat: &CommSeat, comm: Comm, device: Result<usize, Refusal>) -> Result<RankPlace, Refusal> {
    let (mut nranks, mut rank) = (0, 0);
    let code = seat.while_there(|| {
        // SAFETY: the communicator is there, and the value outlives the call.
        let counted = unsafe { Behind.CommCount(comm, &raw mut nranks) };
        // SAFETY: as before.
        let code = unsafe { Behind.CommUserRank(comm, &raw mut rank) };
        if counted == Code::SUCCESS { code } else { counted }
    });
    match (code, u32::try_from(nranks), u32::try_from(rank)) {
        (Some(Code::SUCCESS), Ok(nranks), Ok(rank)) => Ok(RankPlace { nranks, rank, device }),
        _ => Err(Refusal(Code::INVALID_USAGE, "NCCL does not tell its ranks".into())),
    }
}

/// Returns what remains to be done for the communicator of an id.
fn of_id(at: *mut Comm, name: String, nranks: c_int, rank: c_int) -> Vec<NewComm> {
    match (u32::try_from(nranks), u32::try_from(rank)) {
        (Ok(nranks @ 2..), Ok(rank)) if settings().take_any() && !at.is_null() => {
            let place = RankPlace { nranks, rank, device: current_device() };
            vec![new_comm(at, name, Seating::Known { place, several: group::is_open() })]
        }
        _ => Vec::new(),
    }
}

/// Removes a communicator's state here before NCCL's function lets go of it.
fn let_go(comm: Comm, then: impl FnOnce(&OwnComm)) -> Code {
    let Some(seat) = seats::remove(comm) else { return Code::SUCCESS };
    if let Some(Ok(own)) = seat.known() {
        then(own);
    }
    match Arc::into_inner(seat).and_then(CommSeat::into_outcome) {
        Some(Ok(own)) => answer(|| OwnComm::leave(own)),
        // Another thread asks for its state, or the ranks are about to meet: it goes with that.
        _ => Code::SUCCESS,
    }
}

/// Returns the world of a communicator, if its ranks have met.
fn own(comm: Comm) -> Option<Arc<OwnComm>> {
    let seat = seats::find(comm)?;
    seat.known()?.as_ref().ok().cloned()
}

/// Returns the first of two codes that is wrong, or the second.
fn first_wrong(ours: Code, theirs: Code) -> Code {
    if ours.is_wrong() { ours } else { theirs }
}

impl NcclFunctions for Overlay {
    unsafe fn otherwise<F: Copy, R: Answer>(&self, name: Name, call: impl FnOnce(F) -> R) -> R {
        // SAFETY: the caller's promise.
        unsafe { pass(name, call) }
    }

    unsafe fn CommInitRank(
        &self,
        comm: *mut Comm,
        nranks: c_int,
        id: UniqueId,
        rank: c_int,
    ) -> Code {
        let made = of_id(comm, name_of_id(&id), nranks, rank);
        // SAFETY: the arguments are the program's.
        unsafe { make(made, Behind.CommInitRank(comm, nranks, id, rank), group::is_open()) }
    }

    unsafe fn CommInitRankConfig(
        &self,
        comm: *mut Comm,
        nranks: c_int,
        id: UniqueId,
        rank: c_int,
        config: Out,
    ) -> Code {
        let made = of_id(comm, name_of_id(&id), nranks, rank);
        // SAFETY: the arguments are the program's.
        let code = unsafe { Behind.CommInitRankConfig(comm, nranks, id, rank, config) };
        // SAFETY: as before.
        unsafe { make(made, code, group::is_open()) }
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
        // SAFETY: the arguments are the program's.
        let code = unsafe { Behind.CommInitRankScalable(comm, nranks, rank, nids, ids, config) };
        if code.is_wrong() || ids.is_null() || nids < 1 || !settings().take_any() {
            return code;
        }
        // All ranks have the same ids.
        // SAFETY: there is at least one.
        let made = of_id(comm, name_of_id(unsafe { &*ids }), nranks, rank);
        // SAFETY: as before.
        unsafe { make(made, code, group::is_open()) }
    }

    unsafe fn CommInitAll(&self, comms: *mut Comm, ndevices: c_int, devices: *const c_int) -> Code {
        // SAFETY: the arguments are the program's.
        let code = unsafe { Behind.CommInitAll(comms, ndevices, devices) };
        let nranks = u32::try_from(ndevices).unwrap_or(0);
        let name = WorldId::new().map(|id| id.to_hex());
        let (false, 2.., true, Ok(name)) = (code.is_wrong(), nranks, settings().take_any(), name)
        else {
            return code;
        };
        let made = (0..nranks).map(|rank| {
            // SAFETY: there are as many as ranks.
            let given = unsafe { device_of(devices, rank) };
            let device = usize::try_from(given).map_err(|_| {
                Refusal(Code::INVALID_ARGUMENT, format!("there is no device {given}"))
            });
            let seating =
                Seating::Known { place: RankPlace { nranks, rank, device }, several: true };
            // SAFETY: there is room for as many handles.
            new_comm(unsafe { comms.add(rank as usize) }, name.clone(), seating)
        });
        // SAFETY: as before.
        unsafe { make(made.collect(), code, group::is_open()) }
    }

    unsafe fn CommSplit(
        &self,
        comm: Comm,
        color: c_int,
        key: c_int,
        made: *mut Comm,
        config: Out,
    ) -> Code {
        let name = seats::find(comm).map(|seat| seats::name_of_part(&seat.name_of_split(), color));
        // SAFETY: the arguments are the program's.
        let code = unsafe { Behind.CommSplit(comm, color, key, made, config) };
        let part = name.filter(|_| color >= 0 && !made.is_null());
        let part = part.map(|name| new_comm(made, name, Seating::Asked));
        // SAFETY: as before.
        unsafe { make(part.into_iter().collect(), code, group::is_open()) }
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
        // SAFETY: the arguments are the program's.
        let code = unsafe { Behind.CommShrink(comm, without, count, made, config, flags) };
        let seat = seats::find(comm).filter(|_| !code.is_wrong() && !made.is_null());
        let rest = seat.map(|seat| {
            let count = if without.is_null() { 0 } else { usize::try_from(count).unwrap_or(0) };
            // SAFETY: NCCL has taken as many.
            let ranks: Vec<_> =
                (0..count).map(|at| unsafe { without.add(at).read_unaligned() }).collect();
            new_comm(made, seat.name_without(&ranks), Seating::Asked)
        });
        // SAFETY: as before.
        unsafe { make(rest.into_iter().collect(), code, group::is_open()) }
    }

    unsafe fn CommFinalize(&self, comm: Comm) -> Code {
        let ours = own(comm).map_or(Code::SUCCESS, |own| answer(|| Ok(own.calls.wait()?)));
        // SAFETY: the argument is the program's.
        first_wrong(ours, unsafe { Behind.CommFinalize(comm) })
    }

    unsafe fn CommDestroy(&self, comm: Comm) -> Code {
        let ours = let_go(comm, |_| {});
        // SAFETY: the argument is the program's.
        first_wrong(ours, unsafe { Behind.CommDestroy(comm) })
    }

    unsafe fn CommAbort(&self, comm: Comm) -> Code {
        let_go(comm, |own| own.abort(Code::REMOTE, "the program called ncclCommAbort"));
        // SAFETY: the argument is the program's.
        unsafe { Behind.CommAbort(comm) }
    }

    unsafe fn CommRevoke(&self, comm: Comm, flags: c_int) -> Code {
        if let Some(own) = own(comm).filter(|_| has(Name::CommRevoke)) {
            own.abort(Code::INVALID_USAGE, "the program called ncclCommRevoke");
        }
        // SAFETY: the arguments are the program's.
        unsafe { Behind.CommRevoke(comm, flags) }
    }

    unsafe fn CommGetAsyncError(&self, comm: Comm, state: *mut c_int) -> Code {
        // SAFETY: the arguments are the program's.
        let code = unsafe { Behind.CommGetAsyncError(comm, state) };
        let seat = seats::find(comm).filter(|_| code == Code::SUCCESS && !state.is_null());
        let Some(seat) = seat else { return code };
        // SAFETY: NCCL has written it.
        let theirs = Code(unsafe { state.read_unaligned() });
        if theirs != Code::SUCCESS {
            return code;
        }
        let ours = match seat.known() {
            None => Code::IN_PROGRESS,
            Some(Err(_)) => Code::SUCCESS,
            Some(Ok(own)) => own.state().map_or(Code::SUCCESS, Refusal::tell),
        };
        // SAFETY: as before.
        unsafe { state.write_unaligned(ours.0) };
        code
    }
}
