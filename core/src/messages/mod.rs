//! Two-sided form: a proved schedule as sends and receives, for transports that cannot read another rank's memory.
//!
//! Every move between ranks is one message or more, sent by the rank that owns the source as soon as the data is
//! there, and received by the rank that owns the destination. A fold over a peer's region receives into scratch first.
//! Signals that messages imply are gone.

use crate::ids::{LaneId, OpId, RankId, RegionId, SpanId};
use crate::schedule::Schedule;

/// A schedule in two-sided form.
#[derive(Clone, Debug)]
pub struct TwoSided {
    schedule: Schedule,
    messages: Vec<Message>,
    actions: Vec<Vec<Action>>,
}

/// A message from one rank to another. The k-th that a rank sends to another in a lane is the k-th that the other
/// receives from it in that lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// The rank that sends.
    pub from: RankId,
    /// The rank that receives.
    pub to: RankId,
    /// The lane: a tag where the transport has tags.
    pub lane: LaneId,
    /// The region of the sender's buffer.
    pub source: RegionId,
    /// The region of the receiver's buffer.
    pub target: RegionId,
    /// The statement that it stands for.
    pub at: SpanId,
}

/// The number of a message in [`TwoSided::messages`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MessageId(pub u32);

/// What a rank of one thread does, one after another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// It begins to send: from here to [`Self::Sent`] the source must not be written.
    Send(MessageId),
    /// It waits until the send has ended.
    Sent(MessageId),
    /// It begins to receive: from here to [`Self::Received`] the target must not be touched.
    Receive(MessageId),
    /// It waits until the message is there.
    Received(MessageId),
    /// It does a move of [`TwoSided::schedule`] whose operands are all its own.
    Move(OpId),
}

impl TwoSided {
    /// The schedule in normal form: every move between ranks is a pull by the receiver between two signals, *sent*
    /// and *taken*.
    pub fn schedule(&self) -> &Schedule {
        &self.schedule
    }

    /// All messages.
    pub fn messages(&self) -> &[Message] {
        &self.messages
    }

    /// What `rank` does.
    pub fn actions(&self, rank: RankId) -> &[Action] {
        &self.actions[rank.index()]
    }
}
