//! One rank's part of a proved algorithm, ready to be launched over NCCL.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use cudarc::driver::{CudaEvent, CudaSlice, CudaStream, DevicePtr, DevicePtrMut};
use roundelay_core::diagnostics::{Diagnostic, Finding};
use roundelay_core::dtype::{DType, ReduceOp};
use roundelay_core::messages::{Groups, TwoSided};
use roundelay_core::source::Span;
use roundelay_core::verify::Proved;
use roundelay_export::cuda::check_width;

use super::super::device::failed;
use super::super::error::Error;
use super::super::fold::Folds;
use super::comm::NcclComm;
use super::issue::{FoldMemory, issue};
use super::nccl_steps::{Bases, NcclStep, Steps};
use crate::element::Element;
use crate::lowering::plan_call::{PlannedCall, check_multiple};
use crate::options::{Check, Options};

/// The pause between two polls of a launch.
const PAUSE: Duration = Duration::from_micros(50);

/// One rank's part of a proved algorithm over NCCL's sends and receives, for one count, element type and reduce op.
///
/// The count is NCCL's: the elements of one unit of the collective. [`Self::input_len`], [`Self::output_len`] and
/// [`Self::in_place_len`] give the length of the rank's slices in elements. The trait `OnDevice` of the crate
/// `roundelay` makes such plans of algorithms.
///
/// All ranks of the communicator make the same plan and launch it; ranks with several plans launch them in one order.
/// Launches of one plan are ordered after one another, whatever streams they are on.
pub struct NcclPlan {
    pub(super) comm: NcclComm,
    pub(super) call: PlannedCall,
    steps: Steps,
    folds: Folds,
    scratch: CudaSlice<u8>,
    last: Mutex<Option<Last>>,
}

/// The last launch.
struct Last {
    stream: Arc<CudaStream>,
    done: CudaEvent,
}

impl fmt::Debug for NcclPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NcclPlan")
            .field("algorithm", &self.call.schedule.algorithm)
            .field("comm", &self.comm)
            .field("call", &self.call.name())
            .field("groups", &self.groups())
            .finish_non_exhaustive()
    }
}

/// A rank's memory on its device, in the order of a stream.
struct OnDevice<'a> {
    folds: &'a Folds,
    stream: &'a CudaStream,
}

impl FoldMemory for OnDevice<'_> {
    fn fold(&mut self, from: &[u64], to: u64, len: u64, divisor: i64) -> Result<(), Error> {
        // SAFETY: the addresses are within the buffers of the call, which stay lent until the stream is done.
        unsafe { self.folds.run(self.stream, from, to, len, divisor) }
    }
}

impl NcclPlan {
    /// The part of the communicator's rank in an algorithm that was proved for the communicator's number of ranks, for
    /// `count` elements a unit. The kernel that folds is compiled now.
    ///
    /// # Errors
    /// E0401 where the proof is for another number of ranks; E0407 for a buffer with more bytes than addresses; E0415
    /// without NVRTC; E0419 where the device's memory does not suffice; E0423 where the elements are narrower than f32 and
    /// the algorithm has sums that are not; E0425 for a fault of the compiler; E0426 where the algorithm cannot be brought
    /// to sends and receives; E0431 where the elements do not have the op; E0433 where the environment variable
    /// `ROUNDELAY_CHECK` asks for a check, and any rank has wrong data.
    pub fn new(
        comm: &NcclComm,
        proved: &Proved,
        count: u64,
        dtype: DType,
        op: ReduceOp,
    ) -> Result<Self, Error> {
        let plan = Self::unchecked(comm, proved, count, dtype, op)?;
        if Options::default().checks()? == Check::First {
            plan.check_first()?;
        }
        Ok(plan)
    }

    /// Makes a plan without a check.
    pub(super) fn unchecked(
        comm: &NcclComm,
        proved: &Proved,
        count: u64,
        dtype: DType,
        op: ReduceOp,
    ) -> Result<Self, Error> {
        let nranks = proved.schedule().nranks;
        if nranks != comm.nranks() {
            let (what, given) = ("ranks of the communicator", comm.nranks() as usize);
            return Err(crate::Error::WrongBufferCount { what, given, nranks }.into());
        }
        op.check(dtype).map_err(crate::Error::NoSuchOp)?;
        check_multiple(proved.schedule(), count)?;
        let form = TwoSided::new(proved).map_err(unfit)?;
        check_width(form.schedule(), dtype).map_err(|wide| Error::NoKernel(vec![*wide]))?;
        let groups = Groups::new(&form).map_err(unfit)?;
        let steps = Steps::new(&form, &groups, comm.rank(), count, (dtype, op))?;
        let device = &comm.shared().device;
        let what = format!("scratch of rank {}", comm.rank());
        let plan = Self {
            call: PlannedCall::new(form.schedule_with_proof(), count, dtype, op),
            folds: Folds::new(device, (dtype, op), form.schedule())?,
            scratch: device.zeros(&what, steps.scratch as usize)?,
            steps,
            comm: comm.clone(),
            last: Mutex::new(None),
        };
        // This waits for the default stream, not for the whole device: another rank of this process may be on the
        // device, and wait for this one.
        let zeroed = device.context.default_stream().synchronize();
        zeroed.map_err(failed("preparing the plan"))?;
        Ok(plan)
    }

    /// The plan's count: elements of one unit of the collective, as NCCL counts.
    pub fn count(&self) -> u64 {
        self.call.count
    }

    /// The length of the rank's input in elements; 0 where it has no input.
    pub fn input_len(&self) -> usize {
        self.call.input_len(self.comm.rank())
    }

    /// The length of the rank's output in elements; 0 where it has no output.
    pub fn output_len(&self) -> usize {
        self.call.output_len(self.comm.rank())
    }

    /// The length in elements of the one buffer that the rank has in place: the length of the larger of its two
    /// buffers.
    pub fn in_place_len(&self) -> usize {
        self.call.in_place_len(self.comm.rank())
    }

    /// The number of groups of sends and receives that a launch issues.
    pub fn groups(&self) -> usize {
        self.steps.list.iter().filter(|step| matches!(step, NcclStep::Group { .. })).count()
    }

    /// Issues the rank's part on its slices, and returns when NCCL has taken the whole part, for which the other ranks must
    /// issue their parts: the results are complete when `stream` has passed the launch. No other rank uses `stream`.
    ///
    /// # Errors
    /// E0402 for slices of wrong length; E0403 for another element type than the plan's; E0405 where other ranks do not
    /// come before the deadline; E0420 for a stream or slice on another device; E0421 where NCCL or the driver refuses.
    pub fn launch<T: Element, I: DevicePtr<T>, O: DevicePtrMut<T>>(
        &self,
        stream: &Arc<CudaStream>,
        input: &I,
        output: &mut O,
    ) -> Result<(), Error> {
        self.call.check_dtype(T::DTYPE)?;
        self.launch_apart(stream, input, output, 1)
    }

    /// Issues the rank's part in place, on one slice with the length of [`Self::in_place_len`], as [`Self::launch`]
    /// does.
    ///
    /// # Errors
    /// E0408 where there is no in-place form; otherwise the errors of [`Self::launch`].
    pub fn launch_in_place<T: Element, B: DevicePtrMut<T>>(
        &self,
        stream: &Arc<CudaStream>,
        buffer: &mut B,
    ) -> Result<(), Error> {
        self.call.check_dtype(T::DTYPE)?;
        self.launch_aliased(stream, buffer, 1)
    }

    /// Issues the rank's part on bytes. Lengths are those of [`Self::launch`] times the size of an element.
    ///
    /// # Errors
    /// E0404 for a slice that is not aligned for the element type; otherwise the errors of [`Self::launch`].
    pub fn launch_bytes<I: DevicePtr<u8>, O: DevicePtrMut<u8>>(
        &self,
        stream: &Arc<CudaStream>,
        input: &I,
        output: &mut O,
    ) -> Result<(), Error> {
        self.launch_apart(stream, input, output, self.call.dtype.size())
    }

    /// Issues the rank's part in place on bytes. The length is that of [`Self::launch_in_place`] times the size of an
    /// element.
    ///
    /// # Errors
    /// E0404 for a slice that is not aligned for the element type; otherwise the errors of [`Self::launch_in_place`].
    pub fn launch_bytes_in_place<B: DevicePtrMut<u8>>(
        &self,
        stream: &Arc<CudaStream>,
        buffer: &mut B,
    ) -> Result<(), Error> {
        self.launch_aliased(stream, buffer, self.call.dtype.size())
    }

    /// Waits until the last launch is over.
    ///
    /// # Errors
    /// E0405 where the launch is not over at the deadline, after which the communicator is given up; E0421 where NCCL
    /// or the device reports an error.
    pub fn wait(&self) -> Result<(), Error> {
        let last = self.last();
        let Some(Last { done, .. }) = &*last else { return Ok(()) };
        let what = || format!("{} of rank {}", self.call.name(), self.comm.rank());
        let deadline = self.comm.shared().deadline;
        let begun = Instant::now();
        while !done.try_is_complete().map_err(failed(what()))? {
            let mut link = self.comm.link();
            link.check(&what())?;
            if begun.elapsed() > deadline {
                link.give_up();
                let what = format!("waited {deadline:?} for {}", what());
                return Err(crate::Error::Late { what }.into());
            }
            drop(link);
            std::thread::sleep(PAUSE);
        }
        Ok(())
    }

    fn last(&self) -> MutexGuard<'_, Option<Last>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn launch_apart<T, I: DevicePtr<T>, O: DevicePtrMut<T>>(
        &self,
        stream: &Arc<CudaStream>,
        input: &I,
        output: &mut O,
        per_element: usize,
    ) -> Result<(), Error> {
        self.check_device("stream", stream)?;
        self.check_device("input", input.stream())?;
        self.check_device("output", output.stream())?;
        let (rank, call) = (self.comm.rank(), &self.call);
        let lens = (input.len(), output.len());
        let ((from, _read), (to, _written)) =
            (input.device_ptr(stream), output.device_ptr_mut(stream));
        call.check_buffer("input", rank, (lens.0, from), per_element, self.input_len())?;
        call.check_buffer("output", rank, (lens.1, to), per_element, self.output_len())?;
        self.start(stream, [from, to])
    }

    fn launch_aliased<T, B: DevicePtrMut<T>>(
        &self,
        stream: &Arc<CudaStream>,
        buffer: &mut B,
        per_element: usize,
    ) -> Result<(), Error> {
        let (rank, call) = (self.comm.rank(), &self.call);
        call.check_in_place()?;
        self.check_device("stream", stream)?;
        self.check_device("buffer", buffer.stream())?;
        let len = buffer.len();
        let (whole, _used) = buffer.device_ptr_mut(stream);
        call.check_buffer("buffer", rank, (len, whole), per_element, self.in_place_len())?;
        let (input, output) = call.in_place(rank);
        self.start(stream, [whole + input as u64, whole + output as u64])
    }

    fn check_device(&self, what: &'static str, stream: &CudaStream) -> Result<(), Error> {
        let (given, expected) = (stream.context(), self.comm.context());
        if given == expected {
            return Ok(());
        }
        let rank = self.comm.rank();
        Err(Error::WrongDevice { what, rank, given: given.ordinal(), expected: expected.ordinal() })
    }

    /// Issues all steps on checked buffers.
    fn start(&self, stream: &Arc<CudaStream>, [input, output]: [u64; 2]) -> Result<(), Error> {
        let what = || failed(format!("launching {}", self.call.name()));
        let mut last = self.last();
        // The scratch belongs to one launch at a time.
        if let Some(before) = last.as_ref().filter(|before| before.stream != *stream) {
            stream.wait(&before.done).map_err(what())?;
        }
        stream.context().bind_to_thread().map_err(what())?;
        let scratch = self.scratch.device_ptr(self.scratch.stream()).0;
        let bases = Bases { input, output, scratch };
        let mut memory = OnDevice { folds: &self.folds, stream };
        let mut link = self.comm.link();
        // SAFETY: the buffers have the lengths that the steps were made for, and their events or the caller keep them
        // until the stream is done.
        let issued =
            unsafe { issue(&self.steps, &mut link, bases, stream.cu_stream().cast(), &mut memory) };
        drop(link);
        // Steps that were issued before an error use the scratch, too.
        let done = stream.context().new_event(None).map_err(what())?;
        done.record(stream).map_err(what())?;
        *last = Some(Last { stream: stream.clone(), done });
        issued
    }
}

/// Returns the error of an algorithm from its findings, without its source.
fn unfit(findings: Vec<Finding>) -> Error {
    let diagnostic = |finding: Finding| {
        let plain = Diagnostic::new(finding.code, Span::default(), finding.title);
        Diagnostic { notes: finding.notes, help: finding.help, ..plain }
    };
    Error::NoKernel(findings.into_iter().map(diagnostic).collect())
}

impl Drop for NcclPlan {
    /// Waits, because launches under way use the plan's scratch. Past the deadline, the communicator is given up, which
    /// ends them.
    fn drop(&mut self) {
        let waited = self.wait();
        if let (Err(_), Some(Last { done, .. })) = (waited, &*self.last()) {
            self.comm.link().give_up();
            // A lost context runs nothing any more.
            let _ = done.synchronize();
        }
    }
}
