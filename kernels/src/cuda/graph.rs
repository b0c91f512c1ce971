//! A launch of a plan as a CUDA graph. A replay costs the host and the device less than a plain launch, which matters
//! where messages are small.

use std::sync::Arc;

use cudarc::driver::sys::{CUgraphInstantiate_flags, CUstreamCaptureMode};
use cudarc::driver::{CudaContext, CudaGraph, CudaSlice, CudaStream, DevicePtr};

use super::device::failed;
use super::device_plan::AddressTable;
use super::error::Error;
use super::plan::CudaPlan;
use super::rooms::Rooms;
use crate::element::Element;

/// A launch of a [`CudaPlan`] on buffers that were given once, captured into a CUDA graph. Each [`Self::launch`]
/// replays it.
///
/// The graph has the plan for itself: other launches of the plan wait until the graph is dropped. Dropping it waits for
/// its launches.
pub struct PlanGraph<'a> {
    plan: &'a CudaPlan,
    graph: CudaGraph,
    stream: Arc<CudaStream>,
}

impl CudaPlan {
    /// Captures a launch of the collective on a slice for each rank, as [`Self::launch`] takes them, into a CUDA graph
    /// on a stream of its own. The method launches nothing, and earlier launches are over when it returns.
    ///
    /// ```no_run
    /// use roundelay_kernels::cuda::{CudaPlan, cudarc::driver::CudaSlice};
    ///
    /// fn often(
    ///     plan: &mut CudaPlan,
    ///     inputs: &[CudaSlice<f32>],
    ///     outputs: &mut [CudaSlice<f32>],
    /// ) -> Result<(), roundelay_kernels::cuda::Error> {
    ///     let mut graph = plan.graph(inputs, outputs)?;
    ///     for _ in 0..1000 {
    ///         graph.launch()?;
    ///     }
    ///     graph.wait()
    /// }
    /// ```
    ///
    /// # Errors
    /// E0401 to E0404 and E0420 as [`Self::launch`]; E0421 where the driver refuses the capture.
    pub fn graph<'a, T: Element>(
        &'a mut self,
        inputs: &'a [CudaSlice<T>],
        outputs: &'a mut [CudaSlice<T>],
    ) -> Result<PlanGraph<'a>, Error> {
        self.check_dtype(T::DTYPE)?;
        let call = &self.call;
        call.check_count("inputs", inputs.len())?;
        call.check_count("outputs", outputs.len())?;
        let mut io = Vec::with_capacity(inputs.len());
        for ((rank, input), output) in call.ranks().zip(inputs).zip(&*outputs) {
            self.check_device("input", rank, input)?;
            self.check_device("output", rank, output)?;
            let [from, to] = [input, output].map(|slice| slice.device_ptr(slice.stream()).0);
            call.check_buffer("input", rank, (input.len(), from), 1, call.input_len(rank))?;
            call.check_buffer("output", rank, (output.len(), to), 1, call.output_len(rank))?;
            io.push([from, to]);
        }
        self.graph_on(&io)
    }

    /// Captures a launch on checked buffers, which outlive the graph.
    fn graph_on(&self, io: &[[u64; 2]]) -> Result<PlanGraph<'_>, Error> {
        self.wait()?;
        self.settle()?;
        let what = || failed(format!("capturing a launch of {}", self.kernel.name));
        // The world's context is not used: many streams make cudarc track every slice.
        let context = CudaContext::new(self.world.devices[0].ordinal).map_err(what())?;
        let stream = context.new_stream().map_err(what())?;
        for device_plan in &self.device_plans {
            device_plan.bind(&stream, AddressTable::Replayed, io)?;
        }
        stream.synchronize().map_err(what())?;
        stream
            .begin_capture(CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL)
            .map_err(what())?;
        let launched = self.launch_all((0, &stream), AddressTable::Replayed);
        // The capture ends even if the launch failed.
        let graph = stream.end_capture(CUgraphInstantiate_flags(0)).map_err(what());
        launched?;
        let graph = graph?.ok_or_else(|| Error::KernelFailed {
            what: format!("capturing a launch of {}", self.kernel.name),
            why: "the driver made no graph of it".to_owned(),
        })?;
        Ok(PlanGraph { plan: self, graph, stream })
    }
}

impl Rooms {
    /// Captures a launch of `plan` on these buffers, in place or out of place, into a CUDA graph.
    ///
    /// # Errors
    /// E0421 where the driver refuses the capture.
    pub fn graph<'a>(
        &'a mut self,
        plan: &'a mut CudaPlan,
        in_place: bool,
    ) -> Result<PlanGraph<'a>, Error> {
        plan.graph_on(&self.addresses(in_place))
    }
}

impl PlanGraph<'_> {
    /// Launches the collective once more and returns at once. Launches follow each other.
    ///
    /// # Errors
    /// E0405 where a wait of an earlier launch came to its deadline; E0421 where the driver refuses the launch.
    pub fn launch(&mut self) -> Result<(), Error> {
        self.plan.check()?;
        self.graph
            .launch()
            .map_err(failed(format!("launching a graph of {}", self.plan.kernel.name)))
    }

    /// Waits for all launches so far, and reports their errors.
    ///
    /// # Errors
    /// E0405 where a wait of a launch came to its deadline; E0421 where the device ended a kernel.
    pub fn wait(&self) -> Result<(), Error> {
        self.stream.synchronize().map_err(failed(self.plan.kernel.name.clone()))?;
        self.plan.check()
    }
}

impl Drop for PlanGraph<'_> {
    /// Waits, because launches under way use the graph and the buffers.
    fn drop(&mut self) {
        // A lost context runs nothing any more.
        let _ = self.stream.synchronize();
    }
}
