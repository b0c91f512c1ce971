//! Writes the acts with their windows as the actions of each rank, and as the schedule that is proved.

use super::acts::{Act, Acts};
use super::memory::{Followed, FollowedForm};
use super::windows::{Place, Windows, at};
use super::{Action, Message, MessageId};
use crate::ids::{OpId, RankId};
use crate::schedule::interner::Interner;
use crate::schedule::{Channel, Op, OpKind, Operand, Schedule, SignalKind, Stream};

/// An action with its sort key: its place, receives before sends, and its message.
type Placed = ((Place, bool, u32), Action);

/// Returns the actions of each followed rank. A move has the number of its act, from 1, until the schedule gives it one.
pub(super) fn actions(of: &FollowedForm<'_>, acts: &Acts, windows: &Windows) -> Vec<Vec<Action>> {
    let ranks = of.ranks;
    let mut placed: Vec<Vec<Placed>> = vec![Vec::new(); ranks.many(of.tables.nranks)];
    let home = |rank| ranks.home(rank).index();
    for (number, (level, act)) in (1..).zip(acts.levels.iter().zip(&acts.list)) {
        match act {
            Act::Move(rank, _) => {
                let action = Action::Move(OpId(number));
                placed[home(*rank)].push(((at(*level), false, number), action));
            }
            Act::Message(id) => {
                let Message { from, to, .. } = acts.messages[*id as usize];
                let (send, receive) = (windows.sends[*id as usize], windows.receives[*id as usize]);
                let message = MessageId(*id);
                placed[home(from)].extend([
                    ((send.begins, true, *id), Action::Send(message)),
                    ((send.ends, true, *id), Action::Sent(message)),
                ]);
                placed[home(to)].extend([
                    ((receive.begins, false, *id), Action::Receive(message)),
                    ((receive.ends, false, *id), Action::Received(message)),
                ]);
            }
        }
    }
    let sorted = placed.into_iter().map(|mut placed| {
        placed.sort_unstable_by_key(|(key, _)| *key);
        placed.into_iter().map(|(_, action)| action).collect()
    });
    sorted.collect()
}

/// Completes `form`, a schedule without ops, with the ops of `actions`; moves get their op numbers.
pub(super) fn write(
    form: &mut Schedule,
    ranks: Followed<'_>,
    acts: &Acts,
    actions: &mut [Vec<Action>],
) {
    let (messages, channels) = (&acts.messages, Interner::default());
    let mut writer = FormWriter { form, ranks, messages, channels };
    for (rank, actions) in (0..).map(RankId).zip(actions) {
        let first = OpId(writer.form.ops.len() as u32);
        for action in actions {
            if let Action::Move(number) = action
                && let Act::Move(_, op) = acts.list[number.index() - 1]
            {
                *number = OpId(writer.form.ops.len() as u32);
                writer.form.ops.push(op);
            } else {
                writer.message(*action);
            }
        }
        let len = writer.form.ops.len() as u32 - first.0;
        writer.form.streams.push(Stream { rank, index: 0, first, len });
    }
    let channels = writer.channels.items;
    form.channels = channels;
}

/// The schedule that is being written.
struct FormWriter<'a> {
    form: &'a mut Schedule,
    ranks: Followed<'a>,
    messages: &'a [Message],
    channels: Interner<Channel>,
}

impl<'a> FormWriter<'a> {
    /// Writes the ops of an action with a message.
    fn message(&mut self, action: Action) {
        match action {
            Action::Send(id) => self.signal(OpKind::Post, SignalKind::Data, id, Followed::sent),
            Action::Sent(id) => self.signal(OpKind::Wait, SignalKind::Ack, id, Followed::sent),
            Action::Received(id) => {
                self.signal(OpKind::Wait, SignalKind::Data, id, Followed::received);
                let Message { from, to, source, target, at, .. } = self.messages[id.index()];
                let arg = self.form.operands.len() as u32;
                self.form.operands.extend([
                    Operand { rank: from, region: source },
                    Operand { rank: to, region: target },
                ]);
                self.form.ops.push(Op { srcs: 1, dsts: 1, ..Op::new(OpKind::Move, at, arg) });
                self.signal(OpKind::Post, SignalKind::Ack, id, Followed::received);
            }
            // The pull stands where the receive ends. That no op touches its target while it receives is checked
            // separately.
            Action::Receive(_) | Action::Move(_) => {}
        }
    }

    /// Writes a signal of a message: *sent* is a data signal from the sender, *taken* an acknowledgement from the
    /// receiver.
    fn signal(
        &mut self,
        op_kind: OpKind,
        kind: SignalKind,
        id: MessageId,
        image: fn(Followed<'a>, &Message) -> (RankId, RankId),
    ) {
        let message = &self.messages[id.index()];
        let (Message { lane, at, .. }, (from, to)) = (*message, image(self.ranks, message));
        let (from, to) = if kind == SignalKind::Data { (from, to) } else { (to, from) };
        let channel = self.channels.intern(Channel { from, to, kind, lane });
        self.form.ops.push(Op::new(op_kind, at, channel));
    }
}
