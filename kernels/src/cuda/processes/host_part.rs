//! A call of ranks on several hosts: a launch copies the rank's input into memory of its host, where the ranks make the
//! call, and copies the output back. On two levels, kernels reduce on each host before, and broadcast behind, and only the
//! first rank of each host copies.

use std::any::Any;
use std::ffi::c_void;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use cudarc::driver::{CudaStream, DriverError, result, sys};

use super::super::control::Control;
use super::super::device::{Device, failed};
use super::super::device_rank::DeviceRank;
use super::super::error::Error;
use super::super::options::CudaOptions;
use super::super::rank_plan::PartOfRank;
use super::rank::CudaRank;
use crate::lowering::plan_call::PlannedCall;

/// The calls of a rank in a world of several hosts, on memory of the host.
pub trait HostCall: Send + Sync {
    /// Makes the call on the rank's input and output, as bytes.
    ///
    /// # Errors
    /// The errors of the world's calls.
    fn run(&self, input: &[u8], output: &mut [u8]) -> Result<(), crate::Error>;

    /// Ends the calls of all ranks for a reason.
    fn abort(&self, why: &str);
}

/// A rank's part of a call that goes through memory of the host.
pub struct HostPart {
    rank: CudaRank,
    /// The memory of the job is at one place, as launches have its address.
    job: Box<Job>,
    deadline: Duration,
}

/// The work of a launch on the host.
struct Job {
    call: Box<dyn HostCall>,
    input: Staging,
    output: Staging,
    /// The kernels before and behind the call, if there are any.
    inside: Option<Inside>,
    /// The error of a call since the last check.
    failed: Mutex<Option<crate::Error>>,
}

/// The ranks of this host, whose kernels leave their result to the job and wait for its own.
struct Inside {
    rank: CudaRank,
    /// The words with which the kernel before the job gives up.
    before: Arc<Control>,
}

/// Memory of the host that the device copies to and from.
struct Staging {
    at: *mut u8,
    bytes: usize,
    /// Frees the memory when it is dropped.
    _memory: Box<dyn Any + Send + Sync>,
}

// SAFETY: an address of memory that the value owns; one launch uses it at a time, as the launches of a plan are ordered.
unsafe impl Send for Staging {}
// SAFETY: as before.
unsafe impl Sync for Staging {}

impl Staging {
    fn new(device: &Device, bytes: usize) -> Result<Self, Error> {
        let what = || format!("pinning {bytes} bytes for device {}", device.ordinal);
        let flags = sys::CU_MEMHOSTALLOC_PORTABLE;
        // SAFETY: the bytes are written below, before any code reads them.
        let memory = unsafe { device.context.alloc_pinned_with_flags::<u8>(bytes.max(1), flags) };
        let mut memory = memory.map_err(failed(what()))?;
        let at = memory.as_mut_ptr().map_err(failed(what()))?;
        // SAFETY: the bytes were just allocated there, for this value alone.
        unsafe { at.write_bytes(0, bytes) };
        Ok(Self { at, bytes, _memory: Box::new(memory) })
    }
}

impl HostPart {
    /// Makes the part of a call on `bytes` bytes of input and of output.
    pub(super) fn new(
        rank: &CudaRank,
        bytes: [usize; 2],
        options: CudaOptions,
        call: Box<dyn HostCall>,
    ) -> Result<Self, Error> {
        let [input, output] = bytes.map(|len| Staging::new(&rank.device, len));
        let (input, output) = (input?, output?);
        let job = Job { call, input, output, inside: None, failed: Mutex::new(None) };
        let deadline = options.common.deadline;
        Ok(Self { rank: rank.clone(), job: Box::new(job), deadline })
    }

    /// Has the call made between a kernel with these control words and a later one, both of the ranks of this host.
    pub(super) fn between(mut self, rank: &CudaRank, before: &Arc<Control>) -> Self {
        self.job.inside = Some(Inside { rank: rank.clone(), before: before.clone() });
        self
    }

    /// Issues the copies and the call on a stream.
    ///
    /// # Safety
    /// The buffers have the bytes of the part and are lent until the stream is done; launches are ordered.
    pub(super) unsafe fn copy_and_call(
        &self,
        stream: &CudaStream,
        [input, output]: [u64; 2],
    ) -> Result<(), DriverError> {
        let (job, at) = (&*self.job, stream.cu_stream());
        let Job { input: from, output: to, .. } = job;
        // SAFETY: the caller's promise; the staging and the job live as long as the plan, which waits for its launches.
        unsafe {
            if from.bytes > 0 {
                sys::cuMemcpyDtoHAsync_v2(from.at.cast(), input, from.bytes, at).result()?;
            }
            let job = std::ptr::from_ref(job).cast_mut().cast();
            result::stream::launch_host_function(at, run_job, job)?;
            if to.bytes > 0 {
                sys::cuMemcpyHtoDAsync_v2(output, to.at.cast(), to.bytes, at).result()?;
            }
        }
        Ok(())
    }
}

/// Issues work of a rank in the order of a stream of the caller's. All ranks make their calls in one order, so those of
/// several streams go one after the other on one stream; the order of launches that a graph makes is that of the graph.
pub(super) fn in_order(
    rank: &CudaRank,
    (stream, captures): (&Arc<CudaStream>, bool),
    issue: impl FnOnce(&Arc<CudaStream>) -> Result<(), Error>,
) -> Result<(), Error> {
    if captures {
        return issue(stream);
    }
    let order = rank.shared().order.as_ref().unwrap_or(rank.stream());
    let joining = |to: &CudaStream, from: &CudaStream| {
        to.join(from).map_err(failed("ordering the calls of a rank"))
    };
    joining(order, stream)?;
    issue(order)?;
    joining(stream, order)
}

/// Makes the call of a job, in a thread of the driver.
///
/// # Safety
/// `job` points to a [`Job`] that is there, whose memory no other launch uses.
unsafe extern "C" fn run_job(job: *mut c_void) {
    // SAFETY: the caller's promise.
    let job = unsafe { &*job.cast::<Job>() };
    let Job { call, input, output, inside, failed } = job;
    // SAFETY: the staging has these bytes, and the copies before and behind this function are ordered by the stream.
    let (input, output) = unsafe {
        (
            std::slice::from_raw_parts(input.at, input.bytes),
            std::slice::from_raw_parts_mut(output.at, output.bytes),
        )
    };
    if let Some(Inside { rank, before }) = inside
        && before.gave_up()
    {
        // The other hosts must not take what these kernels left for a result. The kernels have an error of their own.
        let late = || "the kernels of its host gave up before a call between hosts".to_owned();
        let why = rank.check().map_or_else(|error| error.to_string(), |()| late());
        call.abort(&why);
        let _ = rank.abort(&why);
        return;
    }
    let done = catch_unwind(AssertUnwindSafe(|| call.run(input, output)));
    let error = match done {
        Ok(Ok(())) => return,
        Ok(Err(error)) => error,
        Err(_) => {
            crate::Error::SystemRefused { what: "a call on memory of the host panicked".into() }
        }
    };
    if let Some(Inside { rank, .. }) = inside {
        let why = match &error {
            crate::Error::Abandoned { why, .. } => why.clone(),
            error => error.to_string(),
        };
        // A forked child has no kernels.
        let _ = rank.abort(&why);
    }
    failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
}

impl PartOfRank for HostPart {
    fn device_rank(&self) -> &DeviceRank {
        &self.rank
    }

    unsafe fn issue(
        &self,
        call: &PlannedCall,
        stream: (&Arc<CudaStream>, bool),
        io: [u64; 2],
    ) -> Result<(), Error> {
        self.check(call, None)?;
        let what = || failed(format!("launching {} of rank {}", call.name(), self.rank.rank()));
        in_order(&self.rank, stream, |stream| {
            // SAFETY: the caller's promise; the plan orders its launches.
            unsafe { self.copy_and_call(stream, io) }.map_err(what())
        })
    }

    fn check(&self, call: &PlannedCall, waited: Option<Duration>) -> Result<(), Error> {
        if let Some(error) = self.job.failed.lock().unwrap_or_else(PoisonError::into_inner).take() {
            return Err(error.into());
        }
        match waited {
            // The call itself ends at the deadline.
            Some(waited)
                if waited
                    > self.deadline.saturating_mul(2).saturating_add(Duration::from_secs(5)) =>
            {
                let what =
                    format!("waited {waited:?} for {} of rank {}", call.name(), self.rank.rank());
                Err(crate::Error::Late { what }.into())
            }
            _ => Ok(()),
        }
    }

    fn give_up(&self) {
        self.job.call.abort("a plan ended before its calls did");
    }

    fn describe(&self, text: &mut fmt::DebugStruct<'_, '_>) {
        text.field("rank", &self.rank);
    }
}
