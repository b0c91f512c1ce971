//! Checks the facts about actions that the proof of the normal form does not see: that the actions are those of the
//! proved schedule, that each message begins and ends once at both ends and in one order, that memory is private, and
//! that no action touches a region while a message is on its way from or to it.

use rustc_hash::FxHashMap;

use super::memory::{Followed, FollowedForm, FormMemory};
use super::{Action, Message, MessageId};
use crate::ids::{LaneId, OpId, RankId, RegionId, SpanId};
use crate::schedule::lengths::{self, Lengths};
use crate::schedule::{Channel, OpKind, Operand, Schedule, SignalKind};

/// A fault, with the statement that it belongs to.
pub(super) type Wrong = (SpanId, String);

/// Sender and receiver, and the lane if the order is that of a lane.
type Ends = (RankId, RankId, Option<LaneId>);

/// The messages of each pair of ranks, or of each lane of a pair, in the order of one kind of action.
type Sequences = FxHashMap<Ends, Vec<MessageId>>;

/// Checks the actions of all ranks, for each memory layout in `modes`.
pub(super) fn check(
    of: &FollowedForm<'_>,
    messages: &[Message],
    actions: &[Vec<Action>],
) -> Result<(), Wrong> {
    let form = of.tables;
    messages.iter().try_for_each(|message| equal_ends(form, message))?;
    order(of.ranks, messages, actions)?;
    (0..)
        .map(RankId)
        .zip(actions)
        .try_for_each(|(rank, actions)| ops(of, messages, rank, actions))?;
    for mode in of.modes {
        let memory =
            of.in_mode(*mode).map_err(|_| (SpanId(0), "its cells have no numbers".into()))?;
        let mut flight = Flight { form, messages, of: vec![0; memory.size as usize], memory };
        actions.iter().flatten().try_for_each(|action| flight.action(*action))?;
    }
    Ok(())
}

/// Checks that the two ends of a message are different ranks with equally many elements at every count.
fn equal_ends(form: &Schedule, message: &Message) -> Result<(), Wrong> {
    let interval = |region: RegionId| {
        let region = form.regions[region.index()];
        (region.lo, region.hi)
    };
    if message.from == message.to {
        return Err((message.at, format!("rank {} sends to itself", message.from)));
    }
    match lengths::compare(interval(message.source), interval(message.target), form.multiple) {
        Lengths::Equal => Ok(()),
        _ => Err((message.at, "a message has other elements at its ends".into())),
    }
}

/// Checks that each message begins and ends once at each end, at the right rank, and that both ends have the same
/// orders: the order in which messages of two ranks begin, and the order in which messages of a lane end.
fn order(ranks: Followed<'_>, messages: &[Message], actions: &[Vec<Action>]) -> Result<(), Wrong> {
    let mut seen = vec![0_u8; messages.len()];
    let (mut begun, mut ended) = (
        [Sequences::default(), Sequences::default()],
        [Sequences::default(), Sequences::default()],
    );
    for (rank, actions) in (0..).map(RankId).zip(actions) {
        for action in actions {
            let (id, end, bit) = match *action {
                Action::Send(id) => (id, 0, 1),
                Action::Sent(id) => (id, 0, 2),
                Action::Receive(id) => (id, 1, 4),
                Action::Received(id) => (id, 1, 8),
                Action::Move(_) => continue,
            };
            let message = &messages[id.index()];
            let seen = &mut seen[id.index()];
            let begins = bit & 5 != 0;
            let of = ranks.home([message.from, message.to][end]);
            // A message ends only after it has begun, and no action is done twice.
            if of != rank || *seen & bit != 0 || !begins && *seen & (bit >> 1) == 0 {
                return Err((message.at, format!("rank {rank} does {action:?} out of turn")));
            }
            *seen |= bit;
            let (all, lane) =
                if begins { (&mut begun, None) } else { (&mut ended, Some(message.lane)) };
            let (from, to) = ranks.pair(message.from, message.to);
            all[end].entry((from, to, lane)).or_default().push(id);
        }
    }
    if let Some(at) = seen.iter().position(|seen| *seen != 15) {
        return Err((messages[at].at, format!("message {at} does not begin and end at both ends")));
    }
    for [sent, received] in [begun, ended] {
        if let Some((ends, ids)) = sent.iter().find(|(ends, ids)| received.get(ends) != Some(ids)) {
            let (from, to, _) = ends;
            let at = messages[ids[0].index()].at;
            return Err((at, format!("messages from rank {from} to rank {to} cross each other")));
        }
    }
    Ok(())
}

/// Checks that the ops of a rank are those of its actions, in order, and that they touch only its own memory, except
/// for the pull where a receive ends.
fn ops(
    of: &FollowedForm<'_>,
    messages: &[Message],
    rank: RankId,
    actions: &[Action],
) -> Result<(), Wrong> {
    let (form, ranks) = (of.tables, of.ranks);
    let stream = form.streams[rank.index()];
    let mut ops = (stream.first.0..stream.first.0 + stream.len).map(OpId);
    // Returns the next op if it is of this kind.
    let mut next = |kind| ops.next().filter(|at| form.op(*at).kind == kind);
    for action in actions {
        let message = |id: MessageId| messages[id.index()];
        let signal = |at: Option<OpId>, kind, (id, (from, to)): (MessageId, (RankId, RankId))| {
            let lane = message(id).lane;
            let (from, to) = if kind == SignalKind::Data { (from, to) } else { (to, from) };
            at.is_some_and(|at| *form.channel(form.op(at)) == Channel { from, to, kind, lane })
        };
        let (same, at) = match *action {
            Action::Receive(_) => continue,
            Action::Send(id) => {
                let image = (id, ranks.sent(&message(id)));
                (signal(next(OpKind::Post), SignalKind::Data, image), message(id).at)
            }
            Action::Sent(id) => {
                let image = (id, ranks.sent(&message(id)));
                (signal(next(OpKind::Wait), SignalKind::Ack, image), message(id).at)
            }
            Action::Received(id) => {
                let image = (id, ranks.received(&message(id)));
                let waits = signal(next(OpKind::Wait), SignalKind::Data, image);
                let pulls = next(OpKind::Move).is_some_and(|at| {
                    let op = form.op(at);
                    let Message { from, to, source, target, .. } = message(id);
                    form.srcs(op) == [Operand { rank: from, region: source }]
                        && form.dsts(op) == [Operand { rank: to, region: target }]
                });
                let posts = signal(next(OpKind::Post), SignalKind::Ack, image);
                (waits && pulls && posts, message(id).at)
            }
            Action::Move(id) => {
                let op = form.op(id);
                let own = |operand: &Operand| operand.rank == rank;
                let same = next(OpKind::Move) == Some(id);
                (same && form.srcs(op).iter().chain(form.dsts(op)).all(own), op.at)
            }
        };
        if !same {
            return Err((at, format!("rank {rank} does {action:?}, and its schedule does not")));
        }
    }
    match ops.next() {
        None => Ok(()),
        Some(at) => Err((form.op(at).at, format!("rank {rank} does less than its schedule"))),
    }
}

/// Marks the cells that a receive is under way to.
const RECEIVING: u32 = u32::MAX;

/// Memory, with the messages that are on their way from it and to it.
struct Flight<'a> {
    form: &'a Schedule,
    messages: &'a [Message],
    memory: FormMemory<'a>,
    /// The number of sends that are under way from each cell, or [`RECEIVING`].
    of: Vec<u32>,
}

impl Flight<'_> {
    fn action(&mut self, action: Action) -> Result<(), Wrong> {
        let message = |id: MessageId| self.messages[id.index()];
        match action {
            Action::Send(id) => {
                let Message { from, source, at, .. } = message(id);
                let source = Operand { rank: from, region: source };
                self.read(source, at)?;
                self.each(source, |of| *of += 1);
            }
            Action::Sent(id) => {
                let Message { from, source, .. } = message(id);
                self.each(Operand { rank: from, region: source }, |of| *of -= 1);
            }
            Action::Receive(id) => {
                let Message { to, target, at, .. } = message(id);
                let target = Operand { rank: to, region: target };
                self.write(target, at)?;
                self.each(target, |of| *of = RECEIVING);
            }
            Action::Received(id) => {
                let Message { to, target, .. } = message(id);
                self.each(Operand { rank: to, region: target }, |of| *of = 0);
            }
            Action::Move(id) => {
                let op = self.form.op(id);
                let (srcs, dsts) = (self.form.srcs(op), self.form.dsts(op));
                if let ([src], [dst]) = (srcs, dsts)
                    && self.memory.of(*src) == self.memory.of(*dst)
                {
                    return Ok(());
                }
                srcs.iter().try_for_each(|src| self.read(*src, op.at))?;
                dsts.iter().try_for_each(|dst| self.write(*dst, op.at))?;
            }
        }
        Ok(())
    }

    /// Changes the mark of each cell of an operand.
    fn each(&mut self, operand: Operand, change: impl Fn(&mut u32)) {
        for cells in self.memory.of(operand) {
            self.of[cells.start as usize..cells.end as usize].iter_mut().for_each(&change);
        }
    }

    /// Whether a cell of an operand has such a mark.
    fn any(&self, operand: Operand, mark: impl Fn(u32) -> bool) -> bool {
        let cells = self.memory.of(operand).into_iter().flatten();
        cells.into_iter().any(|cell| mark(self.of[cell as usize]))
    }

    fn read(&self, operand: Operand, at: SpanId) -> Result<(), Wrong> {
        let wrong = self.any(operand, |of| of == RECEIVING);
        self.told(wrong, operand, at, "reads what is not received yet")
    }

    fn write(&self, operand: Operand, at: SpanId) -> Result<(), Wrong> {
        let busy = self.any(operand, |of| of != 0);
        self.told(busy, operand, at, "writes what is under way")
    }

    fn told(&self, wrong: bool, operand: Operand, at: SpanId, what: &str) -> Result<(), Wrong> {
        let name = || self.form.buffer_name(self.form.region(operand).buffer);
        if wrong { Err((at, format!("rank {} {what}: {}", operand.rank, name()))) } else { Ok(()) }
    }
}
