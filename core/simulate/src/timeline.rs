//! The timeline of a simulated run, which diagrams are drawn from. Seconds count from the start of the run.

use roundelay_base::ids::{OpId, RankId, StreamId};

/// A simulated run: the activity of each stream, and each message, with times in seconds from the start.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Timeline {
    /// The number of ranks.
    pub nranks: u32,
    /// The time at which the last stream ended, in seconds.
    pub seconds: f64,
    /// The activity of each stream, one span at a time, in the order of streams and then of starts. Of overlapping
    /// moves a fold or copy is shown, else the transfer that began first.
    pub spans: Vec<Span>,
    /// Every message, in the order of starts; messages that set out together are in the order of ops.
    pub messages: Vec<Message>,
}

/// The time that an op of a stream took.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Span {
    /// The stream; its rank is in the schedule.
    pub stream: StreamId,
    /// The op; its place in the source is in the schedule.
    pub op: OpId,
    /// The activity of the stream in that time.
    pub state: TimelineState,
    /// The time at which it began, in seconds.
    pub start: f64,
    /// The time at which it ended, in seconds.
    pub end: f64,
}

/// The activity of a stream at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimelineState {
    /// A move between ranks: the stream waits for its messages.
    Transfer,
    /// The stream folds received data, or copies within the rank.
    Local,
    /// The stream waits for a signal.
    Idle,
}

/// Data, or a signal, on its way.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Message {
    /// The op that sends it: a post, or the first of its moves.
    pub op: OpId,
    /// The rank that sends it.
    pub from: RankId,
    /// The rank that gets it.
    pub to: RankId,
    /// Its size in bytes; 0 for a signal.
    pub bytes: u64,
    /// The number of its pieces; 0 for a signal.
    pub pieces: u32,
    /// The time at which it sets out, in seconds.
    pub start: f64,
    /// The time at which its first byte flows, after the latency and behind earlier messages of its stream, in seconds;
    /// the start, where it has no bytes.
    pub flows: f64,
    /// The time at which the whole message has arrived, in seconds.
    pub end: f64,
}
