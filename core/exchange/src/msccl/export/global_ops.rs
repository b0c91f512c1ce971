//! The ops of all ranks, chunk by chunk, in one order: messages by their numbers, and each move as soon as the ops that
//! it depends on are done. Any op that a rank waits for comes earlier in this order.

use std::collections::BTreeMap;

use super::super::runtime::CHANNELS;
use super::chunks::{Grid, ScratchSlots, Span};
use super::{Options, unfit};
use roundelay_core::diagnostics::Finding;
use roundelay_core::ids::{LaneId, OpId, RankId};
use roundelay_core::messages::{Action, MessageId, TwoSided};

/// An op of a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GlobalOp {
    /// Sends a message.
    Send { message: u32, src: Span },
    /// Receives a message.
    Receive { message: u32, dst: Span },
    /// Receives a message, reduces it with data of the rank and stores the result.
    ReceiveFold { message: u32, own: Span, dst: Span },
    /// Copies.
    Copy { src: Span, dst: Span },
    /// Reduces two places into a third place, which may be one of the two.
    Fold { left: Span, right: Span, dst: Span },
}

impl GlobalOp {
    /// Returns the places that the op reads.
    pub(super) fn reads(&self) -> Vec<Span> {
        match *self {
            Self::Send { src, .. } | Self::Copy { src, .. } => vec![src],
            Self::Receive { .. } => Vec::new(),
            Self::ReceiveFold { own, .. } => vec![own],
            Self::Fold { left, right, .. } => vec![left, right],
        }
    }

    /// Returns the op with reads of `old` replaced by reads of `new`.
    pub(super) fn reading(self, old: Span, new: Span) -> Self {
        let at = |span: Span| if span == old { new } else { span };
        match self {
            Self::Send { message, src } => Self::Send { message, src: at(src) },
            Self::Receive { .. } => self,
            Self::ReceiveFold { message, own, dst } => {
                Self::ReceiveFold { message, own: at(own), dst }
            }
            Self::Copy { src, dst } => Self::Copy { src: at(src), dst },
            Self::Fold { left, right, dst } => Self::Fold { left: at(left), right: at(right), dst },
        }
    }

    /// Returns the place that the op writes.
    pub(super) fn writes(&self) -> Option<Span> {
        match *self {
            Self::Send { .. } => None,
            Self::Receive { dst, .. }
            | Self::ReceiveFold { dst, .. }
            | Self::Copy { dst, .. }
            | Self::Fold { dst, .. } => Some(dst),
        }
    }

    /// Returns the message that the op sends or receives.
    pub(super) fn message(&self) -> Option<u32> {
        match *self {
            Self::Send { message, .. }
            | Self::Receive { message, .. }
            | Self::ReceiveFold { message, .. } => Some(message),
            Self::Copy { .. } | Self::Fold { .. } => None,
        }
    }

    /// Returns the cells that the op reads and writes. A copy of a place onto itself has no cells in place.
    pub(super) fn cells(&self, grid: &Grid, rank: usize) -> CellSets {
        let in_place = |span| grid.cells(rank, span, true)[1].clone();
        let both = !matches!(*self, Self::Copy { src, dst } if in_place(src) == in_place(dst));
        let all = |span| grid.cells(rank, span, both).into_iter().filter(|cells| !cells.is_empty());
        let reads = self.reads().into_iter().flat_map(all).collect();
        CellSets { reads, writes: self.writes().into_iter().flat_map(all).collect() }
    }
}

/// Cells that are read and written.
pub(super) struct CellSets {
    pub(super) reads: Vec<std::ops::Range<usize>>,
    pub(super) writes: Vec<std::ops::Range<usize>>,
}

impl CellSets {
    /// Whether the order of the two ops matters.
    pub(super) fn conflicts(&self, other: &Self) -> bool {
        let meets = |some: &[std::ops::Range<usize>], others: &[std::ops::Range<usize>]| {
            some.iter().any(|a| others.iter().any(|b| a.start < b.end && b.start < a.end))
        };
        meets(&self.writes, &other.writes)
            || meets(&self.writes, &other.reads)
            || meets(&self.reads, &other.writes)
    }
}

/// A connection: sender, receiver and channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct PlannedLink {
    pub(super) from: u32,
    pub(super) to: u32,
    pub(super) channel: u32,
}

/// The ops of all ranks.
pub(super) struct GlobalOps {
    /// The ops of each rank.
    pub(super) of: Vec<Vec<GlobalOp>>,
    /// The connection of each message.
    pub(super) links: Vec<PlannedLink>,
}

/// Returns the ops of all ranks, and the number of channels of one instance.
pub(super) fn all(
    form: &TwoSided,
    grid: &Grid,
    options: Options,
) -> Result<(GlobalOps, u32), Box<Finding>> {
    let lanes: Vec<LaneId> = form.messages().iter().map(|message| message.lane).collect();
    let (channel_of, channels) = channels(&lanes, options)?;
    let mut ops = GlobalOps { of: Vec::new(), links: Vec::new() };
    let mut slots: Vec<ScratchSlots> = (0..grid.nranks).map(|_| ScratchSlots::default()).collect();
    // For each message its first part's number, its parts, its source and its target.
    let mut messages = Vec::new();
    for message in form.messages() {
        let schedule = form.schedule();
        let source = slots[message.from.index()].span(schedule, grid, message.source);
        let target = slots[message.to.index()].span(schedule, grid, message.target);
        let parts = grid.parts(&[source, target]);
        let first = ops.links.len() as u32;
        let link = PlannedLink {
            from: message.from.0,
            to: message.to.0,
            channel: channel_of[&message.lane],
        };
        ops.links.extend(parts.iter().map(|_| link));
        messages.push((first, parts, source, target));
    }
    for (rank, slots) in (0..).map(RankId).zip(&mut slots) {
        let mut list = Vec::new();
        for action in form.actions(rank) {
            match *action {
                Action::Send(MessageId(id)) => {
                    let (first, parts, source, _) = &messages[id as usize];
                    let send = |(message, part): (u32, &(u32, u32))| GlobalOp::Send {
                        message,
                        src: source.part(*part),
                    };
                    list.extend((*first..).zip(parts).map(send));
                }
                Action::Received(MessageId(id)) => {
                    let (first, parts, _, target) = &messages[id as usize];
                    let receive = |(message, part): (u32, &(u32, u32))| GlobalOp::Receive {
                        message,
                        dst: target.part(*part),
                    };
                    list.extend((*first..).zip(parts).map(receive));
                }
                Action::Sent(_) | Action::Receive(_) => {}
                Action::Move(op) => moves(form, grid, (rank, slots), op, &mut list),
            }
        }
        ops.of.push(in_order(&list, grid, rank.index()));
    }
    Ok((ops, channels))
}

/// Returns the channel of each lane. If there are more lanes than channels, several lanes share a channel.
fn channels(
    lanes: &[LaneId],
    options: Options,
) -> Result<(BTreeMap<LaneId, u32>, u32), Box<Finding>> {
    let instances = options.instances;
    let most = CHANNELS / instances.max(1);
    if most == 0 || instances == 0 {
        let title = format!("{instances} instances, and there are {CHANNELS} channels");
        return Err(Box::new(unfit(title).help(format!("write 1 to {CHANNELS} instances"))));
    }
    let mut of = BTreeMap::new();
    for lane in lanes {
        let next = of.len() as u32 % most;
        of.entry(*lane).or_insert(next);
    }
    let channels = (of.len() as u32).clamp(1, most);
    Ok((of, channels))
}

/// Adds the ops of a move: reductions of two places at a time, in the author's order, and copies of the result.
fn moves(
    form: &TwoSided,
    grid: &Grid,
    (rank, slots): (RankId, &mut ScratchSlots),
    op: OpId,
    list: &mut Vec<GlobalOp>,
) {
    let schedule = form.schedule();
    let op = schedule.op(op);
    let srcs: Vec<_> =
        schedule.srcs(op).iter().map(|o| slots.span(schedule, grid, o.region)).collect();
    let dsts: Vec<_> =
        schedule.dsts(op).iter().map(|o| slots.span(schedule, grid, o.region)).collect();
    let all = [&srcs[..], &dsts].concat();
    for part in grid.parts(&all) {
        let srcs: Vec<Span> = srcs.iter().map(|span| span.part(part)).collect();
        let dsts: Vec<Span> = dsts.iter().map(|span| span.part(part)).collect();
        let cells = |span| grid.cells(rank.index(), span, true);
        let overlap = |a: Span, b: Span| {
            cells(a).iter().zip(cells(b)).any(|(a, b)| a.start < b.end && b.start < a.end)
        };
        let (first, rest) = (srcs[0], &srcs[1..]);
        let from = match rest {
            [] => first,
            [.., last] => {
                let early = rest[1..].iter().any(|src| overlap(*src, dsts[0]));
                let sum = if early { slots.more(first.count) } else { dsts[0] };
                let mut left = first;
                for right in &rest[..rest.len() - 1] {
                    list.push(GlobalOp::Fold { left, right: *right, dst: sum });
                    left = sum;
                }
                list.push(GlobalOp::Fold { left, right: *last, dst: dsts[0] });
                dsts[0]
            }
        };
        let copies = dsts.iter().filter(|dst| **dst != from);
        list.extend(copies.map(|dst| GlobalOp::Copy { src: from, dst: *dst }));
    }
}

/// Orders messages by their numbers, and each move as soon as the earlier ops on its memory are done.
fn in_order(list: &[GlobalOp], grid: &Grid, rank: usize) -> Vec<GlobalOp> {
    let before = before(list, grid, rank);
    let mut messages: Vec<(u32, usize)> =
        list.iter().enumerate().filter_map(|(at, op)| Some((op.message()?, at))).collect();
    messages.sort_unstable();
    let mut moves: Vec<usize> =
        (0..list.len()).filter(|at| list[*at].message().is_none()).collect();
    let (mut done, mut order) = (vec![false; list.len()], Vec::with_capacity(list.len()));
    let mut take = |done: &mut Vec<bool>, order: &mut Vec<GlobalOp>| {
        moves.retain(|at| {
            let ready = before[*at].iter().all(|before| done[*before]);
            if ready {
                done[*at] = true;
                order.push(list[*at]);
            }
            !ready
        });
    };
    take(&mut done, &mut order);
    for (_, at) in messages {
        done[at] = true;
        order.push(list[at]);
        take(&mut done, &mut order);
    }
    order
}

/// Returns for each op of a rank the earlier ops that it must follow in memory: the last writer of its cells, and for
/// cells that it writes also the readers since.
pub(super) fn before(list: &[GlobalOp], grid: &Grid, rank: usize) -> Vec<Vec<usize>> {
    let mut wrote: Vec<Option<usize>> = Vec::new();
    let mut read: Vec<Vec<usize>> = Vec::new();
    let mut all = Vec::with_capacity(list.len());
    for (at, op) in list.iter().enumerate() {
        let CellSets { reads, writes } = op.cells(grid, rank);
        let end = reads.iter().chain(&writes).map(|cells| cells.end).max().unwrap_or(0);
        if end > wrote.len() {
            wrote.resize(end, None);
            read.resize(end, Vec::new());
        }
        let mut before: Vec<usize> = Vec::new();
        for cell in reads.iter().cloned().flatten() {
            before.extend(wrote[cell]);
        }
        for cell in writes.iter().cloned().flatten() {
            before.extend(wrote[cell]);
            before.extend(&read[cell]);
        }
        for cell in reads.into_iter().flatten() {
            read[cell].push(at);
        }
        for cell in writes.into_iter().flatten() {
            wrote[cell] = Some(at);
            read[cell].clear();
        }
        before.sort_unstable();
        before.dedup();
        before.retain(|before| *before != at);
        all.push(before);
    }
    all
}
