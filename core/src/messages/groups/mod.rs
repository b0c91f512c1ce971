//! The two-sided form in groups, for transports whose sends and receives end only together, as NCCL's do.
//!
//! A rank issues all sends and receives of a group at once, and goes on when the whole group has ended. There are no
//! tags: the k-th send from one rank to another meets the k-th receive there. So groups of several ranks could wait
//! for each other crosswise. They do not, because each message has one round at both of its ends: one more than the
//! highest round of a message that ends, at one of these ranks, before this message begins there. A group of a rank
//! is all its messages of a round. If all groups of the earlier rounds have ended, every rank comes to its group of
//! this round, where every message finds its other end; so these groups end, too. Rounds are as few as the windows of
//! the messages allow.

mod meets;

use super::{Action, MessageId, TwoSided, fault};
use crate::diagnostics::Finding;
use crate::ids::{OpId, RankId};
use crate::stages::stage;
use meets::{Windows, meets};

/// The steps of each rank, in order, where messages go in groups.
#[derive(Clone, Debug)]
pub struct Groups {
    of: Vec<Vec<GroupStep>>,
    rounds: u32,
}

/// A step of a rank, which ends before the next begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GroupStep {
    /// The rank sends and receives the messages of this group, and waits until they all have ended.
    Group(Group),
    /// The rank does a move of [`TwoSided::schedule`] whose operands are all its own.
    Move(OpId),
}

/// Sends and receives that a rank issues together, in the order in which messages of two ranks meet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Group {
    /// The messages that it sends.
    pub sends: Vec<MessageId>,
    /// The messages that it receives.
    pub receives: Vec<MessageId>,
}

impl Groups {
    /// Puts the messages of `form` into groups, and checks that groups cannot wait for each other in a cycle, that
    /// each send meets its receive, and that each group stands where its data is ready and its room is free.
    ///
    /// # Errors
    /// E0425 for a fault of this module.
    pub fn new(form: &TwoSided) -> Result<Self, Vec<Finding>> {
        Self::new_with(form, |_| ())
    }

    /// [`Self::new`] with groups that `breaks` makes wrong, for tests.
    #[doc(hidden)]
    pub fn new_with(
        form: &TwoSided,
        breaks: impl FnOnce(&mut [Vec<GroupStep>]),
    ) -> Result<Self, Vec<Finding>> {
        stage("groups", || {
            let windows = Windows::new(form);
            let rounds = rounds(form, &windows);
            let ranks = (0..form.schedule().nranks).map(RankId);
            let mut of: Vec<_> = ranks.map(|rank| steps(form, rank, &windows, &rounds)).collect();
            breaks(&mut of);
            meets(form, &windows, &of)
                .map_err(|why| fault(&format!("groups of {}", form.schedule().algorithm), why))?;
            Ok(Self { of, rounds: rounds.iter().copied().max().unwrap_or(0) })
        })
    }

    /// The steps of `rank`, in order.
    pub fn steps(&self, rank: RankId) -> &[GroupStep] {
        &self.of[rank.index()]
    }

    /// The number of rounds: the most groups that a rank can have.
    pub fn rounds(&self) -> u32 {
        self.rounds
    }
}

impl Group {
    /// All messages of the group: first the sends, then the receives.
    pub fn messages(&self) -> impl Iterator<Item = MessageId> + '_ {
        self.sends.iter().chain(&self.receives).copied()
    }
}

/// The maximum over a prefix of places, where numbers are set one by one.
struct Highest(Vec<u32>);

impl Highest {
    fn before(&self, place: u32) -> u32 {
        let (mut highest, mut at) = (0, place);
        while at > 0 {
            highest = highest.max(self.0[at as usize]);
            at &= at - 1;
        }
        highest
    }

    fn raise(&mut self, place: u32, number: u32) {
        let mut at = place as usize + 1;
        while at < self.0.len() {
            self.0[at] = self.0[at].max(number);
            at += at & at.wrapping_neg();
        }
    }
}

/// Returns the round of each message, from 1. A message that ends before another begins also comes before it in the
/// list. Of two messages from one rank to another the second begins later at both ends, so its round is no lower.
fn rounds(form: &TwoSided, windows: &Windows) -> Vec<u32> {
    let ranks = (0..form.schedule().nranks).map(RankId);
    let mut ended: Vec<Highest> =
        ranks.map(|rank| Highest(vec![0; form.actions(rank).len() + 1])).collect();
    let mut rounds = Vec::with_capacity(form.messages().len());
    for (at, message) in form.messages().iter().enumerate() {
        let ends = [(message.from, windows.sends[at]), (message.to, windows.receives[at])];
        let before = ends.map(|(rank, window)| ended[rank.index()].before(window.begins));
        let round = before[0].max(before[1]) + 1;
        for (rank, window) in ends {
            ended[rank.index()].raise(window.ends, round);
        }
        rounds.push(round);
    }
    rounds
}

/// Returns the steps of a rank. A group stands before the first end of a message of its round or of a later one: all
/// its messages have begun there, because none begins after a message of its round or of a later one has ended.
fn steps(form: &TwoSided, rank: RankId, windows: &Windows, rounds: &[u32]) -> Vec<GroupStep> {
    let actions = form.actions(rank);
    let mut messages: Vec<(u32, MessageId, u32)> = Vec::new();
    for action in actions {
        let (id, window) = match *action {
            Action::Send(id) => (id, windows.sends[id.index()]),
            Action::Receive(id) => (id, windows.receives[id.index()]),
            Action::Sent(_) | Action::Received(_) | Action::Move(_) => continue,
        };
        messages.push((rounds[id.index()], id, window.ends));
    }
    messages.sort_unstable();
    let mut groups: Vec<(u32, Group)> = Vec::new();
    for round in messages.chunk_by(|a, b| a.0 == b.0) {
        let (sends, receives) =
            round.iter().map(|(_, id, _)| *id).partition(|id| form.message(*id).from == rank);
        let first = round.iter().map(|(_, _, ends)| *ends).min().unwrap_or(u32::MAX);
        groups.push((first, Group { sends, receives }));
    }
    let mut first = u32::MAX;
    for group in groups.iter_mut().rev() {
        first = first.min(group.0);
        group.0 = first;
    }
    let mut groups = groups.into_iter().peekable();
    let mut steps = Vec::new();
    for (at, action) in (0..).zip(actions) {
        while let Some((_, group)) = groups.next_if(|(place, _)| *place == at) {
            steps.push(GroupStep::Group(group));
        }
        if let Action::Move(id) = action {
            steps.push(GroupStep::Move(*id));
        }
    }
    steps
}
