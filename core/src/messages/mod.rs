//! Two-sided form: a proved schedule as sends and receives, for transports that cannot read another rank's memory.
//!
//! Every move between ranks becomes one message or more. The rank that owns the source sends as soon as the data is
//! there, and the rank that owns the destination receives. A fold over a peer's region receives into scratch first.
//! Signals that messages imply are dropped.

mod acts;
mod check;
mod form;
mod groups;
mod levels;
mod memory;
mod message_text;
mod part;
mod slots;
mod split_messages;
mod windows;

use std::sync::Arc;

use crate::diagnostics::{Code, Finding};
use crate::ids::{LaneId, OpId, RankId, RegionId, SpanId};
use crate::layout::{Algorithm, Limits, one_rank};
use crate::optimize::join;
use crate::schedule::{OpKind, Schedule};
use crate::stages::stage;
use crate::verify::layout::BufferMode;
use crate::verify::{Proof, Proved, in_order, too_fine};
use acts::Acts;
use check::Wrong;
pub use groups::{Group, GroupStep, Groups};
use memory::{Followed, FollowedForm, FormCells};
pub use message_text::print;
pub use part::{FormPart, RankForm, Unformed};
use windows::Windows;

/// The most messages and moves of a schedule in this form.
const LIMIT: usize = 1 << 28;

/// Limits for an author's schedule whose messages are to be written: each op becomes several ops, which are all
/// proved, and lines of text.
const WRITTEN: Limits = Limits { ops: 1 << 24, ..Limits::FULL };

/// A schedule in two-sided form.
#[derive(Clone, Debug)]
pub struct TwoSided {
    proved: Proved,
    messages: Vec<Message>,
    actions: Vec<Vec<Action>>,
}

/// A message from one rank to another. In each lane the receiver receives the messages of a sender in the order in
/// which they are sent.
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
    /// The statement that the message comes from.
    pub at: SpanId,
}

/// The number of a message in [`TwoSided::messages`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MessageId(pub u32);

impl MessageId {
    /// Its position among the messages.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// An action of a rank. A rank has one thread, which does its actions one after another.
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
    /// Brings an author's schedule into this form. The result is proved again, in place too if the author's schedule
    /// is, and reduces every piece of every output in the author's order.
    ///
    /// # Errors
    /// E0426 at the move that has no two-sided form; E0206 where a proof cannot hold the result; E0425 for a fault of
    /// this module.
    pub fn new(author: &Proved) -> Result<Self, Vec<Finding>> {
        Self::new_with(author, LIMIT, |_, _| ())
    }

    /// Returns the schedule of an algorithm whose messages are to be written. A schedule with more ops than can be
    /// written in seconds is refused before any proof.
    ///
    /// # Errors
    /// E0426 where it has too many ops; else those of [`Algorithm::schedule`].
    pub fn author<A: Algorithm + ?Sized>(
        algorithm: &A,
        nranks: u32,
    ) -> Result<Schedule, Vec<Finding>> {
        Self::author_within(algorithm, nranks, WRITTEN)
    }

    /// [`Self::author`] within other limits, for tests.
    #[doc(hidden)]
    pub fn author_within<A: Algorithm + ?Sized>(
        algorithm: &A,
        nranks: u32,
        limits: Limits,
    ) -> Result<Schedule, Vec<Finding>> {
        let too_many = limits.too_many_ops();
        algorithm.schedule_within(nranks, limits).map_err(|all| {
            let Some(first) = all.iter().find(|found| found.title == too_many) else { return all };
            let title = format!("{too_many}, which are not written as sends and receives");
            let finding = Finding::new(Code::NoTwoSidedForm, first.at, title)
                .help("use fewer ranks, or fewer and larger pieces");
            let own = one_rank(algorithm, nranks, RankId(0)).map_or(0, |own| {
                let ops = own.streams.iter().map(|s| &own.ops[s.first.index()..][..s.len as usize]);
                ops.flatten().filter(|op| op.kind == OpKind::Move && own.crosses(op)).count()
            });
            let what = format!("rank 0 alone has {own} moves between ranks, of {nranks} ranks");
            vec![finding.note(what)]
        })
    }

    /// Returns the form of an author's schedule. It is made once and kept beside the schedule; all clones share it.
    ///
    /// # Errors
    /// Those of [`Self::new`].
    pub fn for_author(author: &Proved) -> Result<Arc<Self>, Vec<Finding>> {
        if let Some(made) = author.keep(|kept: &mut Option<Arc<Self>>| kept.clone()) {
            return Ok(made);
        }
        let made = Arc::new(Self::new(author)?);
        Ok(author.keep(|kept: &mut Option<Arc<Self>>| kept.get_or_insert(made).clone()))
    }

    /// [`Self::new`] with at most `limit` messages and moves, and with a pass that goes wrong, for tests: `breaks`
    /// changes the operands of moves, and the actions of ranks. There a move has the number of its act, not of its
    /// op.
    #[doc(hidden)]
    pub fn new_with(
        author: &Proved,
        limit: usize,
        breaks: impl Fn(&mut Schedule, &mut [Vec<Action>]),
    ) -> Result<Self, Vec<Finding>> {
        stage("messages", || Self::made(author, limit, breaks))
    }

    fn made(
        author: &Proved,
        limit: usize,
        breaks: impl Fn(&mut Schedule, &mut [Vec<Action>]),
    ) -> Result<Self, Vec<Finding>> {
        let joined = join(author.schedule());
        let order = in_order(&joined)?;
        let mut acts = Acts::new(&joined, &order, joined.nranks, limit)?;
        let mut form = acts.tables(&joined);
        let modes = &BufferMode::BOTH[..=usize::from(author.proof().in_place)];
        let too_fine = |cells| vec![too_fine(cells)];
        let cells = FormCells::all(&form).map_err(too_fine)?;
        let of = FollowedForm { tables: &form, ranks: Followed::All, cells: &cells, modes };
        levels::sort(&mut acts, &of).map_err(too_fine)?;
        let windows = Windows::new(&of, &acts).map_err(too_fine)?;
        let mut actions = form::actions(&of, &acts, &windows);
        breaks(&mut form, &mut actions);
        form::write(&mut form, Followed::All, &acts, &mut actions);
        let messages = acts.messages;
        let cells = FormCells::all(&form).map_err(too_fine)?;
        let of = FollowedForm { tables: &form, ranks: Followed::All, cells: &cells, modes };
        check::check(&of, &messages, &actions)
            .and_then(|()| proved(author, form))
            .map(|proved| Self { proved, messages, actions })
            .map_err(|why| fault(&format!("two-sided form of {}", joined.algorithm), why))
    }

    /// The schedule in normal form: every move between ranks is a pull by the receiver between two signals, *sent*
    /// and *taken*.
    pub fn schedule(&self) -> &Arc<Schedule> {
        self.proved.schedule()
    }

    /// The proof of [`Self::schedule`]: the moves after which averages divide, and whether the schedule runs in
    /// place.
    pub fn proof(&self) -> &Arc<Proof> {
        self.proved.proof()
    }

    /// [`Self::schedule`] with its proof, for ranks that each call by themselves.
    pub fn schedule_with_proof(&self) -> &Proved {
        &self.proved
    }

    /// All messages. Messages from one rank to another begin in this order at both ends, in any lanes.
    pub fn messages(&self) -> &[Message] {
        &self.messages
    }

    /// The message with the number `id`.
    pub fn message(&self, id: MessageId) -> &Message {
        &self.messages[id.index()]
    }

    /// The actions of `rank`, in order.
    pub fn actions(&self, rank: RankId) -> &[Action] {
        &self.actions[rank.index()]
    }
}

/// Makes the finding for a fault in the form that this module made of an algorithm.
fn fault(made: &str, (at, why): Wrong) -> Vec<Finding> {
    let finding = Finding::new(Code::Unproved, at, format!("{made}: {why}"));
    vec![finding.note("this is a fault of the compiler, not of the program")]
}

/// Returns the normal form with its proof, if it keeps the promises of the author's schedule.
fn proved(author: &Proved, form: Schedule) -> Result<Proved, Wrong> {
    let proved = Proved::new(form).map_err(|findings| match findings.first() {
        Some(first) => (first.at, format!("{} [{}]", first.title, first.code)),
        None => (SpanId(0), "it is refused".into()),
    })?;
    let proved = proved.dividing_as(author.proof());
    let (theirs, ours) = (author.proof(), proved.proof());
    if let Some(finding) = ours.one_mode.as_ref().filter(|_| theirs.one_mode.is_none()) {
        let what = "ranks may no longer choose whether they run in place";
        return Err((finding.at, what.into()));
    }
    match theirs.orders.differs(&ours.orders) {
        None => Ok(proved),
        Some((rank, end)) => Err((
            SpanId(0),
            format!("what ends at {end} of the output of rank {rank} is reduced in another order"),
        )),
    }
}
