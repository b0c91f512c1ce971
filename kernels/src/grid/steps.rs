//! The steps of engines that issue the ops of a schedule one by one, on a device stream for each of its streams.

use std::collections::{HashSet, VecDeque};

use roundelay_core::dtype::ReduceOp;
use roundelay_core::ids::{OpId, RankId, StreamId};
use roundelay_core::schedule::{Buffer, OpKind, Operand, Schedule};
use roundelay_export::cuda::Kernel;

use super::issue_order::order;

/// One op as the host issues it; the addresses of inputs and outputs are found at the launch.
pub(crate) enum DrivenStep {
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
pub(crate) enum BufferOffset {
    Input(usize, u64),
    Output(usize, u64),
    Scratch(u64),
}

/// All steps of a kernel's schedule for a count.
pub(crate) struct HostSteps {
    /// The steps, in an order in which they can be issued.
    pub(crate) all: Vec<DrivenStep>,
    /// The number of events.
    pub(crate) events: usize,
    /// Bytes of scratch, for all ranks.
    pub(crate) scratch: u64,
    /// The divisor of moves that finish an average; 0 for other ops.
    pub(crate) divisor: i64,
    /// Outputs of ranks, in elements, to be divided at the end.
    pub(crate) scaled: Vec<u64>,
}

impl HostSteps {
    pub(crate) fn new(kernel: &Kernel, count: u64) -> Self {
        let (schedule, proof) = (&*kernel.schedule, &*kernel.proof);
        let size = kernel.spec.element.size() as u64;
        let (all, events, scratch) = steps(schedule, &proof.finish, count, size);
        let averages = kernel.spec.op == ReduceOp::Avg;
        let scales = averages && proof.scale_outputs;
        let ranks = (0..if scales { schedule.nranks } else { 0 }).map(RankId);
        Self {
            all,
            events,
            scratch,
            divisor: if averages { schedule.nranks.into() } else { 0 },
            scaled: ranks.map(|rank| schedule.elements(Buffer::Output, rank, count)).collect(),
        }
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
    let steps: Vec<DrivenStep> = order(schedule).into_iter().map(step).collect();
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
