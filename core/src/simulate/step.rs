//! Steps of the critical path, and what takes their time.

use crate::ids::{OpId, RankId, StreamId};

/// A step on the critical path: it began when the one before had ended, and waited for nothing else.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// The rank that did it.
    pub rank: RankId,
    /// The stream of that rank.
    pub stream: StreamId,
    /// The op: a move, or a wait that a signal ended.
    pub op: OpId,
    /// What took the time.
    pub task: Task,
    /// The time at which it began, in seconds.
    pub start: f64,
    /// The time at which it ended, in seconds.
    pub end: f64,
}

/// What takes the time of a step on the critical path, or hands over to another stream.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Task {
    /// A move between ranks, with its fold. What these three leave of the step's time is due to links that others used too.
    Transfer {
        /// Seconds of latency of the message that came last, and of what its pieces cost.
        latency: f64,
        /// Seconds for which the bytes of that message would have flowed alone.
        flowing: f64,
        /// Seconds for which the rank reduced what had come.
        work: f64,
    },
    /// The fold of what another rank had sent, which had come before: other folds of the stream came first.
    Fold,
    /// A move within the rank.
    Local,
    /// The stream waited for a signal: the step before is one of the rank that sent it.
    Signal {
        /// The post that ended the wait.
        post: OpId,
        /// The rank that posted.
        from: RankId,
    },
}
