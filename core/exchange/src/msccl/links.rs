//! Connections: one for each sender, receiver and channel. The k-th receive takes the data of the k-th send.

use std::collections::BTreeMap;

use super::Program;
use super::program::Block;
use super::report::span;
use roundelay_core::diagnostics::{Code, Diagnostic};
use roundelay_core::ids::{RankId, SpanId};

/// A connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Connection {
    pub(super) to: u32,
    pub(super) from: u32,
    pub(super) channel: u32,
}

impl Connection {
    /// Returns the connection into which a block sends.
    pub(super) fn out(rank: RankId, block: &Block) -> Option<Self> {
        Some(Self { from: rank.0, to: block.send?, channel: block.channel })
    }

    /// Returns the connection from which a block receives.
    pub(super) fn into(rank: RankId, block: &Block) -> Option<Self> {
        Some(Self { from: block.receive?, to: rank.0, channel: block.channel })
    }

    /// Returns one end of the connection for messages: its rank, the verb and preposition for its work, and its peer.
    fn end(self, sends: bool) -> (u32, &'static str, &'static str, u32) {
        if sends {
            (self.from, "send", "to", self.to)
        } else {
            (self.to, "receive", "from", self.from)
        }
    }
}

/// One end of a connection: its block, and the chunks that each step passes through it.
struct ConnectionEnd {
    block: u32,
    at: SpanId,
    steps: Vec<(u32, SpanId)>,
}

/// A block that names the peer of a connection and passes no data through it.
struct Idle {
    link: Connection,
    sends: bool,
    block: u32,
    at: SpanId,
}

/// The connections of a program, with the slots of each at its receiver.
pub(super) struct Links {
    first: BTreeMap<Connection, u32>,
    slots: u32,
    widest: u32,
}

impl Links {
    /// Returns the connections of all ranks.
    ///
    /// # Errors
    /// E0310 if two blocks use one end, or if one block uses it and another names its peer; E0208 if a send and its
    /// receive have different lengths.
    pub(super) fn new(program: &Program) -> Result<Self, Vec<Diagnostic>> {
        let mut ends: [BTreeMap<Connection, ConnectionEnd>; 2] = Default::default();
        let (mut wrong, mut idle) = (Vec::new(), Vec::new());
        for (rank, gpu) in (0..).map(RankId).zip(&program.gpus) {
            for (id, block) in (0..).zip(&gpu.blocks) {
                for (side, ends) in ends.iter_mut().enumerate() {
                    let sends = side == 0;
                    let link = if sends {
                        Connection::out(rank, block)
                    } else {
                        Connection::into(rank, block)
                    };
                    let Some(link) = link else { continue };
                    let Some(end) = ConnectionEnd::new(id, block, sends) else {
                        idle.push(Idle { link, sends, block: id, at: block.at });
                        continue;
                    };
                    match ends.get(&link) {
                        Some(other) => wrong.push(shared(link, other, &end, sends)),
                        None => {
                            ends.insert(link, end);
                        }
                    }
                }
            }
        }
        // After all ends are known: a busy block may follow an idle one.
        for idle in idle {
            let busy = ends[usize::from(!idle.sends)].get(&idle.link);
            wrong.extend(busy.map(|busy| idle.beside(busy)));
        }
        let [sends, receives] = ends;
        for (link, send) in &sends {
            let receives = receives.get(link).map_or(&[][..], |end| &end.steps[..]);
            wrong.extend(unequal(program, *link, &send.steps, receives));
        }
        if !wrong.is_empty() {
            return Err(wrong);
        }
        let all = sends.values().chain(receives.values()).flat_map(|end| &end.steps);
        let widest = all.map(|(count, _)| *count).max().unwrap_or(0);
        let slots = program.header.protocol.slots();
        let (mut first, mut taken) = (BTreeMap::new(), BTreeMap::new());
        // A send without a receiver, and a receive without a sender, have slots as well.
        for link in sends.keys().chain(receives.keys()) {
            if !first.contains_key(link) {
                let taken = taken.entry(link.to).or_insert(0);
                first.insert(*link, *taken);
                *taken += slots;
            }
        }
        Ok(Self { first, slots: taken.into_values().max().unwrap_or(0), widest })
    }

    /// Returns the first slot of a connection at its receiver.
    pub(super) fn first(&self, link: Connection) -> u32 {
        self.first.get(&link).copied().unwrap_or(0)
    }

    /// Returns the most slots of a receiver.
    pub(super) fn slots(&self) -> u32 {
        self.slots
    }

    /// Returns the chunks of the longest step that passes through a connection.
    pub(super) fn widest(&self) -> u32 {
        self.widest
    }
}

impl ConnectionEnd {
    /// Returns the end that a block uses; `None` if no step of it passes data.
    fn new(id: u32, block: &Block, sends: bool) -> Option<Self> {
        let operations = block.operations.iter().filter(|operation| {
            if sends { operation.kind.sends() } else { operation.kind.receives() }
        });
        // A step of 0 chunks passes no message.
        let steps = operations.filter(|operation| operation.count > 0);
        let steps: Vec<_> = steps.map(|operation| (operation.count, operation.at)).collect();
        (!steps.is_empty()).then_some(Self { block: id, at: block.at, steps })
    }
}

impl Idle {
    /// Returns the error for an idle block beside a busy one. Every runtime saves the progress of a connection for each
    /// block that names its peer, also if the block did not advance it.
    fn beside(&self, busy: &ConnectionEnd) -> Diagnostic {
        let (rank, verb, preposition, peer) = self.link.end(self.sends);
        let name = if self.sends { "send" } else { "recv" };
        let title = format!(
            "tb {} of gpu {rank} names gpu {peer} and does not {verb} {preposition} it on channel {}, as tb {} does",
            self.block, self.link.channel, busy.block
        );
        Diagnostic::new(Code::SharedSignal, span(self.at), title)
            .label("this block leaves the connection as it found it")
            .other(span(busy.at), "this block moves it on")
            .note(
                "when a block ends, the runtimes write back how far it knows the connections of its peers to have come: \
                 whichever of the two ends last decides where the next call begins",
            )
            .help(format!("write `{name}=\"-1\"` in tb {}", self.block))
    }
}

fn shared(
    link: Connection,
    first: &ConnectionEnd,
    second: &ConnectionEnd,
    sends: bool,
) -> Diagnostic {
    let (rank, verb, preposition, peer) = link.end(sends);
    let title = format!(
        "tb {} and tb {} of gpu {rank} both {verb} {preposition} gpu {peer} on channel {}",
        first.block, second.block, link.channel
    );
    Diagnostic::new(Code::SharedSignal, span(second.at), title)
        .label("another block uses the same end of this connection")
        .other(span(first.at), "the other block")
        .note("blocks run side by side, and each counts the messages of the connection by itself")
        .help("give one of the blocks a channel of its own")
}

/// Returns the error for the first receive whose length differs from its send's.
fn unequal(
    program: &Program,
    link: Connection,
    sends: &[(u32, SpanId)],
    receives: &[(u32, SpanId)],
) -> Option<Diagnostic> {
    let mut pairs = sends.iter().zip(receives);
    let ((sent, send), (received, receive)) = pairs.find(|(send, receive)| send.0 != receive.0)?;
    let title = format!("{sent} chunks are sent, and {received} received");
    let name = |at: &SpanId| program.names.text(*at);
    let diagnostic = Diagnostic::new(Code::LengthMismatch, span(*receive), title)
        .label(format!("receives {received}"))
        .other(span(*send), format!("sends {sent}"))
        .note(format!(
            "{} sends what {} receives, on channel {}",
            name(send),
            name(receive),
            link.channel
        ));
    Some(diagnostic)
}
