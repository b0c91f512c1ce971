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
        /// Seconds of latency of the message that came last.
        latency: f64,
        /// Seconds that its pieces cost, but for the first.
        pieces: f64,
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

/// What the time of a run went to: seconds of its critical path, by what they were spent on.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spent {
    /// The number of transfers on the path.
    pub transfers: usize,
    /// Latency of messages.
    pub latency: f64,
    /// What pieces cost, but for the first of each message.
    pub pieces: f64,
    /// Bytes, as fast as they would have flowed alone.
    pub flowing: f64,
    /// What transfers took longer, as others used the same links.
    pub sharing: f64,
    /// Folds of what had come.
    pub reducing: f64,
    /// Moves within a rank.
    pub local: f64,
    /// Signals on their way.
    pub signals: f64,
}

impl Spent {
    /// The sum of a critical path.
    pub fn of(path: &[Step]) -> Self {
        let mut all = Self::default();
        for step in path {
            all.add(step);
        }
        all
    }

    fn add(&mut self, step: &Step) {
        let took = step.end - step.start;
        match step.task {
            Task::Transfer { latency, pieces, flowing, work } => {
                self.transfers += 1;
                self.latency += latency;
                self.pieces += pieces;
                self.flowing += flowing;
                self.reducing += work;
                // Sums of times are rounded.
                let alone = latency + pieces + flowing + work;
                self.sharing += if took > alone * (1.0 + 1e-6) { took - alone } else { 0.0 };
            }
            Task::Fold => self.reducing += took,
            Task::Local => self.local += took,
            Task::Signal { .. } => self.signals += took,
        }
    }
}
