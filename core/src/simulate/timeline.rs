//! What a simulated run did when: what diagrams are drawn from. Seconds count from the start of the run.

use crate::ids::{OpId, RankId, StreamId};

/// A run, as it went.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Timeline {
    /// Number of ranks.
    pub nranks: u32,
    /// When the last stream ended.
    pub seconds: f64,
    /// Every op that took time or waited, by stream and then by start.
    pub spans: Vec<Span>,
    /// Every message, by start; those that set out together by op.
    pub messages: Vec<Message>,
}

/// An op of a stream.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Span {
    /// The stream; its rank is in the schedule.
    pub stream: StreamId,
    /// The op; its place in the source is in the schedule.
    pub op: OpId,
    /// What the stream did.
    pub state: State,
    /// When it began.
    pub start: f64,
    /// When it ended.
    pub end: f64,
}

/// What a stream does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// A move between ranks: the stream waits for its messages.
    Transfer,
    /// A move within the rank.
    Local,
    /// Waits for a signal.
    Idle,
}

/// Data, or a signal, on its way.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Message {
    /// The op that sends it: a move or a post.
    pub op: OpId,
    /// Where it begins.
    pub from: RankId,
    /// Where it ends.
    pub to: RankId,
    /// Its size; 0 for a signal.
    pub bytes: u64,
    /// When it set out.
    pub start: f64,
    /// When all of it has arrived.
    pub end: f64,
}
