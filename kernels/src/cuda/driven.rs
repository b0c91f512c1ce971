//! A schedule that the host drives: asynchronous copies and kernels that add, one CUDA stream for each stream of the
//! schedule, and events for signals. Generated kernels are compared with it.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use cudarc::driver::{CudaContext, CudaEvent, CudaSlice, CudaStream, DevicePtr};
use roundelay_core::dtype::ReduceOp;
use roundelay_core::ids::{OpId, RankId, StreamId};
use roundelay_core::schedule::{Buffer, OpKind, Operand, Schedule};
use roundelay_export::cuda::Spec;

use super::device::failed;
use super::error::Error;
use super::fold::Folds;
use super::plan::CudaPlan;
use super::rooms::Rooms;
use super::world::CudaWorld;
use crate::grid;

/// One op as the host issues it; the addresses of inputs and outputs are found at the launch.
enum DrivenStep {
    Move {
        stream: usize,
        sources: Vec<BufferOffset>,
        targets: Vec<BufferOffset>,
        len: u64,
        finish: bool,
    },
    Post {
        stream: usize,
        event: usize,
    },
    Wait {
        stream: usize,
        event: usize,
    },
}

/// Bytes from the beginning of a buffer.
#[derive(Clone, Copy)]
enum BufferOffset {
    Input(usize, u64),
    Output(usize, u64),
    Scratch(u64),
}

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
        let (schedule, proof) = (&*plan.kernel().schedule, &*plan.kernel().proof);
        let Spec { element, op, .. } = plan.kernel().spec;
        let folds = Folds::new(device, (element, op), schedule)?;
        // The world's context is not used: many streams make cudarc track every slice.
        let what = || format!("making streams on device {}", device.ordinal);
        let context = CudaContext::new(device.ordinal).map_err(failed(what()))?;
        let stream = |_| context.new_stream().map_err(failed(what()));
        let streams = schedule.streams.iter().map(stream).collect::<Result<_, _>>()?;
        let (steps, events, scratch) =
            steps(schedule, &proof.finish, plan.count(), element.size() as u64);
        let event = |_| context.new_event(None).map_err(failed(what()));
        let averages = op == ReduceOp::Avg;
        let ranks = (0..schedule.nranks).map(RankId);
        let scaled = if averages && proof.scale_outputs {
            ranks.map(|rank| schedule.elements(Buffer::Output, rank, plan.count())).collect()
        } else {
            Vec::new()
        };
        Ok(Self {
            steps,
            divisor: if averages { schedule.nranks.into() } else { 0 },
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

/// Returns the ops in an order in which they can be issued (the ops in `finish` divide), the number of events, and the
/// bytes of scratch.
fn steps(
    schedule: &Schedule,
    finish: &[OpId],
    count: u64,
    size: u64,
) -> (Vec<DrivenStep>, usize, u64) {
    // The scratch of rank 0, then the scratch of rank 1, and so on.
    let mut offsets = vec![0];
    for scratch in &schedule.scratch {
        let bytes = (scratch.elements(count) * size).next_multiple_of(256);
        offsets.push(offsets[offsets.len() - 1] + bytes);
    }
    let per_rank = offsets[schedule.scratch.len()];
    let place = |operand: &Operand| {
        let region = schedule.region(*operand);
        let (at, rank) = (schedule.extent(region, count).0 * size, operand.rank.index());
        match region.buffer {
            Buffer::Input => BufferOffset::Input(rank, at),
            Buffer::Output => BufferOffset::Output(rank, at),
            Buffer::Scratch(id) => {
                BufferOffset::Scratch(rank as u64 * per_rank + offsets[id.index()] + at)
            }
        }
    };
    let finishing: HashSet<OpId> = finish.iter().copied().collect();
    let mut posts = vec![VecDeque::new(); schedule.channels.len()];
    let mut events = 0;
    let step = |(stream, id): (StreamId, OpId)| {
        let (op, stream) = (schedule.op(id), stream.index());
        match op.kind {
            OpKind::Move => DrivenStep::Move {
                stream,
                sources: schedule.srcs(op).iter().map(place).collect(),
                targets: schedule.dsts(op).iter().map(place).collect(),
                len: schedule.extent(schedule.region(schedule.dsts(op)[0]), count).1,
                finish: finishing.contains(&id),
            },
            OpKind::Post => {
                posts[op.arg as usize].push_back(events);
                events += 1;
                DrivenStep::Post { stream, event: events - 1 }
            }
            OpKind::Wait => {
                let event = posts[op.arg as usize].pop_front().expect("the order has posts first");
                DrivenStep::Wait { stream, event }
            }
        }
    };
    let steps: Vec<DrivenStep> = grid::order(schedule).into_iter().map(step).collect();
    (steps, events, per_rank * u64::from(schedule.nranks))
}

#[cfg(test)]
mod tests {
    use roundelay_core::schedule::text as schedule_text;

    use super::*;

    /// Rank 0 sends its input to rank 1 through scratch.
    const THROUGH: &str = "\
schedule Through Broadcast nranks 2 root 0
scratch inbox slots 2 width 1
rank 0 stream 0
  copy 0.input[0..1] -> 0.output[0..1] @0
  copy 0.input[0..1] -> 1.inbox#1@0[0..1] @0
  post data 0->1 @0
rank 1 stream 0
  wait data 0->1 @0
  copy 1.inbox#1@0[0..1] -> 1.output[0..1] @0
";

    #[test]
    fn scratch_of_each_rank_is_apart_and_signals_are_events() {
        let schedule = schedule_text::parse(THROUGH).expect("a schedule");
        let (steps, events, scratch) = steps(&schedule, &[], 100, 4);
        assert_eq!((events, scratch), (1, 2 * 1024), "two slots of 400 bytes, aligned");
        let [_, DrivenStep::Move { targets, len, .. }, DrivenStep::Post { event, .. }, rest @ ..] =
            &steps[..]
        else {
            panic!("copies, then a post");
        };
        let [BufferOffset::Scratch(at)] = targets[..] else { panic!("into scratch") };
        assert_eq!((at, *len, *event), (1024 + 400, 100, 0));
        let [DrivenStep::Wait { event: 0, stream: 1 }, DrivenStep::Move { stream: 1, .. }] = rest
        else {
            panic!("a wait, then a copy");
        };
    }
}
