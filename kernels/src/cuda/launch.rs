//! Launches of a plan on the callers' slices, and their errors.

use std::sync::{Arc, MutexGuard, PoisonError};

use cudarc::driver::sys::CUstreamCaptureStatus;
use cudarc::driver::{CudaStream, DevicePtr, DevicePtrMut, DeviceSlice, SyncOnDrop};
use roundelay_core::dtype::DType;
use roundelay_core::ids::RankId;

use super::device::failed;
use super::device_plan::AddressTable;
use super::error::Error;
use super::plan::CudaPlan;
use super::state::{Caller, LastLaunch};
use crate::element::Element;
use crate::grid::{self, Stage};

impl CudaPlan {
    /// Launches the collective on a slice for each rank and returns at once: the results are complete when `stream` has
    /// passed the launch. Slices have the lengths of [`Self::input_len`] and [`Self::output_len`], and are empty where
    /// a rank has no buffer. [`Self::wait`] and [`Self::check`] report the error of a launch; after an error the
    /// outputs are undefined.
    ///
    /// The launch uses slices as cudarc does: their events keep other streams in order, where the context tracks them.
    /// A graph can capture the launch if the context does not track them; it can capture no call that allocates or
    /// waits.
    ///
    /// # Errors
    /// Before the launch E0401 (not one slice for each rank), E0402 (wrong length), E0403 (another element type),
    /// E0420 (a slice on another device than its rank); E0421 where the driver refuses the launch.
    pub fn launch<T: Element, I: DevicePtr<T>, O: DevicePtrMut<T>>(
        &self,
        stream: &Arc<CudaStream>,
        inputs: &[I],
        outputs: &mut [O],
    ) -> Result<(), Error> {
        self.check_dtype(T::DTYPE)?;
        self.launch_apart(stream, inputs, outputs, 1)
    }

    /// Launches the collective in place, on one slice for each rank with the length of [`Self::in_place_len`], and
    /// returns at once as [`Self::launch`] does.
    ///
    /// # Errors
    /// E0408 where there is no in-place form; otherwise the errors of [`Self::launch`].
    pub fn launch_in_place<T: Element, B: DevicePtrMut<T>>(
        &self,
        stream: &Arc<CudaStream>,
        buffers: &mut [B],
    ) -> Result<(), Error> {
        self.check_dtype(T::DTYPE)?;
        self.launch_aliased(stream, buffers, 1)
    }

    /// Launches the collective on bytes. Lengths are those of [`Self::launch`] times the size of an element.
    ///
    /// # Errors
    /// E0404 for a slice that is not aligned for the element type; otherwise the errors of [`Self::launch`].
    pub fn launch_bytes<I: DevicePtr<u8>, O: DevicePtrMut<u8>>(
        &self,
        stream: &Arc<CudaStream>,
        inputs: &[I],
        outputs: &mut [O],
    ) -> Result<(), Error> {
        self.launch_apart(stream, inputs, outputs, self.call.dtype.size())
    }

    /// Launches the collective in place on bytes. Lengths are those of [`Self::launch_in_place`] times the size of an
    /// element.
    ///
    /// # Errors
    /// E0404 for a slice that is not aligned for the element type; otherwise the errors of [`Self::launch_in_place`].
    pub fn launch_bytes_in_place<B: DevicePtrMut<u8>>(
        &self,
        stream: &Arc<CudaStream>,
        buffers: &mut [B],
    ) -> Result<(), Error> {
        self.launch_aliased(stream, buffers, self.call.dtype.size())
    }

    /// Waits until the last launch is over, and reports the error of any launch so far.
    ///
    /// # Errors
    /// E0405 where a wait of a kernel came to its deadline; E0421 where the device ended a kernel.
    pub fn wait(&self) -> Result<(), Error> {
        let mut last = self.last();
        if let Some(stream) = &last.stream {
            stream.synchronize().map_err(failed(self.kernel.name.clone()))?;
        }
        self.verdict(&mut last)
    }

    /// Reports the error of the launches that are over, without waiting for others.
    ///
    /// # Errors
    /// E0405 where a wait of a kernel came to its deadline.
    pub fn check(&self) -> Result<(), Error> {
        self.verdict(&mut self.last())
    }

    fn last(&self) -> MutexGuard<'_, LastLaunch> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn check_dtype(&self, given: DType) -> Result<(), Error> {
        Ok(self.call.check_dtype(given)?)
    }

    fn launch_apart<T, I: DevicePtr<T>, O: DevicePtrMut<T>>(
        &self,
        stream: &Arc<CudaStream>,
        inputs: &[I],
        outputs: &mut [O],
        per_element: usize,
    ) -> Result<(), Error> {
        let call = &self.call;
        call.check_count("inputs", inputs.len())?;
        call.check_count("outputs", outputs.len())?;
        for ((rank, input), output) in call.ranks().zip(inputs).zip(&*outputs) {
            self.check_device("input", rank, input)?;
            self.check_device("output", rank, output)?;
        }
        let mut last = self.last();
        let caller = self.caller(stream)?;
        let mut io = Vec::with_capacity(inputs.len());
        let mut in_use: Vec<SyncOnDrop> = Vec::new();
        for ((rank, input), output) in call.ranks().zip(inputs).zip(outputs) {
            let stream = self.stream_order.stream(self.world.placement.device(rank), caller);
            let lens = (input.len(), output.len());
            let ((from, read), (to, written)) =
                (input.device_ptr(stream), output.device_ptr_mut(stream));
            let (most_in, most_out) = (call.input_len(rank), call.output_len(rank));
            call.check_buffer("input", rank, (lens.0, from), per_element, most_in)?;
            call.check_buffer("output", rank, (lens.1, to), per_element, most_out)?;
            in_use.extend([read, written]);
            io.push([from, to]);
        }
        self.start(&mut last, caller, io)
    }

    fn launch_aliased<T, B: DevicePtrMut<T>>(
        &self,
        stream: &Arc<CudaStream>,
        buffers: &mut [B],
        per_element: usize,
    ) -> Result<(), Error> {
        let call = &self.call;
        call.check_in_place()?;
        call.check_count("buffers", buffers.len())?;
        for (rank, buffer) in call.ranks().zip(&*buffers) {
            self.check_device("buffer", rank, buffer)?;
        }
        let mut last = self.last();
        let caller = self.caller(stream)?;
        let mut io = Vec::with_capacity(buffers.len());
        let mut in_use: Vec<SyncOnDrop> = Vec::new();
        for (rank, buffer) in call.ranks().zip(buffers) {
            let stream = self.stream_order.stream(self.world.placement.device(rank), caller);
            let len = buffer.len();
            let (whole, used) = buffer.device_ptr_mut(stream);
            let most = call.in_place_len(rank);
            call.check_buffer("buffer", rank, (len, whole), per_element, most)?;
            in_use.push(used);
            let (input, output) = call.in_place(rank);
            io.push([whole + input as u64, whole + output as u64]);
        }
        self.start(&mut last, caller, io)
    }

    /// Returns the stream with its device, which must be one of the world's.
    fn caller<'a>(&self, stream: &'a Arc<CudaStream>) -> Result<Caller<'a>, Error> {
        let given = stream.context().ordinal();
        let devices = &self.world.devices;
        let at = devices.iter().position(|device| device.context == *stream.context());
        let wrong = || Error::WrongDevice {
            what: "stream",
            rank: RankId(0),
            given,
            expected: devices[0].ordinal,
        };
        Ok((at.ok_or_else(wrong)?, stream))
    }

    pub(super) fn check_device<T>(
        &self,
        what: &'static str,
        rank: RankId,
        slice: &impl DeviceSlice<T>,
    ) -> Result<(), Error> {
        let device = &self.world.devices[self.world.placement.device(rank)];
        let context = slice.stream().context();
        if *context == device.context {
            return Ok(());
        }
        let (given, expected) = (context.ordinal(), device.ordinal);
        Err(Error::WrongDevice { what, rank, given, expected })
    }

    /// Launches on checked buffers, input and output of each rank.
    fn start(
        &self,
        last: &mut LastLaunch,
        caller: Caller<'_>,
        io: Vec<[u64; 2]>,
    ) -> Result<(), Error> {
        // The counters of a launch that gave up would mislead the next launch, so its error is reported and they are
        // cleared.
        self.verdict(last)?;
        let (_, stream) = caller;
        let status =
            stream.capture_status().map_err(failed("asking a stream whether it is captured"))?;
        let captured = status != CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE;
        if let Some(before) = last.stream.as_ref().filter(|before| !captured && *before != stream) {
            stream.join(before).map_err(failed("ordering launches"))?;
        }
        let (table, bind) = if captured {
            (AddressTable::Captured, true)
        } else {
            (AddressTable::Direct, last.bound.as_ref() != Some(&io))
        };
        if !captured {
            // `bound` stays empty until all devices have the new buffers.
            last.bound = None;
        }
        if bind {
            self.stream_order.fork(caller)?;
            for (at, device_plan) in self.device_plans.iter().enumerate() {
                device_plan.bind(self.stream_order.stream(at, caller), table, &io)?;
            }
        }
        self.launch_all(caller, table)?;
        if !captured {
            *last = LastLaunch { stream: Some(stream.clone()), bound: Some(io) };
        }
        Ok(())
    }

    /// Launches on the bound buffers: on the device of the caller's stream, and on all other devices beside it.
    pub(super) fn launch_all(&self, caller: Caller<'_>, table: AddressTable) -> Result<(), Error> {
        self.stream_order.fork(caller)?;
        for (at, device_plan) in self.device_plans.iter().enumerate() {
            let device = self.world.devices[at].ordinal;
            let what = || format!("launching {} on device {device}", self.kernel.name);
            let (stream, grid) =
                (self.stream_order.stream(at, caller), device_plan.grid - self.absent_ctas(at));
            // SAFETY: the buffers were checked, and their events, a graph or the caller keep them until the stream is
            // done; launches are ordered after one another, and launches of graphs are ordered by the graph's owner.
            unsafe { device_plan.launch(stream, (table, Stage::default()), grid, what) }?;
        }
        self.stream_order.join(caller)
    }

    /// Waits for all devices, until all that was written for the plan is visible.
    pub(super) fn settle(&self) -> Result<(), Error> {
        self.world.devices.iter().try_for_each(|device| device.finish(&self.kernel.name))
    }

    /// Returns the number of CTAs of the rank that never runs.
    fn absent_ctas(&self, device: usize) -> u32 {
        let absent = RankId(self.world.nranks() - 1);
        if !self.absent || self.world.placement.device(absent) != device {
            return 0;
        }
        let streams = self.facts.groups.iter().filter(|group| group.rank == absent).count();
        streams as u32 * self.parts
    }

    /// Returns the error of a launch whose wait gave up, and resets the plan to its state before the first launch.
    fn verdict(&self, last: &mut LastLaunch) -> Result<(), Error> {
        if !self.control.gave_up() {
            return Ok(());
        }
        // All other waits of that launch and of later launches end at once.
        self.settle()?;
        let (schedule, groups) = (&self.kernel.schedule, &self.facts.groups);
        let stuck =
            grid::stuck(schedule, groups, &self.control.read(), self.options.common.deadline);
        for (device, device_plan) in self.world.devices.iter().zip(&self.device_plans) {
            device_plan.clear(device)?;
            device.finish("clearing counters")?;
        }
        self.control.clear();
        *last = LastLaunch::default();
        Err(match stuck {
            Some(stuck) => crate::Error::Timeout(Box::new(stuck)).into(),
            None => Error::KernelFailed {
                what: self.kernel.name.clone(),
                why: "its control block holds no wait of its schedule".into(),
            },
        })
    }
}
