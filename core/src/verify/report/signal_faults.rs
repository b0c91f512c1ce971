//! The findings of signals: cycles of waits, posts and waits without a partner, and streams that share a signal.

use std::collections::BTreeSet;

use super::{LISTED, Reporter, table};
use crate::diagnostics::{Code, Finding, NamedOp};
use crate::ids::{OpId, SpanId};
use crate::schedule::legality::Illegal;
use crate::schedule::{Channel, OpKind, SignalKind};
use crate::units::{count, plural};
use crate::verify::Depth;

impl Reporter<'_> {
    /// Returns the finding of a deadlock. `cycle` holds each wait with the post that would meet it; `behind` are the
    /// other waits that never end.
    pub(in crate::verify) fn deadlock(&self, cycle: &[(OpId, OpId)], behind: &[OpId]) -> Finding {
        let rank = |op| self.rank(op);
        let (wait, post) = cycle[0];
        let title = match cycle {
            [(one, _)] => {
                format!("deadlock: the streams of rank {} wait for each other", rank(*one))
            }
            _ => format!("deadlock: {} wait for each other in a cycle", self.ranks_of(cycle)),
        };
        let mut finding = Finding::new(Code::Deadlock, self.at(wait), title)
            .label(format!("rank {} never gets past this wait", rank(wait)))
            .note(self.who_waits(cycle, behind))
            .help("post before you wait: on every rank, the signal that the peer waits for comes first");
        finding.ops.extend(self.waiting(cycle, behind));
        if self.at(post) != self.at(wait) {
            let label = format!("rank {} posts it only here, after its own wait", rank(post));
            finding.others.push((self.at(post), label));
        }
        finding
    }

    /// Returns the finding of a cycle that begins with a wait for a free slot; `depth` is the depth of the link, and
    /// the depth that it needs.
    pub(in crate::verify) fn too_shallow(
        &self,
        cycle: &[(OpId, OpId)],
        behind: &[OpId],
        depth: Depth,
    ) -> Finding {
        let Depth { credits, needed } = depth;
        let (wait, _) = cycle[0];
        let channel = self.schedule.channel(self.schedule.op(wait));
        let (sender, receiver) = (channel.to, channel.from);
        let title =
            format!("the fifo is too shallow: {} wait for each other", self.ranks_of(cycle));
        let credits = count(credits, "credit");
        let mut finding = Finding::new(Code::FifoTooShallow, self.at(wait), title)
            .label(format!("rank {sender} never gets a free slot here"))
            .note(format!(
                "the link from rank {sender} to rank {receiver} has {credits}, and what was \
                 sent with them has not been received"
            ))
            .note(self.who_waits(cycle, behind))
            .help(format!(
                "{needed} credits are the fewest with which this ends: `credits = {needed}`, or receive \
                 before you send more"
            ));
        finding.ops.extend(self.waiting(cycle, behind));
        // The fifo's declaration collects the last credits.
        let ops = self.schedule.ops.iter().rev();
        let mut same =
            ops.filter(|op| op.kind == OpKind::Wait && op.arg == self.schedule.op(wait).arg);
        if let Some(at) = same.next().map(|op| op.at).filter(|at| *at != self.at(wait)) {
            finding.others.push((at, format!("{credits} a link")));
        }
        finding
    }

    /// Returns the ranks of a cycle, such as `ranks 0, 1, 2`.
    fn ranks_of(&self, cycle: &[(OpId, OpId)]) -> String {
        let names: Vec<_> = cycle.iter().map(|(wait, _)| self.rank(*wait).to_string()).collect();
        format!("ranks {}", names.join(", "))
    }

    fn who_waits(&self, cycle: &[(OpId, OpId)], behind: &[OpId]) -> String {
        let waits = |wait| format!("{} waits for {}", self.place(wait), self.signal(wait));
        let lines: Vec<_> = cycle
            .iter()
            .map(|(wait, post)| format!("{}, which {}", waits(*wait), self.posts(*post)))
            .chain(behind.iter().map(|wait| waits(*wait)))
            .collect();
        table("who waits for whom", &lines)
    }

    /// Returns a post in words, such as `rank 2 posts at line 11`.
    fn posts(&self, post: OpId) -> String {
        format!("rank {} posts at line {}", self.rank(post), self.line(post))
    }

    /// Returns the ops that [`Self::who_waits`] names.
    fn waiting(&self, cycle: &[(OpId, OpId)], behind: &[OpId]) -> Vec<NamedOp> {
        let wait = |op: OpId| self.named(op, self.place(op));
        let both = |(op, post): &(OpId, OpId)| [wait(*op), self.named(*post, self.posts(*post))];
        cycle.iter().flat_map(both).chain(behind.iter().copied().map(wait)).take(LISTED).collect()
    }

    pub(in crate::verify) fn unmatched_wait(&self, op: OpId) -> Finding {
        let channel = self.schedule.channel(self.schedule.op(op));
        let Channel { from, to, kind, .. } = *channel;
        let sent = if kind == SignalKind::Tail { "sent" } else { "posted" };
        let help = match kind {
            SignalKind::Head => {
                format!("rank {from} must receive from rank {to} as often as rank {to} sends to it")
            }
            SignalKind::Tail => {
                format!("rank {from} must send to rank {to} as often as rank {to} receives from it")
            }
            SignalKind::Local => {
                format!("rank {from} must post it in that stream, before it waits for this one")
            }
            _ => {
                let post = if kind == SignalKind::Ack { "TxAck" } else { "TxDataSignal" };
                format!("rank {from} must post one `{post}` to rank {to} for each wait")
            }
        };
        let finding = Finding::new(
            Code::UnmatchedWait,
            self.at(op),
            format!("rank {to} waits for {} that is never {sent}", self.signal(op)),
        )
        .label("waits for ever")
        .note(self.place(op));
        self.or_in_another_lane(self.naming(finding, [op]), op, help)
    }

    /// Adds the help, unless the partner of `op` is in another lane: then adds this fact and a correction for it.
    fn or_in_another_lane(&self, finding: Finding, op: OpId, help: String) -> Finding {
        let lonely = self.schedule.op(op);
        let own = *self.schedule.channel(lonely);
        let missing = if lonely.kind == OpKind::Wait { OpKind::Post } else { OpKind::Wait };
        // The k-th wait takes the k-th post, so the last ops are left over. In its own lane the op has no partner.
        let Some(other) = self.index().spare(&own, missing).map(|at| self.schedule.op(at)) else {
            return finding.help(help);
        };
        let lane = |channel: &Channel| match &*self.schedule.lanes[channel.lane.index()] {
            [] => "outside every `parallel`".to_owned(),
            values => {
                let values: Vec<_> = values.iter().map(ToString::to_string).collect();
                format!("in lane {} of `parallel`", values.join(", "))
            }
        };
        let (there, here) =
            if missing == OpKind::Post { ("post", "wait") } else { ("wait", "post") };
        finding
            .note(format!(
                "the {there} at line {} is {}, and this {here} is {}",
                self.schedule.location(other.at).line,
                lane(self.schedule.channel(other)),
                lane(&own)
            ))
            .note("a signal meets only signals of its own lane")
            .help("put the post and its wait into the same lane, or both outside every `parallel`")
    }

    /// Returns the tally of a channel, such as `in all: 2 posts at line 17, 4 waits at lines 11 and 18`.
    pub(in crate::verify) fn tally(&self, channel: u32) -> String {
        let ends = [(OpKind::Post, "post"), (OpKind::Wait, "wait")].map(|(kind, name)| {
            let ops = self.index().on(self.schedule, channel, kind);
            let all: Vec<u32> = ops.map(|at| self.line(at)).collect();
            let lines: BTreeSet<u32> = all.iter().copied().collect();
            let lines: Vec<_> = lines.iter().take(LISTED).map(ToString::to_string).collect();
            let listed = match &lines[..] {
                [first @ .., last] if !first.is_empty() => {
                    format!("{} and {last}", first.join(", "))
                }
                lines => lines.concat(),
            };
            let n = all.len();
            let at = match lines.len() {
                0 => String::new(),
                m => format!(" at line{} {listed}", plural(m)),
            };
            format!("{}{at}", count(n, name))
        });
        format!("between these two ranks: {}", ends.join(", "))
    }

    pub(in crate::verify) fn left_over(&self, op: OpId) -> Finding {
        let channel = self.schedule.channel(self.schedule.op(op));
        let Channel { from, to, kind, .. } = *channel;
        let help = match kind {
            SignalKind::Head => format!("rank {to} must take each credit before it ends"),
            SignalKind::Tail => {
                format!(
                    "rank {to} must receive from rank {from} as often as rank {from} sends to it"
                )
            }
            SignalKind::Local => format!("rank {to} must wait for it in that stream"),
            _ => {
                let wait = if kind == SignalKind::Ack { "RxAck" } else { "RxDataSignal" };
                format!("rank {to} must wait for it: `{wait}` from rank {from}")
            }
        };
        let finding = Finding::new(
            Code::LeftOverSignal,
            self.at(op),
            match kind {
                SignalKind::Tail => {
                    format!("rank {from} sends {} that nobody receives", self.signal(op))
                }
                _ => format!("rank {from} posts {} that nobody waits for", self.signal(op)),
            },
        )
        .label("left over at the end of the run")
        .note(self.place(op))
        .note("the next run would take it for its own, and run ahead of its peer");
        self.or_in_another_lane(self.naming(finding, [op]), op, help)
    }

    pub(in crate::verify) fn shared_signal(&self, first: OpId, second: OpId) -> Finding {
        let mut finding = Finding::new(
            Code::SharedSignal,
            self.at(second),
            format!("two streams of rank {} share {}", self.rank(second), self.signal(second)),
        )
        .label("this stream and another are not ordered")
        .note(format!("one at {}, one at {}", self.place(first), self.place(second)))
        .note("which of them meets which signal would depend on time")
        .help(if self.signals.link_shared {
            "where streams share the flags of a link, let one of them signal at a time, or `require` more ranks"
        } else {
            "let the streams differ in the values of their `parallel` variables: those name the lane"
        });
        if self.at(first) != self.at(second) {
            finding.others.push((self.at(first), "and this one".to_owned()));
        }
        self.naming(finding, [first, second])
    }

    /// Returns the finding of a lost signal. `across`: the first post is of the run before.
    pub(in crate::verify) fn lost_signal(
        &self,
        first: OpId,
        second: OpId,
        across: bool,
    ) -> Finding {
        let channel = self.schedule.channel(self.schedule.op(second));
        let (from, to) = (channel.from, channel.to);
        let run = if across { " of the run before" } else { "" };
        let title =
            format!("rank {from} may post {} again before it was waited for", self.signal(second));
        let mut finding = Finding::new(Code::LostSignal, self.at(second), title)
            .label("lost on a flag that is still up")
            .note(format!("{}, and before it {}{run}", self.place(second), self.place(first)))
            .note("a binary signal is a flag: two posts before a wait count as one")
            .note(format!(
                "the missing edge: from rank {to}'s wait for the first to rank {from} before the second"
            ))
            .help(format!(
                "let rank {from} wait for an answer of rank {to} between the two, or give each stream a flag of its own"
            ));
        if self.at(first) != self.at(second) {
            finding.others.push((self.at(first), format!("the first one{run}")));
        }
        self.naming(finding, [second, first])
    }

    /// Returns the finding of a broken rule, under the code that the builder would give it.
    pub(in crate::verify) fn illegal(&self, illegal: &Illegal) -> Finding {
        let code = match illegal.rule {
            "input" => Code::InputWritten,
            "local" => Code::NoLocalOperand,
            "lengths" => Code::LengthMismatch,
            "overlap" => Code::RepeatedDestination,
            "signal ends" => Code::SelfSignal,
            _ => Code::OutOfBounds,
        };
        let title = format!("this breaks the rule `{}`: {}", illegal.rule, illegal.demands);
        let Some(at) = illegal.at else { return Finding::new(code, SpanId(0), title) };
        let finding =
            Finding::new(code, self.at(at), title).label("broken here").note(self.place(at));
        let finding = self.naming(finding, [at]);
        if illegal.rule != "bounds" && code == Code::OutOfBounds {
            return finding;
        }
        let op = self.schedule.op(at);
        let operands = self.schedule.srcs(op).iter().chain(self.schedule.dsts(op));
        let names: Vec<_> = operands.map(|operand| self.operand(*operand)).collect();
        finding.note(format!("its operands are {}", names.join(", ")))
    }
}
