//! A schedule that the host drives: asynchronous copies and kernels that add, one CUDA stream for each stream of the
//! schedule, and events for signals. Generated kernels are compared with it.

use std::sync::Arc;

use cudarc::driver::{CudaContext, CudaEvent, CudaSlice, CudaStream, DevicePtr};
use roundelay_export::cuda::Spec;

use super::device::failed;
use super::error::Error;
use super::fold::Folds;
use super::plan::CudaPlan;
use super::rooms::Rooms;
use super::world::CudaWorld;
use crate::grid::steps::{BufferOffset, DrivenStep, HostSteps};

/// The ops of a plan on one device, issued one by one from the host: copies, and a kernel for each fold.
pub struct Driven {
    steps: Vec<DrivenStep>,
    divisor: i64,
    folds: Folds,
    streams: Vec<Arc<CudaStream>>,
    events: Vec<CudaEvent>,
    begun: CudaEvent,
    scratch: CudaSlice<u8>,
    /// Outputs of ranks, in elements, to be divided at the end.
    scaled: Vec<u64>,
}

impl Driven {
    /// Prepares the ops of `plan`, whose world has one device.
    pub fn new(world: &CudaWorld, plan: &CudaPlan) -> Result<Self, Error> {
        let device = &world.devices[0];
        let schedule = &*plan.kernel().schedule;
        let Spec { element, op, .. } = plan.kernel().spec;
        let folds = Folds::new(device, (element, op), schedule)?;
        // The world's context is not used: many streams make cudarc track every slice.
        let what = || format!("making streams on device {}", device.ordinal);
        let context = CudaContext::new(device.ordinal).map_err(failed(what()))?;
        let stream = |_| context.new_stream().map_err(failed(what()));
        let streams = schedule.streams.iter().map(stream).collect::<Result<_, _>>()?;
        let HostSteps { all: steps, events, scratch, divisor, scaled } =
            HostSteps::new(plan.kernel(), plan.count());
        let event = |_| context.new_event(None).map_err(failed(what()));
        Ok(Self {
            steps,
            divisor,
            folds,
            streams,
            events: (0..events).map(event).collect::<Result<_, _>>()?,
            begun: context.new_event(None).map_err(failed(what()))?,
            scratch: device.zeros("scratch", scratch as usize)?,
            scaled,
        })
    }

    /// Issues all ops, ordered after the earlier work on `stream` and before the later work, and does not wait.
    pub fn launch(
        &self,
        rooms: &mut Rooms,
        stream: &Arc<CudaStream>,
        in_place: bool,
    ) -> Result<(), Error> {
        let io = rooms.addresses(in_place);
        let scratch = self.scratch.device_ptr(self.scratch.stream()).0;
        let address = |offset: &BufferOffset| match *offset {
            BufferOffset::Input(rank, at) => io[rank][0] + at,
            BufferOffset::Output(rank, at) => io[rank][1] + at,
            BufferOffset::Scratch(at) => scratch + at,
        };
        let issue = || failed("driving a schedule");
        self.begun.record(stream).map_err(issue())?;
        for stream in &self.streams {
            stream.wait(&self.begun).map_err(issue())?;
        }
        for step in &self.steps {
            match step {
                DrivenStep::Move { stream, sources, targets, len, finish } => {
                    let from: Vec<u64> = sources.iter().map(address).collect();
                    let stream = &self.streams[*stream];
                    let divisor = if *finish { self.divisor } else { 0 };
                    let (first, others) = targets.split_first().expect("a move writes something");
                    self.fold(stream, &from, address(first), *len, divisor)?;
                    for other in others {
                        self.fold(stream, &[address(first)], address(other), *len, 0)?;
                    }
                }
                DrivenStep::Post { stream, event } => {
                    self.events[*event].record(&self.streams[*stream]).map_err(issue())?;
                }
                DrivenStep::Wait { stream, event } => {
                    self.streams[*stream].wait(&self.events[*event]).map_err(issue())?;
                }
            }
        }
        for each in &self.streams {
            stream.join(each).map_err(issue())?;
        }
        for (len, [_, output]) in self.scaled.iter().zip(&io) {
            self.fold(stream, &[*output], *output, *len, self.divisor)?;
        }
        Ok(())
    }

    fn fold(
        &self,
        stream: &CudaStream,
        from: &[u64],
        to: u64,
        len: u64,
        divisor: i64,
    ) -> Result<(), Error> {
        // SAFETY: all addresses lie within buffers of the device, because the schedule was proved; the caller lends the
        // buffers for the launch.
        unsafe { self.folds.run(stream, from, to, len, divisor) }
    }
}
