//! The rounds of a run. The round of a message is the step of the move that sends it, in the order of programs and
//! signals.
//!
//! So a rank that is late is still in the same round, and `show --steps` has the same numbers.

use roundelay_core::ids::OpId;
use roundelay_core::schedule::{OpKind, Schedule};
use roundelay_core::verify::steps;
use roundelay_simulate::{Message, Timeline};

/// The share of a time that rounding may remove.
const ROUNDING: f64 = 1e-9;

/// All rounds of a run.
pub(super) struct Rounds {
    /// The round of each message; none for signals, and for data within a rank.
    pub(super) of: Vec<Option<u32>>,
    /// The rounds, by number.
    pub(super) all: Vec<Round>,
    /// The time in seconds, by number, at which this round and all earlier ones have begun.
    begun: Vec<f64>,
}

/// The time and the amount of data of one round.
#[derive(Clone, Copy)]
pub(super) struct Round {
    /// The departure of its first message, in seconds.
    pub(super) start: f64,
    /// The arrival of its last message, in seconds.
    pub(super) end: f64,
    /// The number of messages whose two ranks are drawn.
    pub(super) messages: u64,
    pub(super) bytes: u64,
}

impl Rounds {
    /// Returns the rounds with their times; `Shown::count` counts their messages.
    pub(super) fn new(schedule: &Schedule, timeline: &Timeline) -> Self {
        let steps = steps(schedule).expect("a finished run has an order");
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

    /// Returns the time in seconds at which a round and all earlier ones have begun.
    pub(super) fn begun(&self, round: u32) -> f64 {
        self.begun[round as usize]
    }

    /// Returns the latest round that had begun at a time, or the first.
    pub(super) fn at(&self, seconds: f64) -> usize {
        self.begun.partition_point(|begun| *begun <= seconds * (1.0 + ROUNDING)).max(1) - 1
    }
}

/// Whether the message carries data from rank to rank, even if that is empty.
fn is_data(schedule: &Schedule, message: &Message) -> bool {
    message.from != message.to && sends(schedule, message.op)
}

fn sends(schedule: &Schedule, op: OpId) -> bool {
    schedule.op(op).kind == OpKind::Move
}

/// Whether the message is a signal from rank to rank.
pub(super) fn is_signal(schedule: &Schedule, message: &Message) -> bool {
    message.from != message.to && !sends(schedule, message.op)
}
