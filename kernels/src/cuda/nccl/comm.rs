//! Communicators: the ranks that send to each other. No call waits longer than the deadline for other ranks.

use std::ffi::{c_char, c_int};
use std::fmt;
use std::ops::Deref;
use std::ptr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use cudarc::nccl::sys::{cudaStream_t, ncclComm_t, ncclConfig_t, ncclDataType_t, ncclUniqueId};
use roundelay_core::dtype::DType;
use roundelay_core::ids::RankId;

use super::super::device::Device;
use super::super::device_rank::DeviceRank;
use super::super::error::Error;
use super::library::Nccl;

const SUCCESS: c_int = 0;
const IN_PROGRESS: c_int = 7;
/// The value that NCCL's header puts at the beginning of a configuration.
const MAGIC: u32 = 0xcafe_beef;
/// The version of the header from which cudarc's types come.
const HEADER: u32 = 23_000;
/// The value of a field that a configuration leaves to NCCL.
const UNDEFINED: c_int = c_int::MIN;
/// Polls of a call's state before the thread sleeps between polls.
const SPINS: u32 = 2000;
/// The pause between two polls after that.
const PAUSE: Duration = Duration::from_micros(50);

/// A name for the ranks of a communicator: one rank makes it, and the program hands it to the others.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct NcclId([u8; 128]);

impl NcclId {
    /// A new name, which no other communicator has.
    ///
    /// # Errors
    /// E0415 without NCCL; E0421 where NCCL finds no network to meet on.
    pub fn new() -> Result<Self, Error> {
        Self::of(Nccl::of_process()?)
    }

    pub(super) fn of(nccl: &Nccl) -> Result<Self, Error> {
        let mut id = ncclUniqueId { internal: [0; 128] };
        // SAFETY: it points to a name to be filled in.
        match unsafe { (nccl.functions.unique_id)(&raw mut id) } {
            SUCCESS => Ok(Self(id.internal.map(|byte| byte.to_ne_bytes()[0]))),
            code => {
                let (what, why) =
                    ("making a name for ranks".into(), nccl.words(code, ptr::null_mut()));
                Err(Error::NcclFailed { what, why })
            }
        }
    }

    /// The bytes of the name, to be handed to the other ranks.
    pub fn to_bytes(&self) -> [u8; 128] {
        self.0
    }

    /// The name of these bytes, which [`Self::to_bytes`] returned.
    pub fn from_bytes(bytes: [u8; 128]) -> Self {
        Self(bytes)
    }
}

impl fmt::Debug for NcclId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("NcclId(…)")
    }
}

/// A stream, as NCCL takes it.
pub(super) type Stream = cudaStream_t;

/// One side of a message: its peer and its elements.
#[derive(Clone, Copy, Debug)]
pub(super) struct NcclEnd {
    pub(super) peer: u32,
    pub(super) address: u64,
    /// Elements.
    pub(super) len: u64,
}

/// A rank's own part of a communicator.
pub(super) struct NcclLink {
    nccl: &'static Nccl,
    /// Null after the communicator was given up.
    handle: ncclComm_t,
    rank: RankId,
    deadline: Duration,
}

// SAFETY: NCCL's communicators are bound to no thread; they take one call at a time, and every call borrows the link
// mutably.
unsafe impl Send for NcclLink {}

impl NcclLink {
    /// Joins the other ranks. With a real NCCL, the context of the rank's device must be the thread's.
    pub(super) fn join(
        nccl: &'static Nccl,
        id: &NcclId,
        (rank, nranks): (RankId, u32),
        deadline: Duration,
    ) -> Result<Self, Error> {
        if nranks == 0 {
            return Err(crate::Error::NoRanks { nranks }.into());
        }
        if rank.0 >= nranks {
            return Err(crate::Error::NoSuchRank { rank, nranks }.into());
        }
        let id = ncclUniqueId { internal: id.0.map(|byte| byte as c_char) };
        let mut config = config();
        let mut link = Self { nccl, handle: ptr::null_mut(), rank, deadline };
        // SAFETY: it points to a handle and a configuration; this thread has the context of the rank's device.
        let code = unsafe {
            (nccl.functions.init)(
                &raw mut link.handle,
                nranks as c_int,
                id,
                rank.0 as c_int,
                &raw mut config,
            )
        };
        let late = |waited: String| crate::Error::NotJoined {
            what: format!(
                "rank {rank} of {nranks}: the ranks of an NCCL communicator did not all come: {waited}"
            ),
        };
        link.settle(code, &|| format!("joining rank {rank} of {nranks}"), &late)?;
        Ok(link)
    }

    /// Issues sends and receives that end together on `stream`. The k-th send to a rank matches that rank's k-th
    /// receive.
    ///
    /// # Safety
    /// Each address is valid for `len` elements of `dtype`, and stays lent until `stream` is done. Until then no thread
    /// or stream writes the sent elements or touches the received ones, except for work ordered behind this call on
    /// `stream`.
    pub(super) unsafe fn group(
        &mut self,
        sends: &[NcclEnd],
        receives: &[NcclEnd],
        dtype: DType,
        stream: Stream,
    ) -> Result<(), Error> {
        let handle = self.alive()?;
        let (functions, dtype) = (&self.nccl.functions, datatype(dtype));
        // SAFETY: it takes nothing.
        let mut code = unsafe { (functions.group_start)() };
        if code == SUCCESS {
            for NcclEnd { peer, address, len } in receives {
                let to = ptr::with_exposed_provenance_mut(*address as usize);
                let (len, peer) = (*len as usize, *peer as c_int);
                // SAFETY: the caller's promise, and the handle is a communicator's.
                code =
                    worse(code, unsafe { (functions.recv)(to, len, dtype, peer, handle, stream) });
            }
            for NcclEnd { peer, address, len } in sends {
                let from = ptr::with_exposed_provenance(*address as usize);
                let (len, peer) = (*len as usize, *peer as c_int);
                // SAFETY: the caller's promise, and the handle is a communicator's.
                code = worse(code, unsafe {
                    (functions.send)(from, len, dtype, peer, handle, stream)
                });
            }
            // SAFETY: a group was begun. The group ends after an error too, because the thread would otherwise stay in
            // it.
            code = worse(code, unsafe { (functions.group_end)() });
        }
        let rank = self.rank;
        let what = || {
            let peers = |ends: &[NcclEnd]| {
                let peers: Vec<String> = ends.iter().map(|end| end.peer.to_string()).collect();
                peers.join(", ")
            };
            format!(
                "a group of rank {rank} that sends to [{}] and receives from [{}]",
                peers(sends),
                peers(receives)
            )
        };
        let late = |waited: String| crate::Error::Late {
            what: format!(
                "{}: {waited}; all ranks must make the same call, with the same algorithm, count and element type",
                what()
            ),
        };
        self.settle(code, &what, &late)
    }

    /// Checks that the communicator is still good, without waiting for other ranks.
    pub(super) fn check(&mut self, what: &str) -> Result<(), Error> {
        self.alive()?;
        match self.state() {
            SUCCESS | IN_PROGRESS => Ok(()),
            code => Err(self.failed(code, what.to_owned())),
        }
    }

    /// Waits for the end of a call that returned `code`.
    fn settle(
        &mut self,
        mut code: c_int,
        what: &dyn Fn() -> String,
        late: &dyn Fn(String) -> crate::Error,
    ) -> Result<(), Error> {
        let begun = Instant::now();
        let mut looks = 0;
        while code == IN_PROGRESS {
            if looks >= SPINS {
                if begun.elapsed() > self.deadline {
                    let said = self.nccl.words(IN_PROGRESS, self.handle);
                    // Another rank may have given up in the meantime, and NCCL's words may be about that.
                    code = self.state();
                    if code != IN_PROGRESS {
                        break;
                    }
                    self.give_up();
                    return Err(late(format!("waited {:?} ({said})", self.deadline)).into());
                }
                std::thread::sleep(PAUSE);
            } else {
                std::thread::yield_now();
            }
            looks += 1;
            code = self.state();
        }
        if code == SUCCESS { Ok(()) } else { Err(self.failed(code, what())) }
    }

    fn state(&self) -> c_int {
        let mut state = SUCCESS;
        // SAFETY: the handle is a communicator's, and it points to an integer.
        let code = unsafe { (self.nccl.functions.state)(self.handle, &raw mut state) };
        if code == SUCCESS { state } else { code }
    }

    fn alive(&self) -> Result<ncclComm_t, Error> {
        if self.handle.is_null() {
            let what = format!("a call of rank {}", self.rank);
            let why = "its communicator was given up after an error".into();
            return Err(Error::NcclFailed { what, why });
        }
        Ok(self.handle)
    }

    fn failed(&mut self, code: c_int, what: String) -> Error {
        let why = self.nccl.words(code, self.handle);
        self.give_up();
        Error::NcclFailed { what, why }
    }

    /// Aborts the calls under way; other ranks get an error.
    pub(super) fn give_up(&mut self) {
        let handle = std::mem::replace(&mut self.handle, ptr::null_mut());
        if !handle.is_null() {
            // SAFETY: the handle is a communicator's, and no code uses it from here on. An error of the abort cannot be
            // helped.
            let _ = unsafe { (self.nccl.functions.abort)(handle) };
        }
    }
}

impl Drop for NcclLink {
    fn drop(&mut self) {
        if self.handle.is_null() {
            return;
        }
        // SAFETY: the handle is a communicator's.
        let code = unsafe { (self.nccl.functions.finalize)(self.handle) };
        let rank = self.rank;
        let what = || format!("ending the communicator of rank {rank}");
        let late = |waited: String| crate::Error::Late { what: waited };
        if self.settle(code, &what, &late).is_ok() {
            // SAFETY: the handle is a communicator's, and no code uses it from here on.
            let _ = unsafe { (self.nccl.functions.destroy)(self.handle) };
        }
    }
}

/// Returns the first of two codes that is an error, otherwise "in progress" if one of them is.
fn worse(before: c_int, now: c_int) -> c_int {
    match (before, now) {
        (IN_PROGRESS, SUCCESS) => IN_PROGRESS,
        (SUCCESS | IN_PROGRESS, now) => now,
        (before, _) => before,
    }
}

/// Returns a configuration in which calls do not wait for other ranks, with NCCL's defaults for the rest.
fn config() -> ncclConfig_t {
    ncclConfig_t {
        size: size_of::<ncclConfig_t>(),
        magic: MAGIC,
        version: HEADER,
        blocking: 0,
        cgaClusterSize: UNDEFINED,
        minCTAs: UNDEFINED,
        maxCTAs: UNDEFINED,
        netName: ptr::null(),
        splitShare: UNDEFINED,
        trafficClass: UNDEFINED,
        commName: ptr::null(),
        collnetEnable: UNDEFINED,
        CTAPolicy: UNDEFINED,
        shrinkShare: UNDEFINED,
        nvlsCTAs: UNDEFINED,
        nChannelsPerNetPeer: UNDEFINED,
        nvlinkCentricSched: UNDEFINED,
        graphUsageMode: UNDEFINED,
        numRmaCtx: UNDEFINED,
        maxP2pPeers: UNDEFINED,
    }
}

/// Returns the element type that NCCL has by this number.
pub fn nccl_dtype(code: c_int) -> Option<DType> {
    DType::ALL.iter().copied().find(|dtype| datatype(*dtype) == code)
}

fn datatype(dtype: DType) -> c_int {
    let datatype = match dtype {
        DType::I8 => ncclDataType_t::ncclInt8,
        DType::U8 => ncclDataType_t::ncclUint8,
        DType::I32 => ncclDataType_t::ncclInt32,
        DType::U32 => ncclDataType_t::ncclUint32,
        DType::I64 => ncclDataType_t::ncclInt64,
        DType::U64 => ncclDataType_t::ncclUint64,
        DType::F16 => ncclDataType_t::ncclFloat16,
        DType::Bf16 => ncclDataType_t::ncclBfloat16,
        DType::F32 => ncclDataType_t::ncclFloat32,
        DType::F64 => ncclDataType_t::ncclFloat64,
        DType::F8E4M3 => ncclDataType_t::ncclFloat8e4m3,
        DType::F8E5M2 => ncclDataType_t::ncclFloat8e5m2,
    };
    datatype as c_int
}

/// One rank of a communicator, and the GPU of its buffers. Each rank is a thread or a process of its own. Where ranks
/// share a device, which NCCL must be told to allow, all ranks make their plans and buffers before one of them
/// launches: loading and allocating may wait for the whole device, on which other ranks wait for this one.
///
/// The communicator ends with the last of its clones and plans. Where one of its calls fails or comes to its deadline,
/// the communicator is given up: the other ranks get an error too, and all ranks join a new one.
#[derive(Clone)]
pub struct NcclComm(Arc<Shared>);

pub(super) struct Shared {
    pub(super) link: Mutex<NcclLink>,
    rank: DeviceRank,
    pub(super) deadline: Duration,
}

impl fmt::Debug for NcclComm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (rank, nranks, device) = (self.rank(), self.nranks(), self.device.ordinal);
        write!(f, "NcclComm(rank {rank} of {nranks} on device {device})")
    }
}

impl Deref for NcclComm {
    type Target = DeviceRank;

    fn deref(&self) -> &DeviceRank {
        &self.0.rank
    }
}

impl NcclComm {
    /// Joins the other ranks as `rank` of `nranks`, on the device of that number; all ranks call it with the same `id`.
    /// No call of the communicator waits for other ranks longer than `deadline`.
    ///
    /// # Errors
    /// E0409 for no ranks; E0411 for a rank beyond the last; E0415 without NCCL, a driver or that device; E0421 where
    /// NCCL refuses, such as two ranks on one device; E0427 where not all ranks come.
    pub fn join(
        device: usize,
        id: &NcclId,
        rank: impl Into<RankId>,
        nranks: u32,
        deadline: Duration,
    ) -> Result<Self, Error> {
        let nccl = Nccl::of_process()?;
        let device = Device::open(device)?;
        let rank = DeviceRank::new(device, rank.into(), nranks)?;
        let link = Mutex::new(NcclLink::join(nccl, id, (rank.rank(), nranks), deadline)?);
        Ok(Self(Arc::new(Shared { link, rank, deadline })))
    }

    /// The version of NCCL, as it counts: 2.30.4 is 23004.
    ///
    /// # Errors
    /// E0415 without NCCL.
    pub fn version() -> Result<u32, Error> {
        Ok(Nccl::of_process()?.version as u32)
    }

    pub(super) fn shared(&self) -> &Shared {
        &self.0
    }

    pub(super) fn link(&self) -> MutexGuard<'_, NcclLink> {
        self.0.link.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
