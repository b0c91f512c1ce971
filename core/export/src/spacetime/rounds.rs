//! The rounds of a run: a message's is the step of the move that sends it, as programs and signals order moves.
//!
//! So a rank that lags behind is still in the same round, and `show --steps` counts alike.

use roundelay_core::ids::OpId;
use roundelay_core::schedule::{OpKind, Schedule};
use roundelay_core::simulate::{Message, Timeline};
use roundelay_core::verify::steps;

/// What rounding may take from a time, as a share of it.
const ROUNDING: f64 = 1e-9;

/// All rounds of a run.
pub(super) struct Rounds {
    /// By message; none for signals and for what stays within a rank.
    pub(super) of: Vec<Option<u32>>,
    /// By number.
    pub(super) all: Vec<Round>,
    /// Seconds, by number: when it and all before it had begun.
    begun: Vec<f64>,
}

/// What belongs to one round.
#[derive(Clone, Copy)]
pub(super) struct Round {
    /// Seconds: when its first message sets out.
    pub(super) start: f64,
    /// Seconds: when its last message has arrived.
    pub(super) end: f64,
    /// Of those between ranks that are drawn.
    pub(super) messages: u64,
    pub(super) bytes: u64,
}

impl Rounds {
    /// When they were; what is in each is for `Shown::count` to say.
    pub(super) fn new(schedule: &Schedule, timeline: &Timeline) -> Self {
        let steps = steps(schedule).expect("what ran to its end has an order");
        let messages = timeline.messages.iter();
        let round = |m: &Message| is_data(schedule, m).then(|| steps[m.op.index()] - 1);
        let of: Vec<_> = messages.clone().map(round).collect();
        let new = Round { start: f64::MAX, end: 0.0, messages: 0, bytes: 0 };
        let mut all = vec![new; of.iter().flatten().max().map_or(0, |last| *last as usize + 1)];
        for (message, round) in messages.zip(&of) {
            let Some(round) = round else { continue };
            let round = &mut all[*round as usize];
            round.start = round.start.min(message.start);
            round.end = round.end.max(message.end);
        }
        let mut latest = 0.0_f64;
        let begun = |round: &Round| {
            latest = latest.max(round.start);
            latest
        };
        let begun = all.iter().map(begun).collect();
        Self { of, all, begun }
    }

    /// The latest round that had begun then, or the first.
    pub(super) fn at(&self, seconds: f64) -> usize {
        self.begun.partition_point(|begun| *begun <= seconds * (1.0 + ROUNDING)).max(1) - 1
    }
}

/// Whether it is data from rank to rank, even if there is none of it.
fn is_data(schedule: &Schedule, message: &Message) -> bool {
    message.from != message.to && sends(schedule, message.op)
}

fn sends(schedule: &Schedule, op: OpId) -> bool {
    schedule.op(op).kind == OpKind::Move
}

/// Whether it is a signal from rank to rank.
pub(super) fn is_signal(schedule: &Schedule, message: &Message) -> bool {
    message.from != message.to && !sends(schedule, message.op)
}
