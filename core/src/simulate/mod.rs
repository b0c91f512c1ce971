//! What a schedule would take on a topology that nobody here owns.
//!
//! A *flow-level* simulation: no packets. A stream does one op after the other. A move between ranks sends a message
//! for each operand of another rank, all at once, and ends when the last has arrived and what there is to reduce is
//! reduced. A message first takes the latency of its way, in which it uses no bandwidth, and then flows; the
//! flows on a link share it, max-min fairly, in each direction for itself. Bytes flow from the rank that has them
//! to the rank that gets them, whichever of the two does the move. A message without bytes takes its latency.
//! Signals take no time, or are messages without bytes; those between the streams of a rank never take any.

mod closed;
mod critical;
mod engine;
mod machine;
mod queue;
mod sharing;
#[cfg(test)]
mod sharing_tests;
mod timeline;
mod usage;
mod wires;

pub use closed::closed;
pub use critical::{Step, Task};
pub use machine::{Machine, SignalCost};
pub use timeline::{Message, Span, State, Timeline};
pub use usage::{PortUsage, Usage};

use crate::diagnostics::{Code, Finding};
use crate::dtype::DType;
use crate::ids::SpanId;
use crate::schedule::Schedule;
use crate::verify;
use engine::Engine;
use wires::Wires;

/// A run, as the machine would do it.
#[derive(Clone, Debug, PartialEq)]
pub struct Simulated {
    /// Seconds until the last stream has ended.
    pub seconds: f64,
    /// nccl-tests' size in bytes.
    pub bytes: u64,
    /// Bytes a second: the size over the time. 0 where nothing takes time.
    pub algbw: f64,
    /// Ops that were done, and messages that were sent.
    pub tasks: u64,
    /// Messages with data.
    pub messages: u64,
    /// What each link carried, in the order of the topology's.
    pub links: Vec<Usage>,
    /// What each rank of the run sent and received.
    pub ports: Vec<PortUsage>,
    /// What the time went to: from the start to the end, each step waits for the one before.
    pub critical: Vec<Step>,
    /// What every stream did when, if it was asked for.
    pub timeline: Option<Timeline>,
}

/// Runs `schedule` for `count` elements a unit, NCCL's count. With `record`, keeps what happened when.
///
/// Errors: a machine or a schedule that makes no sense, a topology that is too small or lacks a link that is used,
/// and streams that never end or signals that are left over, each at its statement.
pub fn simulate(
    schedule: &Schedule,
    machine: &Machine,
    count: u64,
    dtype: DType,
    record: bool,
) -> Result<Simulated, Vec<Finding>> {
    machine.check(schedule.nranks).map_err(|problem| vec![problem.at(SpanId::default())])?;
    let Some(wires) = Wires::new(schedule, machine) else {
        return Err(verify::links(schedule, &machine.topology));
    };
    let element = dtype.size() as u64;
    let mut engine = Engine::new(schedule, machine, &wires, (count, element), record);
    engine.run();
    if !engine.ended() {
        verify::in_order(schedule)?;
        // A signal that two streams wait for may go to the wrong one.
        let title = "the streams of this schedule wait for each other, by who takes which signal";
        return Err(vec![Finding::new(Code::SharedSignal, SpanId::default(), title)]);
    }
    let n = schedule.nranks;
    let units = schedule.collective.max_input_units(n).max(schedule.collective.max_output_units(n));
    let bytes = u64::from(units).saturating_mul(count).saturating_mul(element);
    Ok(engine.result(bytes))
}
