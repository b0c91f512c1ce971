//! The statements of a rank, in the form for the loop finder: each has a key, and numbers that may differ.

use crate::loops::repeats::RepeatNode;
use roundelay_core::messages::{Action, FormPart, Message, MessageId};
use roundelay_core::rational::Rat;
use roundelay_core::schedule::{Buffer, Operand, Schedule};

/// A statement without its numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MpiKey {
    /// The line of the source, 0 if unknown.
    pub(super) line: u32,
    pub(super) what: MpiAction,
}

/// An action; its regions are given by their buffers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum MpiAction {
    /// Begins to send a region. Request, peer and tag come before the region's numbers.
    Send(Buffer),
    /// Begins to receive into a region, with the same numbers.
    Receive(Buffer),
    /// Waits for a request of a send or a receive.
    Finish(MessageWay),
    /// Waits for several requests: their number, and the first.
    FinishAll(MessageWay),
    /// Copies: destination, source.
    Copy([Buffer; 2]),
    /// `to = from op to`.
    Reduce([Buffer; 2]),
    /// Reduces to a destination: the destination, and the sources.
    Fold(Buffer, Vec<Buffer>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MessageWay {
    Out,
    In,
}

/// A statement of one rank.
pub(super) struct Statement {
    pub(super) key: MpiKey,
    pub(super) numbers: Vec<u64>,
}

/// The statements of all ranks, and the resources that they need.
pub(super) struct Statements {
    pub(super) of: Vec<(u32, Vec<Statement>)>,
    /// The most requests of each way that a rank has at once.
    pub(super) sends: usize,
    pub(super) receives: usize,
    /// The pieces of the longest region that needs scratch of its own for a reduction.
    pub(super) spare: u64,
    /// The pieces of the longest region.
    pub(super) longest: u64,
}

/// Returns the number of numbers of a region: input and output have the first piece and the number of pieces; before
/// these, scratch has the slot and the slot's first piece.
pub(super) fn numbers(buffer: Buffer) -> usize {
    if matches!(buffer, Buffer::Scratch(_)) { 4 } else { 2 }
}

/// The requests in use. The first free request is taken, so that all iterations of a loop take the same requests.
#[derive(Default)]
struct Requests {
    held: Vec<Option<MessageId>>,
}

impl Requests {
    fn take(&mut self, message: MessageId) -> u64 {
        let free = self.held.iter().position(Option::is_none).unwrap_or_else(|| {
            self.held.push(None);
            self.held.len() - 1
        });
        self.held[free] = Some(message);
        free as u64
    }

    fn free(&mut self, message: MessageId) -> u64 {
        let at = self.held.iter().position(|held| *held == Some(message));
        let at = at.expect("a message is started before a wait for it");
        self.held[at] = None;
        at as u64
    }
}

impl Statements {
    /// Returns the statements of a form whose units are cut into `pieces` pieces.
    pub(super) fn new(two: &FormPart<'_>, pieces: u64) -> Self {
        let schedule = two.schedule;
        let mut all = Self { of: Vec::new(), sends: 0, receives: 0, spare: 0, longest: 0 };
        let lens = schedule.regions.iter().map(|r| piece(r.hi, pieces) - piece(r.lo, pieces));
        all.longest = lens.max().unwrap_or(0);
        for (rank, actions) in &two.of {
            let own = all.rank(two, actions, pieces);
            all.of.push((rank.0, own));
        }
        all
    }

    fn rank(&mut self, two: &FormPart<'_>, actions: &[Action], pieces: u64) -> Vec<Statement> {
        let schedule = two.schedule;
        let (mut sends, mut receives) = (Requests::default(), Requests::default());
        let mut own = Vec::new();
        let message = |id: &MessageId| -> &Message { &two.messages[id.index()] };
        for action in actions {
            match action {
                Action::Send(id) | Action::Receive(id) => {
                    let m = message(id);
                    let (here, peer, requests, way) = match action {
                        Action::Send(_) => (m.source, m.to, &mut sends, MessageWay::Out),
                        _ => (m.target, m.from, &mut receives, MessageWay::In),
                    };
                    let buffer = schedule.regions[here.index()].buffer;
                    let mut numbers = vec![requests.take(*id), peer.0.into(), m.lane.0.into()];
                    let operand = Operand { rank: peer, region: here };
                    numbers.extend(region(schedule, operand, pieces));
                    let what = match way {
                        MessageWay::Out => MpiAction::Send(buffer),
                        MessageWay::In => MpiAction::Receive(buffer),
                    };
                    own.push(Statement { key: key(schedule, m.at, what), numbers });
                }
                Action::Sent(id) | Action::Received(id) => {
                    let (request, way) = match action {
                        Action::Sent(_) => (sends.free(*id), MessageWay::Out),
                        _ => (receives.free(*id), MessageWay::In),
                    };
                    finish(&mut own, way, request);
                }
                Action::Move(id) => self.work(schedule, *id, pieces, &mut own),
            }
        }
        self.sends = self.sends.max(sends.held.len());
        self.receives = self.receives.max(receives.held.len());
        own
    }

    /// Adds a move within the rank, as copies and reductions of two regions if possible.
    fn work(
        &mut self,
        schedule: &Schedule,
        id: roundelay_core::ids::OpId,
        pieces: u64,
        own: &mut Vec<Statement>,
    ) {
        let op = schedule.op(id);
        let (srcs, dsts) = (schedule.srcs(op), schedule.dsts(op));
        let buffer = |operand: &Operand| schedule.region(*operand).buffer;
        let mut put = |what, operands: &[Operand]| {
            let numbers =
                operands.iter().flat_map(|operand| region(schedule, *operand, pieces)).collect();
            own.push(Statement { key: key(schedule, op.at, what), numbers });
        };
        // If a destination is the first source, the sources are reduced in it.
        let place = dsts.iter().find(|dst| **dst == srcs[0]);
        let first = *place.unwrap_or(&dsts[0]);
        match (srcs, place) {
            ([src], _) => {
                for dst in dsts.iter().filter(|dst| *dst != src) {
                    put(MpiAction::Copy([buffer(dst), buffer(src)]), &[*dst, *src]);
                }
                return;
            }
            ([_, others @ ..], Some(place)) => {
                for src in others {
                    put(MpiAction::Reduce([buffer(place), buffer(src)]), &[*place, *src]);
                }
            }
            _ => {
                self.spare =
                    self.spare.max(region(schedule, first, pieces).last().copied().unwrap_or(0));
                let what = MpiAction::Fold(buffer(&first), srcs.iter().map(buffer).collect());
                let all: Vec<_> = std::iter::once(first).chain(srcs.iter().copied()).collect();
                put(what, &all);
            }
        }
        for dst in dsts.iter().filter(|dst| **dst != first) {
            put(MpiAction::Copy([buffer(dst), buffer(&first)]), &[*dst, first]);
        }
    }
}

fn key(schedule: &Schedule, at: roundelay_core::ids::SpanId, what: MpiAction) -> MpiKey {
    MpiKey { line: schedule.location(at).line, what }
}

/// Adds a wait for a request; joined with the previous wait if that is for the neighboring request.
fn finish(own: &mut Vec<Statement>, way: MessageWay, request: u64) {
    if let Some(Statement { key: last, numbers }) = own.last_mut() {
        let (many, first) = match (&last.what, &numbers[..]) {
            (MpiAction::Finish(of), [first]) if *of == way => (1, *first),
            (MpiAction::FinishAll(of), [many, first]) if *of == way => (*many, *first),
            _ => (0, 0),
        };
        if many > 0 && first + many == request {
            last.what = MpiAction::FinishAll(way);
            *numbers = vec![many + 1, first];
            return;
        }
    }
    // Waits have no line, since the author did not write them.
    let key = MpiKey { line: 0, what: MpiAction::Finish(way) };
    own.push(Statement { key, numbers: vec![request] });
}

fn region(schedule: &Schedule, operand: Operand, pieces: u64) -> Vec<u64> {
    let region = schedule.region(operand);
    let [lo, hi, base] = [region.lo, region.hi, region.base].map(|end| piece(end, pieces));
    match region.buffer {
        Buffer::Scratch(_) => vec![region.slot.into(), base, lo, hi - lo],
        _ => vec![lo, hi - lo],
    }
}

/// Returns a boundary as a whole number of pieces.
pub(super) fn piece(end: Rat, pieces: u64) -> u64 {
    end.num() * (pieces / end.den())
}

/// Ranks whose statements have the same keys, with the loops that were found in them.
pub(super) struct MpiShape {
    pub(super) ranks: Vec<u32>,
    pub(super) nodes: Vec<RepeatNode<MpiKey, i64>>,
}

/// Returns all ranks in shapes, in the order of their first ranks.
pub(super) fn shapes(of: Vec<(u32, Vec<Statement>)>) -> Vec<MpiShape> {
    let mut shapes: Vec<(Vec<u32>, Vec<Vec<Statement>>)> = Vec::new();
    for (rank, own) in of {
        let same = |(_, all): &&mut (Vec<u32>, Vec<Vec<Statement>>)| {
            all[0].iter().map(|s| &s.key).eq(own.iter().map(|s| &s.key))
        };
        match shapes.iter_mut().find(same) {
            Some((ranks, all)) => {
                ranks.push(rank);
                all.push(own);
            }
            None => shapes.push((vec![rank], vec![own])),
        }
    }
    let shape = |(ranks, all): (Vec<u32>, Vec<Vec<Statement>>)| {
        let node = |(at, statement): (usize, &Statement)| {
            // The outer index is the iteration, the inner one the rank.
            let column =
                |nth: usize| vec![all.iter().map(|own| own[at].numbers[nth] as i64).collect()];
            let columns = (0..statement.numbers.len()).map(column).collect();
            RepeatNode::Once { key: statement.key.clone(), columns }
        };
        let nodes = all[0].iter().enumerate().map(node).collect();
        MpiShape { ranks, nodes: crate::loops::repeats::found(nodes) }
    };
    shapes.into_iter().map(shape).collect()
}
