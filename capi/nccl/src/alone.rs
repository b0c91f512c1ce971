//! NCCL's functions without NCCL: communicators are worlds of processes with a GPU each, and operations run proved
//! algorithms on it. Several ranks may share a GPU. The mode is that of the whole process, by `ROUNDELAY_NCCL=alone`.

use std::collections::HashMap;
use std::ffi::{c_int, c_uint};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use roundelay::cuda::{CudaRank, DeviceCalls};
use roundelay::{Call, Collective, DType, Error, Options, ReduceOp, UniqueId as WorldId, World};
use roundelay_kernels::cuda::nccl_dtype;
use roundelay_kernels::library_files::{ALONE, NCCL as REAL};

use crate::function_table::functions;
use crate::last_error;
use crate::mode::is_alone;
use crate::name::Name;
use crate::operation::{Left, Operation, Taken};
use crate::process::process;
use crate::types::{Answer as _, Code, Comm, In, Out, Stream, Team, Text, UniqueId, Window};
use crate::why::Why;

/// The version of NCCL whose functions the table has.
const VERSION: c_int = 23_203;
/// NCCL waits for ever, and frameworks end a job after ten minutes: a rank may prepare its data for long.
const DEADLINE: Duration = Duration::from_secs(30 * 60);

/// The functions where no NCCL is behind the library.
pub(crate) struct Alone;

/// Returns the functions of this mode, if the process is in it.
pub(crate) fn alone() -> Option<&'static Alone> {
    is_alone().then_some(&Alone)
}

macro_rules! refusals {
    ($($since:literal $kind:ident $name:ident($($arg:ident: $ty:ty),*) -> $ret:ty;)*) => {
        /// All functions, each of which refuses its call where this mode does not have it.
        #[allow(non_snake_case, clippy::too_many_arguments, reason = "the functions are NCCL's")]
        pub(crate) trait OwnFunctions {
            $(
                /// # Safety
                /// The arguments are valid as NCCL requires.
                unsafe fn $name(&self, $($arg: $ty),*) -> $ret {
                    _ = ($($arg,)*);
                    last_error::tell(&format!(
                        "{} is not there without an NCCL behind the library ({REAL}={ALONE})",
                        Name::$name
                    ));
                    <$ret>::REFUSED
                }
            )*
        }
    };
}
functions!(refusals);

/// A communicator of this mode.
struct OwnComm {
    world: World,
    calls: DeviceCalls,
    device: usize,
    /// The first failure, after which every call fails alike.
    failure: Mutex<Option<(Code, String)>>,
}

/// The communicators by their handles.
static COMMS: LazyLock<Mutex<HashMap<usize, Arc<OwnComm>>>> = LazyLock::new(Mutex::default);

fn comms() -> MutexGuard<'static, HashMap<usize, Arc<OwnComm>>> {
    COMMS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The failure of a call, told to the program.
struct Refusal(Code, String);

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        let code = error.code().as_str();
        let answer = match code {
            "E0402" | "E0404" | "E0409" | "E0411" | "E0431" => Code::INVALID_ARGUMENT,
            "E0413" | "E0405" | "E0428" => Code::REMOTE,
            "E0414" | "E0427" => Code::INVALID_USAGE,
            "E0415" | "E0429" => Code::SYSTEM,
            "E0419" | "E0421" => Code::CUDA,
            _ => Code::INTERNAL,
        };
        Self(answer, error.to_string())
    }
}

impl From<roundelay::cuda::Error> for Refusal {
    fn from(error: roundelay::cuda::Error) -> Self {
        Error::from(error).into()
    }
}

impl From<roundelay::EngineError> for Refusal {
    fn from(error: roundelay::EngineError) -> Self {
        Error::from(error).into()
    }
}

fn wrong(what: impl Into<String>) -> Refusal {
    Refusal(Code::INVALID_ARGUMENT, what.into())
}

/// Returns the code of a call's failure, whose text is kept for `ncclGetLastError`.
fn guard<R>(call: impl FnOnce() -> Result<R, Refusal>) -> Result<R, Code> {
    let done = catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|_| {
        Err(Refusal(Code::INTERNAL, "the library panicked, which is a defect of it".into()))
    });
    done.map_err(|Refusal(code, text)| {
        last_error::tell(&text);
        code
    })
}

/// Has a call answer by its code.
fn answer(call: impl FnOnce() -> Result<(), Refusal>) -> Code {
    guard(call).err().unwrap_or(Code::SUCCESS)
}

/// Writes a result of a function.
///
/// # Safety
/// `to` is null or has room for the value.
unsafe fn write<T>(to: *mut T, what: &str, value: T) -> Result<(), Refusal> {
    if to.is_null() {
        return Err(wrong(format!("{what} is null")));
    }
    // SAFETY: the caller's promise.
    unsafe { to.write(value) };
    Ok(())
}

impl OwnComm {
    /// Returns the communicator of a handle.
    fn of(comm: Comm) -> Result<Arc<Self>, Refusal> {
        let found = comms().get(&comm.addr()).cloned();
        found.ok_or_else(|| wrong("the communicator is null, or was destroyed"))
    }

    /// Makes the ranks of a world those of a communicator, on the device that is current in this thread.
    fn on_device(world: World) -> Result<Comm, Refusal> {
        let device = CudaRank::current_device()?;
        let calls = world.device_calls(device)?;
        let own = Arc::new(Self { world, calls, device, failure: Mutex::default() });
        let handle = Arc::as_ptr(&own).addr();
        comms().insert(handle, own);
        Ok(std::ptr::without_provenance_mut(handle))
    }

    fn failure(&self) -> MutexGuard<'_, Option<(Code, String)>> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps a failure after which the communicator is of no use.
    fn keep(&self, refusal: Refusal) -> Refusal {
        let Refusal(code, text) = &refusal;
        if matches!(*code, Code::REMOTE | Code::CUDA | Code::INTERNAL) {
            self.failure().get_or_insert_with(|| (*code, text.clone()));
        }
        refusal
    }

    fn leave(comm: Comm, then: impl FnOnce(&Self)) -> Code {
        if comm.is_null() {
            return Code::SUCCESS;
        }
        answer(|| {
            let own = Self::of(comm)?;
            comms().remove(&comm.addr());
            then(&own);
            match Arc::try_unwrap(own) {
                Ok(Self { world, calls, failure, .. }) => {
                    let failed = failure.into_inner().unwrap_or_else(PoisonError::into_inner);
                    drop(calls);
                    // A world that failed is left without a word.
                    if failed.is_none() { world.leave().map_err(Refusal::from) } else { Ok(()) }
                }
                // Another thread is in a call, with which it goes.
                Err(_) => Ok(()),
            }
        })
    }
}

/// Refuses to make a communicator in a group, whose other calls would make those of this process's other ranks.
pub(crate) fn refuse_in_group() -> Code {
    answer(|| {
        let why = "a communicator cannot be made in a group: a process is one rank here";
        Err(Refusal(Code::INVALID_USAGE, why.to_owned()))
    })
}

/// Joins the world of an id.
///
/// # Safety
/// `comm` is null or has room for a handle.
unsafe fn join(comm: *mut Comm, nranks: c_int, id: &UniqueId, rank: c_int) -> Code {
    answer(|| {
        let number = |what: &str, value: c_int| {
            u32::try_from(value).map_err(|_| wrong(format!("{what} is {value}")))
        };
        let (nranks, rank) = (number("nranks", nranks)?, number("rank", rank)?);
        if comm.is_null() {
            return Err(wrong("comm is null"));
        }
        let options = Options::new().deadline(DEADLINE);
        let world = World::join_with(&WorldId::from_bytes(id.bytes()), nranks, rank, options)?;
        let made = OwnComm::on_device(world)?;
        process().joins(rank as i32);
        // SAFETY: the caller's promise.
        unsafe { write(comm, "comm", made) }
    })
}

impl OwnFunctions for Alone {
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
        // SAFETY: the caller's promise.
        unsafe { join(comm, nranks, &id, rank) }
    }

    unsafe fn CommInitRankConfig(
        &self,
        comm: *mut Comm,
        nranks: c_int,
        id: UniqueId,
        rank: c_int,
        _config: Out,
    ) -> Code {
        // A call that is done at once is right for a nonblocking communicator, too; the rest is about NCCL's channels.
        // SAFETY: the caller's promise.
        unsafe { join(comm, nranks, &id, rank) }
    }

    unsafe fn CommInitRankScalable(
        &self,
        comm: *mut Comm,
        nranks: c_int,
        rank: c_int,
        nids: c_int,
        ids: *mut UniqueId,
        _config: Out,
    ) -> Code {
        if ids.is_null() || nids < 1 {
            return answer(|| Err(wrong(format!("{nids} ids"))));
        }
        // All ranks have the same ids.
        // SAFETY: the caller's promise: there is at least one.
        unsafe { join(comm, nranks, &*ids, rank) }
    }

    unsafe fn CommSplit(
        &self,
        comm: Comm,
        color: c_int,
        key: c_int,
        made: *mut Comm,
        _config: Out,
    ) -> Code {
        answer(|| {
            let own = OwnComm::of(comm)?;
            if made.is_null() {
                return Err(wrong("newcomm is null"));
            }
            let color = match color {
                -1 => None,
                color => Some(u32::try_from(color).map_err(|_| wrong(format!("color {color}")))?),
            };
            let part = own.world.split(color, key.into())?;
            let part = part.map_or(Ok(std::ptr::null_mut()), OwnComm::on_device)?;
            // SAFETY: the caller's promise.
            unsafe { write(made, "newcomm", part) }
        })
    }

    unsafe fn CommFinalize(&self, comm: Comm) -> Code {
        if comm.is_null() {
            return Code::SUCCESS;
        }
        answer(|| Ok(OwnComm::of(comm)?.calls.wait()?))
    }

    unsafe fn CommDestroy(&self, comm: Comm) -> Code {
        OwnComm::leave(comm, |_| {})
    }

    unsafe fn CommAbort(&self, comm: Comm) -> Code {
        OwnComm::leave(comm, |own| {
            let why = "the program called ncclCommAbort";
            own.failure().get_or_insert_with(|| (Code::REMOTE, why.to_owned()));
            // A world that has failed before needs no end.
            _ = own.calls.rank().abort(why);
            _ = own.world.abort(why);
        })
    }

    unsafe fn CommGetAsyncError(&self, comm: Comm, state: *mut c_int) -> Code {
        answer(|| {
            let own = OwnComm::of(comm)?;
            if let Err(ended) = own.calls.rank().check() {
                own.keep(ended.into());
            }
            let failure = own.failure().clone();
            let code = failure.map_or(Code::SUCCESS, |(code, text)| {
                last_error::tell(&text);
                code
            });
            // SAFETY: the caller's promise.
            unsafe { write(state, "asyncError", code.0) }
        })
    }

    unsafe fn CommCount(&self, comm: Comm, count: *mut c_int) -> Code {
        // SAFETY: the caller's promise.
        answer(|| unsafe { write(count, "count", OwnComm::of(comm)?.world.nranks() as c_int) })
    }

    unsafe fn CommCuDevice(&self, comm: Comm, device: *mut c_int) -> Code {
        // SAFETY: the caller's promise.
        answer(|| unsafe { write(device, "device", OwnComm::of(comm)?.device as c_int) })
    }

    unsafe fn CommUserRank(&self, comm: Comm, rank: *mut c_int) -> Code {
        // SAFETY: the caller's promise.
        answer(|| unsafe { write(rank, "rank", OwnComm::of(comm)?.world.rank().id() as c_int) })
    }

    unsafe fn CommRegister(&self, comm: Comm, at: Out, _size: usize, handle: *mut Out) -> Code {
        // Buffers are staged: nothing is to be kept of them.
        answer(|| {
            OwnComm::of(comm)?;
            // SAFETY: the caller's promise.
            unsafe { write(handle, "handle", at) }
        })
    }

    unsafe fn CommDeregister(&self, comm: Comm, _handle: Out) -> Code {
        answer(|| OwnComm::of(comm).map(drop))
    }

    unsafe fn GroupStart(&self) -> Code {
        Code::SUCCESS
    }

    unsafe fn GroupEnd(&self) -> Code {
        Code::SUCCESS
    }
}

/// An operation on a communicator of this mode.
pub(crate) struct OwnCall {
    name: Name,
    own: Arc<OwnComm>,
    call: Call,
    io: [u64; 2],
    stream: Stream,
}

impl OwnCall {
    fn of(operation: &Operation) -> Result<Self, Refusal> {
        let own = OwnComm::of(operation.comm)?;
        let collective = match operation.name {
            Name::AllReduce | Name::AllReduceConfig => Collective::AllReduce,
            Name::Reduce | Name::ReduceConfig => Collective::Reduce,
            Name::ReduceScatter | Name::ReduceScatterConfig => Collective::ReduceScatter,
            Name::Broadcast | Name::BroadcastConfig | Name::Bcast => Collective::Broadcast,
            Name::AllGather | Name::AllGatherConfig => Collective::AllGather,
            Name::AlltoAll | Name::AlltoAllConfig => Collective::AllToAll,
            Name::Gather | Name::GatherConfig => Collective::Gather,
            Name::Scatter | Name::ScatterConfig => Collective::Scatter,
            other => {
                let text = format!("{other} is not there without an NCCL behind the library");
                return Err(Refusal(Code::INVALID_USAGE, text));
            }
        };
        let dtype: DType = nccl_dtype(operation.dtype)
            .ok_or_else(|| wrong(format!("there is no data type {}", operation.dtype)))?;
        let ops = [ReduceOp::Sum, ReduceOp::Prod, ReduceOp::Max, ReduceOp::Min, ReduceOp::Avg];
        let op = usize::try_from(operation.op).ok().and_then(|at| ops.get(at).copied());
        let op = op.ok_or_else(|| wrong(format!("there is no operator {}", operation.op)))?;
        let nranks = own.world.nranks();
        let root = u32::try_from(operation.root).ok().filter(|root| *root < nranks);
        let root = root.ok_or_else(|| wrong(format!("there is no rank {}", operation.root)))?;
        // `ncclBcast` has one buffer.
        let send =
            if operation.name == Name::Bcast { operation.recv.cast() } else { operation.send };
        let io = [send.addr() as u64, operation.recv.addr() as u64];
        let call = Call { collective, root, count: operation.count as u64, dtype, op };
        Ok(Self { name: operation.name, own, call, io, stream: operation.stream })
    }

    fn issue(&self) -> Result<(), Refusal> {
        if let Some((code, text)) = &*self.own.failure() {
            return Err(Refusal(*code, text.clone()));
        }
        let begun = Instant::now();
        if self.call.count == 0 {
            process().took(self.name, "nothing", begun.elapsed());
            return Ok(());
        }
        let issued = self.own.calls.plan(self.call).map_err(Refusal::from).and_then(|plan| {
            // SAFETY: the arguments are the program's, which promises that they are valid.
            unsafe { plan.launch_at(self.stream.cast(), self.io) }?;
            process().took(self.name, &plan.kernel().name, begun.elapsed());
            Ok(())
        });
        issued.map_err(|refusal| {
            process().refused(self.name);
            self.own.keep(refusal)
        })
    }
}

impl Taken for OwnCall {
    fn take(operation: &Operation) -> Result<Self, Left> {
        if alone().is_none() {
            return Err(Left::Passed(Why::NoWorld));
        }
        guard(|| Self::of(operation)).map_err(Left::Refused)
    }

    fn run(group: Vec<Self>) -> Code {
        answer(|| group.iter().try_for_each(Self::issue))
    }
}
