//! Simulates the time that a schedule would take on a topology, without the machine.
//!
//! A *flow-level* simulation, without packets. A move between ranks is a transfer and a fold; [`Streams`] tells when
//! each of them may start. The moves that a stream begins from one rank to another at one time, between two
//! successive signals of the stream, form one *message*: its *pieces* share one latency, in which they use no
//! bandwidth, and then flow together. Messages of a stream from one rank to another flow one after another, with
//! their latencies at once. The flows on a link share it, max-min fairly, in each direction separately. Bytes flow
//! from the rank that has them to the rank that gets them, whichever of the two does the move. A message without
//! bytes takes its latency. Signals take no time, or are messages without bytes; signals between the streams of a
//! rank never take time.

mod closed_form;
pub mod cost;
mod engine;
mod machine;
mod machine_turns;
mod node_images;
mod paths;
mod queue;
mod rates;
mod sharing;
mod step;
mod symmetric;
mod timeline;
pub mod trace;
mod usage;

pub use closed_form::closed_form;
pub use machine::{Machine, SignalCost, Streams};
pub use rates::rates;
pub use step::{Spent, Step, Task};
pub use symmetric::symmetric;
pub use timeline::{Message, Span, Timeline, TimelineState};
pub use usage::{PortUsage, Usage};

use std::borrow::Cow;

use engine::Engine;
use paths::{RankPaths, switches_of};
use roundelay_base::diagnostics::{Code, Finding};
use roundelay_base::dtype::{DType, ReduceOp};
use roundelay_base::ids::SpanId;
use roundelay_core::schedule::{Op, Region, Schedule, switch};
use roundelay_core::topology::Topology;
use roundelay_core::verify;

/// The most bytes of a buffer, up to which times are exact.
const MOST: u64 = 1 << 50;

/// The result of a simulation: the time that a run would take on a machine, and its parts.
#[derive(Clone, Debug, PartialEq)]
pub struct Simulated {
    /// Seconds until the last stream has ended.
    pub seconds: f64,
    /// The size in bytes, as nccl-tests counts it.
    pub bytes: u64,
    /// The algorithm bandwidth in bytes a second: the size over the time. 0 where the run takes no time.
    pub algbw: f64,
    /// The number of ops that were done and messages that were sent.
    pub tasks: u64,
    /// The number of messages between ranks: see [`Schedule::messages`].
    pub messages: u64,
    /// The number of pieces of these messages.
    pub pieces: u64,
    /// The use of each link, in the order of the topology's links.
    pub links: Vec<Usage>,
    /// The data that each rank of the run sent and received.
    pub ports: Vec<PortUsage>,
    /// The critical path, which determines the time: from the start to the end, each step waits for the step before.
    pub critical: Vec<Step>,
    /// The timeline of all streams, if it was asked for.
    pub timeline: Option<Timeline>,
}

/// Simulates a run of `schedule` on a machine, for `count` elements a unit (NCCL's count). With `record`, the
/// timeline is kept.
///
/// # Errors
/// A machine or a schedule that makes no sense, a topology that is too small (E0604) or lacks a link that is used
/// (E0313), and streams that never end or signals that are left over, each at its statement.
pub fn simulate(
    schedule: &Schedule,
    machine: &Machine,
    count: u64,
    dtype: DType,
    record: bool,
) -> Result<Simulated, Vec<Finding>> {
    machine
        .check(schedule.nranks)
        .map_err(|problem| vec![problem.into_finding(SpanId::default())])?;
    let bytes = bytes(schedule, count, dtype).map_err(|finding| vec![*finding])?;
    let carried_out = on_topology(schedule, &machine.topology, dtype);
    let schedule = carried_out.as_ref();
    let Some(paths) = RankPaths::new(schedule, machine, None) else {
        return Err(verify::links(schedule, &machine.topology));
    };
    let length = |region: &Region| {
        (schedule.extent(region, count).1 * schedule.element_bytes(region, dtype)) as f64
    };
    let lengths = schedule.regions.iter().map(length).collect();
    let mut engine = Engine::new(schedule, machine, &paths, lengths, record);
    engine.run();
    if !engine.ended() {
        verify::in_order(schedule)?;
        // A signal that two streams wait for may go to the wrong stream.
        let title = "the streams of this schedule wait for each other, by who takes which signal";
        return Err(vec![Finding::new(Code::SharedSignal, SpanId::default(), title)]);
    }
    let critical = engine::path(&engine);
    Ok(engine.result(bytes, critical))
}

/// Returns the schedule as a topology carries out its sums of elements of a type: where one of its moves by a switch has no
/// switch that reduces, or folds elements that no switch folds, with moves by the ranks in the place of all of them.
pub fn on_topology<'s>(
    schedule: &'s Schedule,
    topology: &Topology,
    dtype: DType,
) -> Cow<'s, Schedule> {
    let mut of_switch = schedule.ops.iter().filter(|op| op.switch);
    let folds = switch::reason_against(dtype, ReduceOp::Sum).is_none();
    let takes = |op: &Op| folds || op.srcs == 1;
    if of_switch.all(|op| takes(op) && switches_of(schedule, topology, op).is_some()) {
        Cow::Borrowed(schedule)
    } else {
        Cow::Owned(switch::as_moves(schedule))
    }
}

/// Returns the size of a run in bytes, as nccl-tests counts it.
fn bytes(schedule: &Schedule, count: u64, dtype: DType) -> Result<u64, Box<Finding>> {
    let element = dtype.size() as u64;
    let bytes = match &schedule.elements {
        // With a count for each block, a unit is an element.
        Some(lengths) => lengths.largest().checked_mul(element),
        None => schedule.collective.max_units(schedule.nranks).checked_mul(element),
    };
    let bytes = bytes.and_then(|unit| unit.checked_mul(count)).filter(|bytes| *bytes <= MOST);
    bytes.ok_or_else(|| {
        let title = format!("{count} elements of {element} bytes are too many to simulate");
        let finding = Finding::new(Code::TooLarge, SpanId::default(), title);
        Box::new(finding.help(format!("a buffer has at most {MOST} bytes")))
    })
}
