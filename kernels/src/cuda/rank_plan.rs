//! One rank's part of a proved algorithm, where each rank has a GPU: the checks of its buffers, and the order of its
//! launches. The two kinds of parts differ in what a launch issues: a kernel, or sends and receives of NCCL.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use cudarc::driver::sys::CUstreamCaptureStatus;
use cudarc::driver::{CudaEvent, CudaSlice, CudaStream, DevicePtr, DevicePtrMut};
use roundelay_core::ids::RankId;

use super::device::failed;
use super::device_rank::DeviceRank;
use super::error::Error;
use crate::element::Element;
use crate::lowering::first_call::{WORD, WORDS, exchange};
use crate::lowering::plan_call::PlannedCall;

/// The pause between two polls of a launch.
const PAUSE: Duration = Duration::from_micros(50);
/// The byte that fills an output before a launch of a check.
const UNTOUCHED: u8 = 0xA5;

/// The kind of a rank's part: the work that a launch issues, and the faults that end it.
pub trait PartOfRank {
    /// Returns the rank, with the device of its buffers.
    #[doc(hidden)]
    fn device_rank(&self) -> &DeviceRank;

    /// Issues the rank's part on checked buffers, in the order of `stream`, with which comes whether it captures them.
    ///
    /// # Safety
    /// The buffers have the lengths of the call, and stay lent until `stream` is done.
    #[doc(hidden)]
    unsafe fn issue(
        &self,
        call: &PlannedCall,
        stream: (&Arc<CudaStream>, bool),
        io: [u64; 2],
    ) -> Result<(), Error>;

    /// Returns the error of a launch that cannot come to its end, or did not; `waited` is the time of the wait so far,
    /// `None` for a launch that is over.
    #[doc(hidden)]
    fn check(&self, call: &PlannedCall, waited: Option<Duration>) -> Result<(), Error>;

    /// Ends the launches under way, and those of the other ranks.
    #[doc(hidden)]
    fn give_up(&self);

    /// Adds the fields of the part to the text of a plan for debugging.
    #[doc(hidden)]
    fn describe(&self, text: &mut fmt::DebugStruct<'_, '_>);
}

/// One rank's part of a proved algorithm, for one count, element type and reduce op: an
/// [`NcclPlan`](super::NcclPlan) or a [`ProcessPlan`](super::ProcessPlan).
///
/// The count is NCCL's: the elements of one unit of the collective. [`Self::input_len`], [`Self::output_len`] and
/// [`Self::in_place_len`] give the length of the rank's slices in elements. The trait `OnDevice` of the crate
/// `roundelay` makes such plans of algorithms.
///
/// All ranks make the same plan and launch it; ranks with several plans launch them in one order. Launches of one plan
/// are ordered after one another, whatever streams they are on.
pub struct RankPlan<P: PartOfRank> {
    pub(super) part: P,
    pub(super) call: PlannedCall,
    /// The end of the last launch.
    done: CudaEvent,
    last: Mutex<Option<Last>>,
}

/// The stream of the last launch: one of a caller in another language may be gone.
enum Last {
    Kept(Arc<CudaStream>),
    Borrowed,
}

impl<P: PartOfRank> fmt::Debug for RankPlan<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = f.debug_struct("RankPlan");
        text.field("algorithm", &self.call.schedule.algorithm).field("call", &self.call.name());
        self.part.describe(&mut text);
        text.finish_non_exhaustive()
    }
}

impl<P: PartOfRank> RankPlan<P> {
    pub(super) fn of(part: P, call: PlannedCall) -> Result<Self, Error> {
        let done =
            part.device_rank().context().new_event(None).map_err(failed("making an event"))?;
        Ok(Self { part, call, done, last: Mutex::new(None) })
    }

    fn rank(&self) -> RankId {
        self.part.device_rank().rank()
    }

    /// The plan's count: elements of one unit of the collective, as NCCL counts.
    pub fn count(&self) -> u64 {
        self.call.count
    }

    /// The length of the rank's input in elements; 0 where it has no input.
    pub fn input_len(&self) -> usize {
        self.call.input_len(self.rank())
    }

    /// The length of the rank's output in elements; 0 where it has no output.
    pub fn output_len(&self) -> usize {
        self.call.output_len(self.rank())
    }

    /// The length in elements of the one buffer that the rank has in place: the length of the larger of its two
    /// buffers.
    pub fn in_place_len(&self) -> usize {
        self.call.in_place_len(self.rank())
    }

    /// Launches the rank's part on its slices: the results are complete when `stream` has passed the launch. Over NCCL,
    /// the method returns when NCCL has taken the whole part, for which the other ranks must launch their parts; a kernel
    /// is launched at once. No other rank uses `stream`.
    ///
    /// # Errors
    /// E0402 for slices of wrong length; E0403 for another element type than the plan's; E0405 where other ranks do not
    /// come before the deadline; E0420 for a stream or slice on another device; E0421 where NCCL or the driver refuses;
    /// E0428 where the process of another rank ended.
    pub fn launch<T: Element, I: DevicePtr<T>, O: DevicePtrMut<T>>(
        &self,
        stream: &Arc<CudaStream>,
        input: &I,
        output: &mut O,
    ) -> Result<(), Error> {
        self.call.check_dtype(T::DTYPE)?;
        self.launch_apart(stream, input, output, 1)
    }

    /// Launches the rank's part in place, on one slice with the length of [`Self::in_place_len`], as [`Self::launch`]
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

    /// Launches the rank's part on bytes. Lengths are those of [`Self::launch`] times the size of an element.
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

    /// Launches the rank's part in place on bytes. The length is that of [`Self::launch_in_place`] times the size of an
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
    /// E0405 where the launch is not over at the deadline; E0421 where NCCL or the device reports an error; E0428 where
    /// the process of another rank ended. After an error of NCCL or of a process, the ranks join anew.
    pub fn wait(&self) -> Result<(), Error> {
        let last = self.last();
        if last.is_none() {
            return Ok(());
        }
        let what = || format!("{} of rank {}", self.call.name(), self.rank());
        let begun = Instant::now();
        while !self.done.try_is_complete().map_err(failed(what()))? {
            self.part.check(&self.call, Some(begun.elapsed()))?;
            std::thread::sleep(PAUSE);
        }
        self.part.check(&self.call, None)
    }

    /// Launches the rank's part on buffers at these addresses, in the order of a stream of the driver: for callers in C
    /// and Python. Input and output may be one buffer as the collective's form in place has it.
    ///
    /// # Errors
    /// E0404 for addresses that are not aligned for the element type; otherwise the errors of [`Self::launch`].
    ///
    /// # Safety
    /// The stream is one of the rank's device. The addresses are those of buffers on that device with the lengths of
    /// [`Self::input_len`] and [`Self::output_len`], and stay so until the stream is done.
    pub unsafe fn launch_at(
        &self,
        stream: cudarc::driver::sys::CUstream,
        [input, output]: [u64; 2],
    ) -> Result<(), Error> {
        let (rank, call, size) = (self.rank(), &self.call, self.call.dtype.size());
        for (what, at, len) in
            [("input", input, self.input_len()), ("output", output, self.output_len())]
        {
            call.check_buffer(what, rank, (len * size, at), size, len)?;
        }
        // SAFETY: the caller's promise; the value goes before this function returns.
        let stream = unsafe { self.part.device_rank().context().wrap_borrowed_stream(stream) };
        self.start(&stream, Last::Borrowed, [input, output])
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
        let (rank, call) = (self.rank(), &self.call);
        let lens = (input.len(), output.len());
        let ((from, _read), (to, _written)) =
            (input.device_ptr(stream), output.device_ptr_mut(stream));
        call.check_buffer("input", rank, (lens.0, from), per_element, self.input_len())?;
        call.check_buffer("output", rank, (lens.1, to), per_element, self.output_len())?;
        self.start(stream, Last::Kept(stream.clone()), [from, to])
    }

    fn launch_aliased<T, B: DevicePtrMut<T>>(
        &self,
        stream: &Arc<CudaStream>,
        buffer: &mut B,
        per_element: usize,
    ) -> Result<(), Error> {
        let (rank, call) = (self.rank(), &self.call);
        call.check_in_place()?;
        self.check_device("stream", stream)?;
        self.check_device("buffer", buffer.stream())?;
        let len = buffer.len();
        let (whole, _used) = buffer.device_ptr_mut(stream);
        call.check_buffer("buffer", rank, (len, whole), per_element, self.in_place_len())?;
        let (input, output) = call.in_place(rank);
        let io = [whole + input as u64, whole + output as u64];
        self.start(stream, Last::Kept(stream.clone()), io)
    }

    fn check_device(&self, what: &'static str, stream: &CudaStream) -> Result<(), Error> {
        let (given, expected) = (stream.context(), self.part.device_rank().context());
        if given == expected {
            return Ok(());
        }
        let rank = self.rank();
        Err(Error::WrongDevice { what, rank, given: given.ordinal(), expected: expected.ordinal() })
    }

    /// Issues the part on checked buffers, after the last launch.
    fn start(&self, stream: &Arc<CudaStream>, kept: Last, io: [u64; 2]) -> Result<(), Error> {
        let what = || failed(format!("launching {}", self.call.name()));
        let mut last = self.last();
        stream.context().bind_to_thread().map_err(what())?;
        // The scratch belongs to one launch at a time. Launches that graphs replay are ordered by the graphs' owner.
        let status = stream.capture_status().map_err(what())?;
        let captured = status != CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE;
        let ordered = match &*last {
            Some(Last::Kept(before)) => before == stream,
            Some(Last::Borrowed) => false,
            None => true,
        };
        if !captured && !ordered {
            stream.wait(&self.done).map_err(what())?;
        }
        // SAFETY: the buffers were checked, and their events or the caller keep them until the stream is done.
        let issued = unsafe { self.part.issue(&self.call, (stream, captured), io) };
        if captured {
            return issued;
        }
        // Work that was issued before an error uses the scratch, too.
        self.done.record(stream).map_err(what())?;
        *last = Some(kept);
        issued
    }

    /// Launches the plan on known data in buffers of its own, and compares the results of all ranks; `words` makes a plan
    /// over the same ranks that exchanges words.
    ///
    /// # Errors
    /// E0433 on all ranks for wrong data on any rank; E0419 where the device has no room; the errors of a launch.
    pub(super) fn check_first(
        &self,
        words: impl FnOnce(&roundelay_core::verify::Proved) -> Result<Self, Error>,
    ) -> Result<(), Error> {
        let nranks = self.call.schedule.nranks;
        let known = self.call.known(nranks, self.rank());
        let size = self.call.dtype.size();
        let [mut input, mut output] =
            [vec![0; self.input_len() * size], vec![0; self.output_len() * size]];
        known.fill(&mut input, 0);
        self.on_data(&input, &mut output)?;
        let all = words(&exchange(nranks)?)?;
        debug_assert_eq!((all.call.count, all.call.dtype), (WORDS, WORD));
        let exchange = |mine: &[u64], told: &mut [u64]| {
            let (mine, told) = (crate::element::bytes_of(mine), crate::element::bytes_of_mut(told));
            all.on_data(mine, told)
        };
        match self.call.agreed(&known, known.wrong(&output, 0), exchange)? {
            Some(wrong) => Err(crate::Error::WrongData(Box::new(wrong)).into()),
            None => Ok(()),
        }
    }

    /// Launches the plan on data of the host.
    fn on_data(&self, input: &[u8], output: &mut [u8]) -> Result<(), Error> {
        let rank = self.part.device_rank();
        let (device, stream) = (&rank.device, rank.stream());
        let copying = || failed("copying data of a check");
        let mut from: CudaSlice<u8> = device.zeros("input of a check", input.len())?;
        let mut to: CudaSlice<u8> = device.zeros("output of a check", output.len())?;
        output.fill(UNTOUCHED);
        stream.memcpy_htod(input, &mut from.slice_mut(..input.len())).map_err(copying())?;
        stream.memcpy_htod(&*output, &mut to.slice_mut(..output.len())).map_err(copying())?;
        self.launch_bytes(stream, &from.slice(..input.len()), &mut to.slice_mut(..output.len()))?;
        self.wait()?;
        if !output.is_empty() {
            stream.memcpy_dtoh(&to.slice(..output.len()), output).map_err(copying())?;
        }
        stream.synchronize().map_err(copying())
    }
}

impl<P: PartOfRank> Drop for RankPlan<P> {
    /// Waits, because launches under way use the plan's memory. Past the deadline, the ranks are given up, which ends the
    /// launches.
    fn drop(&mut self) {
        let waited = self.wait();
        if waited.is_err() {
            self.part.give_up();
            // A lost context runs nothing any more.
            let _ = self.done.synchronize();
        }
    }
}
