//! The estimated time of a launch on a GPU: every stream goes through its ops, and moves that are under way at one time
//! share the bandwidth of memory.
//!
//! A move begins with a step and the latency of memory. Then its bytes flow at the rate of its loads, which is the
//! bytes that its CTAs have under way at once divided by the latency (Little's law: bytes in flight = bandwidth *
//! latency), or at a fair share of memory's bandwidth, whichever is less. A wait ends one signal time after its post.
//! The slowest stream gives the time of the launch.

mod flow;
mod gpu;
#[cfg(test)]
mod tests;
mod walk;
mod work;

pub use gpu::Gpu;
pub use walk::WalkCost;

use roundelay_core::ids::ScratchId;
use roundelay_core::schedule::{Op, Schedule, SignalKind};
use roundelay_export::cuda::{Kernel, Protocol};

use flow::{Clock, Flow};
use work::Work;

/// The shape of a kernel's launch on a GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaunchShape {
    /// CTAs that share a stream.
    pub parts: u32,
    /// Bytes that the loads of one CTA have under way at once in long moves.
    pub in_flight: u32,
    /// Whether a CUDA graph launches the kernel.
    pub graph: bool,
}

/// The estimated time of a launch, and its parts. Times are in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Estimate {
    /// The time from one launch to the next.
    pub time: f64,
    /// The launch itself.
    pub launch: f64,
    /// The time of flowing bytes on the critical path, from the slowest stream back to the start.
    pub moving: f64,
    /// The latency of memory and of the walk through the program on the critical path.
    pub latency: f64,
    /// The time of signals on the critical path.
    pub signals: f64,
    /// The number of signals on the critical path.
    pub waits: u32,
    /// Bytes that all streams load and store.
    pub traffic: u64,
    /// Bytes of the buffers and of the scratch. If the GPU's cache holds them, memory has the cache's rate.
    pub touched: u64,
    /// Bytes that the loads of all streams have under way at once.
    pub in_flight: u64,
}

impl Estimate {
    /// The estimate for a launch of `kernel` for `count` elements a unit.
    ///
    /// ```
    /// use roundelay_export::cuda::{Kernel, Protocol};
    /// use roundelay_kernels::grid::{Estimate, Gpu, LaunchShape};
    ///
    /// fn tell(kernel: &Kernel, gpu: &Gpu) {
    ///     let shape = LaunchShape { parts: 16, in_flight: 56 << 10, graph: false };
    ///     let estimate = Estimate::for_launch(kernel, 1 << 20, gpu, shape);
    ///     println!("{:.1} us", estimate.time * 1e6);
    /// }
    /// ```
    pub fn for_launch(kernel: &Kernel, count: u64, gpu: &Gpu, shape: LaunchShape) -> Self {
        let element = kernel.spec.element.size() as u64;
        let lined = |id| kernel.is_lined(id);
        let protocol = kernel.spec.protocol;
        let walk = WalkCost::for_form(kernel.form, protocol);
        Self::of_schedule(
            &kernel.schedule,
            (count, element),
            (protocol, lined),
            (gpu, &walk),
            shape,
        )
    }

    /// Returns the estimate for a schedule, for elements of `element` bytes. `lined`: whether the slots of a scratch
    /// buffer hold the protocol's lines, whose flags tell that they have arrived.
    fn of_schedule(
        schedule: &Schedule,
        (count, element): (u64, u64),
        (protocol, lined): (Protocol, impl Fn(ScratchId) -> bool),
        (gpu, walk): (&Gpu, &WalkCost),
        shape: LaunchShape,
    ) -> Self {
        let work = Work::of(schedule, (count, element), (protocol, &lined));
        // Lines tell that data has arrived, and no signal repeats it.
        let by_lines = (0..).map(ScratchId).zip(&schedule.scratch).any(|(id, _)| lined(id));
        let is_said = |op: &Op| by_lines && schedule.channel(op).kind == SignalKind::Tail;
        let loads = f64::from(shape.parts) * f64::from(shape.in_flight) / gpu.memory_latency;
        let line = if protocol == Protocol::Ll128 { gpu.line128 } else { gpu.line };
        let flow = Flow { schedule, gpu, work: &work, walk, loads, line, is_said: &is_said };
        let last = flow.run().into_iter().fold(Clock::default(), Clock::later);
        let launch = if shape.graph { gpu.graph_launch } else { gpu.launch };
        let streams = schedule.streams.iter().filter(|stream| stream.len > 0).count();
        Self {
            time: launch + last.now(),
            launch,
            moving: last.moving,
            latency: last.latency,
            signals: last.signals,
            waits: last.waits,
            traffic: work.traffic(),
            touched: work.touched,
            in_flight: streams as u64 * u64::from(shape.parts) * u64::from(shape.in_flight),
        }
    }
}
