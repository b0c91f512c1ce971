//! What a schedule would take on a topology that nobody here owns.
//!
//! A *flow-level* simulation: no packets. A move between ranks is a transfer and a fold; [`Streams`] says what each of
//! them waits for. What a stream begins to move from one rank to another at one time, between the same two of its
//! signals, is one *message*: its *pieces* share one latency, in which they use no bandwidth, and then flow together.
//! Messages of a stream from one rank to another flow one after the other, their latencies at once. The
//! flows on a link share it, max-min fairly, in each direction for itself. Bytes flow from the rank that has them
//! to the rank that gets them, whichever of the two does the move. A message without bytes takes its latency.
//! Signals take no time, or are messages without bytes; those between the streams of a rank never take any.

mod closed;
mod engine;
mod machine;
mod queue;
mod sharing;
#[cfg(test)]
mod sharing_tests;
mod step;
mod timeline;
mod usage;
mod wires;

pub use closed::closed;
pub use machine::{Machine, SignalCost, Streams};
pub use step::{Spent, Step, Task};
pub use timeline::{Message, Span, Timeline, TimelineState};
pub use usage::{PortUsage, Usage};

use crate::diagnostics::{Code, Finding};
use crate::dtype::DType;
use crate::ids::SpanId;
use crate::schedule::Schedule;
use crate::verify;
use engine::Engine;
use wires::Wires;

/// Bytes of a buffer: as many as times are exact for.
const MOST: u64 = 1 << 50;

/// The result of a simulation: the time that a run would take on a machine, and what it is spent on.
#[derive(Clone, Debug, PartialEq)]
pub struct Simulated {
    /// Seconds until the last stream has ended.
    pub seconds: f64,
    /// The size in bytes, as nccl-tests counts it.
    pub bytes: u64,
    /// The algorithm bandwidth in bytes a second: the size over the time. 0 where nothing takes time.
    pub algbw: f64,
    /// The number of ops that were done and messages that were sent.
    pub tasks: u64,
    /// The number of messages between ranks: see [`Schedule::messages`].
    pub messages: u64,
    /// The number of pieces that they are of.
    pub pieces: u64,
    /// The use of each link, in the order of the topology's links.
    pub links: Vec<Usage>,
    /// The data that each rank of the run sent and received.
    pub ports: Vec<PortUsage>,
    /// The critical path, which the time went to: from the start to the end, each step waits for the one before.
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
    machine.check(schedule.nranks).map_err(|problem| vec![problem.at(SpanId::default())])?;
    let element = dtype.size() as u64;
    let bytes = schedule.collective.max_units(schedule.nranks).checked_mul(element);
    let bytes = bytes.and_then(|unit| unit.checked_mul(count)).filter(|bytes| *bytes <= MOST);
    let Some(bytes) = bytes else {
        let title = format!("{count} elements of {element} bytes are too many to simulate");
        let finding = Finding::new(Code::TooLarge, SpanId::default(), title);
        return Err(vec![finding.help(format!("a buffer has at most {MOST} bytes"))]);
    };
    let Some(wires) = Wires::new(schedule, machine) else {
        return Err(verify::links(schedule, &machine.topology));
    };
    let mut engine = Engine::new(schedule, machine, &wires, (count, element), record);
    engine.run();
    if !engine.ended() {
        verify::in_order(schedule)?;
        // A signal that two streams wait for may go to the wrong one.
        let title = "the streams of this schedule wait for each other, by who takes which signal";
        return Err(vec![Finding::new(Code::SharedSignal, SpanId::default(), title)]);
    }
    let critical = engine::path(&engine);
    Ok(engine.result(bytes, critical))
}
