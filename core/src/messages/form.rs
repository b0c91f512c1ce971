//! The acts with their windows, written down: what each rank does, and the schedule that is proved.

use super::acts::{Act, Acts};
use super::windows::{Place, Windows, at};
use super::{Action, Message, MessageId};
use crate::ids::{OpId, RankId, SpanId};
use crate::schedule::interner::Interner;
use crate::schedule::{Channel, Op, OpKind, Operand, Schedule, SignalKind, Stream};

/// An action with its place. At one place receives begin before sends do, and messages go in their order.
type Placed = (Place, u8, u32, Step);

/// An action as long as moves have no number in the schedule.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    Receive(u32),
    Send(u32),
    Received(u32),
    Sent(u32),
    /// The move that is the act with that number.
    Move(u32),
}

/// Completes `tables`, a schedule without ops, and lists what each rank does.
pub(super) fn write(
    tables: Schedule,
    acts: &Acts,
    windows: &Windows,
) -> (Schedule, Vec<Vec<Action>>) {
    let mut writer = Writer {
        form: tables,
        messages: &acts.messages,
        channels: Interner::default(),
        actions: Vec::with_capacity(acts.acts.len()),
    };
    let mut all = Vec::with_capacity(writer.form.nranks as usize);
    for (rank, mut steps) in (0..).map(RankId).zip(steps(&writer.form, acts, windows)) {
        steps.sort_unstable();
        let first = OpId(writer.form.ops.len() as u32);
        for (_, _, _, step) in steps {
            writer.step(step, acts);
        }
        let len = writer.form.ops.len() as u32 - first.0;
        writer.form.streams.push(Stream { rank, index: 0, first, len });
        all.push(std::mem::take(&mut writer.actions));
    }
    let Writer { mut form, channels, .. } = writer;
    form.channels = channels.items;
    (form, all)
}

/// The steps of each rank, in no order yet.
fn steps(form: &Schedule, acts: &Acts, windows: &Windows) -> Vec<Vec<Placed>> {
    let mut steps: Vec<Vec<Placed>> = vec![Vec::new(); form.nranks as usize];
    for (number, (level, act)) in (1..).zip(acts.levels.iter().zip(&acts.acts)) {
        match act {
            Act::Move(rank, _) => {
                steps[rank.index()].push((at(*level), 0, number, Step::Move(number)));
            }
            Act::Message(id) => {
                let message = &acts.messages[*id as usize];
                let window = windows.sends[*id as usize];
                steps[message.from.index()].extend([
                    (window.begins, 1, *id, Step::Send(*id)),
                    (window.ends, 0, *id, Step::Sent(*id)),
                ]);
                let window = windows.receives[*id as usize];
                steps[message.to.index()].extend([
                    (window.begins, 0, *id, Step::Receive(*id)),
                    (window.ends, 0, *id, Step::Received(*id)),
                ]);
            }
        }
    }
    steps
}

/// The schedule in the making, and what the current rank does.
struct Writer<'a> {
    form: Schedule,
    messages: &'a [Message],
    channels: Interner<Channel>,
    actions: Vec<Action>,
}

impl Writer<'_> {
    fn step(&mut self, step: Step, acts: &Acts) {
        match step {
            Step::Receive(id) => self.actions.push(Action::Receive(MessageId(id))),
            Step::Send(id) => {
                self.actions.push(Action::Send(MessageId(id)));
                self.signal(OpKind::Post, SignalKind::Data, id);
            }
            Step::Received(id) => {
                self.actions.push(Action::Received(MessageId(id)));
                self.signal(OpKind::Wait, SignalKind::Data, id);
                let Message { from, to, source, target, at, .. } = self.messages[id as usize];
                let arg = self.form.operands.len() as u32;
                self.form.operands.extend([
                    Operand { rank: from, region: source },
                    Operand { rank: to, region: target },
                ]);
                self.op(Op { srcs: 1, dsts: 1, ..op(OpKind::Move, at, arg) });
                self.signal(OpKind::Post, SignalKind::Ack, id);
            }
            Step::Sent(id) => {
                self.actions.push(Action::Sent(MessageId(id)));
                self.signal(OpKind::Wait, SignalKind::Ack, id);
            }
            Step::Move(number) => {
                let Act::Move(_, moved) = acts.acts[number as usize - 1] else { return };
                self.actions.push(Action::Move(OpId(self.form.ops.len() as u32)));
                self.op(moved);
            }
        }
    }

    /// *Sent* is a data signal from the sender, *taken* an acknowledgement from the receiver.
    fn signal(&mut self, op_kind: OpKind, kind: SignalKind, id: u32) {
        let Message { from, to, lane, at, .. } = self.messages[id as usize];
        let (from, to) = if kind == SignalKind::Data { (from, to) } else { (to, from) };
        let channel = self.channels.intern(Channel { from, to, kind, lane });
        self.op(op(op_kind, at, channel));
    }

    fn op(&mut self, op: Op) {
        self.form.ops.push(op);
    }
}

fn op(kind: OpKind, at: SpanId, arg: u32) -> Op {
    Op { kind, srcs: 0, dsts: 0, finish: false, at, arg }
}
