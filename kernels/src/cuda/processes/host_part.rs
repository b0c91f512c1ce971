//! A call of ranks on several hosts: a launch copies the rank's input into memory of its host, where the ranks make the
//! call, and copies the output back.

use std::any::Any;
use std::ffi::c_void;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use cudarc::driver::{CudaStream, DriverError, result, sys};

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
    /// The stream on which the calls of all plans of the rank follow each other.
    order: Arc<CudaStream>,
    deadline: Duration,
}

/// The work of a launch on the host.
struct Job {
    call: Box<dyn HostCall>,
    input: Staging,
    output: Staging,
    /// The error of a call since the last check.
    failed: Mutex<Option<crate::Error>>,
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
    pub(super) fn new(
        rank: &CudaRank,
        planned: &PlannedCall,
        options: CudaOptions,
        call: Box<dyn HostCall>,
    ) -> Result<Self, Error> {
        let [input, output] = planned.bytes(rank.rank()).map(|len| Staging::new(&rank.device, len));
        let job = Job { call, input: input?, output: output?, failed: Mutex::new(None) };
        let order = rank.shared().order.clone().unwrap_or_else(|| rank.stream().clone());
        let deadline = options.common.deadline;
        Ok(Self { rank: rank.clone(), job: Box::new(job), order, deadline })
    }
}

/// Makes the call of a job, in a thread of the driver.
///
/// # Safety
/// `job` points to a [`Job`] that is there, whose memory no other launch uses.
unsafe extern "C" fn run_job(job: *mut c_void) {
    // SAFETY: the caller's promise.
    let job = unsafe { &*job.cast::<Job>() };
    let Job { call, input, output, failed } = job;
    // SAFETY: the staging has these bytes, and the copies before and behind this function are ordered by the stream.
    let (input, output) = unsafe {
        (
            std::slice::from_raw_parts(input.at, input.bytes),
            std::slice::from_raw_parts_mut(output.at, output.bytes),
        )
    };
    let done = catch_unwind(AssertUnwindSafe(|| call.run(input, output)));
    let error = match done {
        Ok(Ok(())) => return,
        Ok(Err(error)) => error,
        Err(_) => {
            crate::Error::SystemRefused { what: "a call on memory of the host panicked".into() }
        }
    };
    failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
}

impl PartOfRank for HostPart {
    fn device_rank(&self) -> &DeviceRank {
        &self.rank
    }

    unsafe fn issue(
        &self,
        call: &PlannedCall,
        (stream, captures): (&Arc<CudaStream>, bool),
        [input, output]: [u64; 2],
    ) -> Result<(), Error> {
        self.check(call, None)?;
        let rank = self.rank.rank();
        let what = || failed(format!("launching {} of rank {rank}", call.name()));
        // All ranks make their calls in one order, so those of several streams go one after the other on one stream. The
        // order of launches that a graph makes is that of the graph.
        let order = if captures { stream } else { &self.order };
        if !captures {
            order.join(stream).map_err(what())?;
        }
        let (job, at) = (&*self.job, order.cu_stream());
        let Job { input: from, output: to, .. } = job;
        let issue = || -> Result<(), DriverError> {
            // SAFETY: the buffers have the lengths of the call and are lent until the stream is done; the staging and the
            // job live as long as the plan, which waits for its launches; launches that use them are ordered.
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
        };
        issue().map_err(what())?;
        if !captures {
            stream.join(order).map_err(what())?;
        }
        Ok(())
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
