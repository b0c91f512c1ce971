//! Steps of the critical path, and the parts of their time.

use roundelay_base::ids::{OpId, RankId, StreamId};

/// A step on the critical path: it began when the step before had ended, and waited for nothing else.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// The rank that did it.
    pub rank: RankId,
    /// The stream of that rank.
    pub stream: StreamId,
    /// The op: a move, or a wait that a signal ended.
    pub op: OpId,
    /// The task that took the time.
    pub task: Task,
    /// The time at which it began, in seconds.
    pub start: f64,
    /// The time at which it ended, in seconds.
    pub end: f64,
}

/// The task of a step on the critical path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Task {
    /// A move between ranks, with its fold. The rest of the step's time is due to links that other messages used too.
    Transfer {
        /// Seconds of latency of the last message.
        latency: f64,
        /// Seconds that its pieces cost, except the first.
        pieces: f64,
        /// Seconds for which the bytes of that message would have flowed alone.
        flowing: f64,
        /// Seconds for which the rank reduced the received data.
        work: f64,
    },
    /// The fold of data that another rank had sent and that had arrived earlier: other folds of the stream came
    /// first.
    Fold,
    /// A move within the rank.
    Local,
    /// The wait of a stream for a signal: the step before is a step of the rank that sent it.
    Signal {
        /// The post that ended the wait.
        post: OpId,
        /// The rank that posted.
        from: RankId,
    },
}

/// The time of a run in parts: seconds of its critical path, by their cause.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spent {
    /// The number of transfers on the path.
    pub transfers: usize,
    /// Latency of messages.
    pub latency: f64,
    /// The cost of pieces, except the first of each message.
    pub pieces: f64,
    /// Bytes, at the rate at which they would have flowed alone.
    pub flowing: f64,
    /// The time that transfers took longer because other messages used their links.
    pub sharing: f64,
    /// Folds of received data.
    pub reducing: f64,
    /// Moves within a rank.
    pub local: f64,
    /// Signals on their way.
    pub signals: f64,
}

impl Spent {
    /// Sums the steps of a critical path.
    pub fn sum(path: &[Step]) -> Self {
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
                // Sums of times are rounded, so small differences are ignored.
                let alone = latency + pieces + flowing + work;
                self.sharing += if took > alone * (1.0 + 1e-6) { took - alone } else { 0.0 };
            }
            Task::Fold => self.reducing += took,
            Task::Local => self.local += took,
            Task::Signal { .. } => self.signals += took,
        }
    }
}
