//! Two-sided form: a proved schedule as sends and receives, for transports that cannot read another rank's memory.
//!
//! Every move between ranks is one message or more, sent by the rank that owns the source as soon as the data is
//! there, and received by the rank that owns the destination. A fold over a peer's region receives into scratch first.
//! Signals that messages imply are gone.

mod acts;
mod check;
mod form;
mod levels;
mod slots;
mod windows;

use std::sync::Arc;

use crate::diagnostics::{Code, Finding};
use crate::ids::{LaneId, OpId, RankId, RegionId, SpanId};
use crate::optimize::join;
use crate::schedule::Schedule;
use crate::stages::stage;
use crate::verify::layout::Mode;
use crate::verify::{Proof, Proved, in_order};
use acts::Acts;
use windows::Windows;

/// The most messages and moves of a schedule in this form.
const LIMIT: usize = 1 << 28;

/// A schedule in two-sided form.
#[derive(Clone, Debug)]
pub struct TwoSided {
    proved: Proved,
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
    /// Brings what an author's schedule does into this form. What comes of it is proved again, in place too if the
    /// author's schedule is, and reduces every piece of every output in the author's order.
    ///
    /// # Errors
    /// E0426 at the move that cannot be brought there; E0206 where a proof cannot hold what comes of it; E0425 for a
    /// fault of this module.
    pub fn new(author: &Proved) -> Result<Self, Vec<Finding>> {
        Self::within(author, LIMIT)
    }

    /// [`Self::new`] with so many messages and moves at most.
    #[doc(hidden)]
    pub fn within(author: &Proved, limit: usize) -> Result<Self, Vec<Finding>> {
        stage("messages", || Self::made(author, limit))
    }

    fn made(author: &Proved, limit: usize) -> Result<Self, Vec<Finding>> {
        let joined = join(author.schedule());
        let order = in_order(&joined)?;
        let mut acts = Acts::new(&joined, &order, limit).map_err(|finding| vec![finding])?;
        let tables = acts.tables(&joined);
        let modes = &[Mode::OutOfPlace, Mode::InPlace][..=usize::from(author.proof().in_place)];
        levels::sort(&mut acts, &tables, modes)
            .map_err(|cells| vec![crate::verify::too_fine(cells)])?;
        let windows = Windows::new(&tables, &acts, modes)
            .map_err(|cells| vec![crate::verify::too_fine(cells)])?;
        let (schedule, actions) = form::write(tables, &acts, &windows);
        let messages = acts.messages;

        let wrong = |at: SpanId, what: String| {
            let name = &author.schedule().algorithm;
            let what = format!("two-sided form of {name}: {what}");
            vec![
                Finding::new(Code::Unproved, at, what)
                    .note("this is a fault of the compiler, not of the program"),
            ]
        };
        check::check(&schedule, &messages, &actions, modes)
            .map_err(|(at, what)| wrong(at, what))?;
        let proved = Proved::new(schedule).map_err(|findings| match findings.first() {
            Some(first) => wrong(first.at, format!("{} [{}]", first.title, first.code)),
            None => wrong(SpanId(0), "it is refused".into()),
        })?;
        let (theirs, ours) = (author.proof(), proved.proof());
        if ours.in_place != theirs.in_place {
            return Err(wrong(
                SpanId(0),
                "it runs in place, or not, where the author's does not".into(),
            ));
        }
        if let Some(finding) = ours.one_mode.as_ref().filter(|_| theirs.one_mode.is_none()) {
            let what = "ranks may no longer choose whether they run in place".to_owned();
            return Err(wrong(finding.at, what));
        }
        if let Some((rank, end)) = theirs.orders.differs(&ours.orders) {
            let what = format!(
                "what ends at {end} of the output of rank {rank} is reduced in another order"
            );
            return Err(wrong(SpanId(0), what));
        }
        Ok(Self { proved, messages, actions })
    }

    /// The schedule in normal form: every move between ranks is a pull by the receiver between two signals, *sent*
    /// and *taken*.
    pub fn schedule(&self) -> &Arc<Schedule> {
        self.proved.schedule()
    }

    /// The proof of [`Self::schedule`]: after which of its moves averages divide, and whether it runs in place.
    pub fn proof(&self) -> &Arc<Proof> {
        self.proved.proof()
    }

    /// [`Self::schedule`] with its proof, for ranks that each call by themselves.
    pub fn proved(&self) -> &Proved {
        &self.proved
    }

    /// All messages. Those from one rank to another begin in this order at both ends, in whatever lanes they are.
    pub fn messages(&self) -> &[Message] {
        &self.messages
    }

    /// The message with the number `id`.
    pub fn message(&self, id: MessageId) -> &Message {
        &self.messages[id.0 as usize]
    }

    /// What `rank` does.
    pub fn actions(&self, rank: RankId) -> &[Action] {
        &self.actions[rank.index()]
    }
}
