//! Steps and ports: the number of peers that a rank sends to, and receives from, in one step.
//!
//! A step is a level of dependence. A transfer depends only on the waits above it and on the moves of its stream that
//! write its data, and not on other moves above it nor on the data that it is folded into. Its fold follows the folds
//! into the same cells. A post leaves when all moves above it are done, and the stream goes on.

use std::ops::Range;

use super::layout::{BufferMode, Cells, MemoryLayout};
use super::order::Order;
use crate::ids::{OpId, RankId};
use crate::schedule::{OpKind, Operand, Schedule};
use crate::stages::stage;

/// The most peers that any rank sends to, and receives from, in one step, in the mode in which there are more.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ports {
    /// The rank that sends to the most peers at once.
    pub send: Busiest,
    /// The rank that receives from the most peers at once.
    pub receive: Busiest,
    /// Whether only runs in place have that many peers.
    pub in_place: bool,
}

impl Ports {
    /// Returns the most peers that a rank has at once in one direction.
    pub fn most(&self) -> usize {
        self.send.peers.len().max(self.receive.peers.len())
    }
}

/// A rank in the step in which it has the most peers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Busiest {
    /// The rank.
    pub rank: RankId,
    /// The step, counted from 1.
    pub step: u32,
    /// The peers of the rank in that step, each with the first move between the rank and the peer.
    pub peers: Vec<(RankId, OpId)>,
}

/// Returns the length of the longest chain of steps, and the ports that a schedule uses in each step. Where input and
/// output share memory, a chain can be longer and other moves can meet in a step, so both results are the maximum over
/// all `modes`. Where each rank chooses its mode, a chain of a mixture is at most the longest of all, for fewer inputs
/// share memory.
pub(super) fn ports(
    schedule: &Schedule,
    order: &Order,
    cells: &Cells,
    modes: &[BufferMode],
) -> Result<(u32, Ports), u32> {
    let layout = |mode: &BufferMode| MemoryLayout::new(schedule, cells, *mode);
    let layouts: Option<Vec<_>> = modes.iter().map(layout).collect();
    let layouts = layouts.ok_or(cells.per_unit)?;
    let memories = layouts.iter().map(|layout| {
        (layout.size as usize, |operand: &Operand| place(schedule, cells, layout, *operand))
    });
    let lists = schedule.nranks as usize;
    Ok(ports_in(schedule, order, memories, lists, |of, peer| (of, peer)))
}

/// Returns the ports as [`ports`] does, in memories of a number of cells, of which a function gives the cells of an
/// operand; the first is that of a run out of place. `link` gives the number of the list of a rank, of `lists`, and the
/// peer as it is named there.
pub(crate) fn ports_in<P: Iterator<Item = Range<usize>>>(
    schedule: &Schedule,
    order: &Order,
    memories: impl Iterator<Item = (usize, impl Fn(&Operand) -> P)>,
    lists: usize,
    link: impl Fn(RankId, RankId) -> (RankId, RankId),
) -> (u32, Ports) {
    let (mut count, mut most) = (0, Ports::default());
    for (mode, (size, place)) in memories.enumerate() {
        let steps = stage("steps", || steps_at(schedule, order, size, place));
        let ports = stage("ports", || {
            let mut sends = vec![Vec::new(); lists];
            let mut receives = sends.clone();
            // The moves of one stream with its peers are adjacent in each list.
            for stream in &schedule.streams {
                let ops = (stream.first.0..stream.first.0 + stream.len).map(OpId);
                for at in ops.filter(|at| schedule.op(*at).kind == OpKind::Move) {
                    let step = steps.of[at.index()];
                    for (from, to, _) in schedule.crossing(stream.rank, schedule.op(at)) {
                        let ((sender, to), (receiver, from)) = (link(from, to), link(to, from));
                        sends[sender.index()].push((step, to, at));
                        receives[receiver.index()].push((step, from, at));
                    }
                }
            }
            Ports { send: busiest(sends), receive: busiest(receives), in_place: mode > 0 }
        });
        count = count.max(steps.count);
        if ports.most() > most.most() {
            most = ports;
        }
    }
    (count, most)
}

/// Returns the cells of an operand in the memory of all ranks.
fn place(
    schedule: &Schedule,
    cells: &Cells,
    layout: &MemoryLayout,
    operand: Operand,
) -> std::iter::Once<Range<usize>> {
    let (first, len) = cells.of(operand);
    let buffer = layout.buffer(operand.rank, schedule.region(operand).buffer);
    std::iter::once((buffer + first) as usize..(buffer + first + len) as usize)
}

/// The steps of a schedule.
pub(crate) struct Steps {
    /// For each op the length of the longest chain that ends with it; for a move between ranks this is the number of
    /// its step, from 1.
    pub(crate) of: Vec<u32>,
    /// The length of the longest chain.
    pub(crate) count: u32,
}

/// The number of steps that a stream has behind it: of the messages that it waited for, and of all its moves.
#[derive(Clone, Copy, Default)]
struct Behind {
    waited: u32,
    done: u32,
}

/// Finds the step of each op, in the memory of a run out of place; the error is the number of cells that a unit would
/// have, where there are too many.
pub(super) fn steps(schedule: &Schedule, order: &Order) -> Result<Steps, u32> {
    let cells = Cells::new(schedule)?;
    let layout = MemoryLayout::new(schedule, &cells, BufferMode::OutOfPlace);
    Ok(steps_in(schedule, order, &cells, &layout.ok_or(cells.per_unit)?))
}

/// Finds the steps as [`steps`] does, in the memory of `layout`.
pub(super) fn steps_in(
    schedule: &Schedule,
    order: &Order,
    cells: &Cells,
    layout: &MemoryLayout,
) -> Steps {
    let place = |operand: &Operand| place(schedule, cells, layout, *operand);
    steps_at(schedule, order, layout.size as usize, place)
}

/// Finds the steps as [`steps`] does, in a memory of `size` cells, of which `place` gives the cells of an operand.
fn steps_at<P: Iterator<Item = Range<usize>>>(
    schedule: &Schedule,
    order: &Order,
    size: usize,
    place: impl Fn(&Operand) -> P,
) -> Steps {
    let mut streams = vec![Behind::default(); schedule.streams.len()];
    let mut of = vec![0_u32; schedule.ops.len()];
    // The time at which the moves that wrote, or read, a cell were done.
    let mut written = vec![0_u32; size];
    let mut read = vec![0_u32; size];
    for &at in &order.sequence {
        let stream = order.stream_of[at.index()];
        let behind = &mut streams[stream.index()];
        let op = schedule.op(at);
        match op.kind {
            OpKind::Move => {
                let by = schedule.streams[stream.index()].rank;
                let (srcs, dsts) = (schedule.srcs(op), schedule.dsts(op));
                let last = |times: &[u32], of: &Operand| {
                    place(of).flat_map(|cells| &times[cells]).copied().max().unwrap_or(0)
                };
                let needs = schedule.needed_operands(by, op).map(|operand| last(&written, operand));
                let start = needs.fold(behind.waited, u32::max);
                let crosses = schedule.crossing(by, op).next().is_some();
                let arrived = start + u32::from(crosses);
                let all = srcs.iter().chain(dsts).map(|operand| last(&written, operand));
                let done =
                    all.chain(dsts.iter().map(|dst| last(&read, dst))).fold(arrived, u32::max);
                behind.done = behind.done.max(done);
                of[at.index()] = arrived;
                // In place, a copy of the input onto itself is no move.
                let onto_itself =
                    srcs[0].rank == dsts[0].rank && place(&srcs[0]).eq(place(&dsts[0]));
                if !op.finish && op.srcs == 1 && op.dsts == 1 && onto_itself {
                    continue;
                }
                for src in srcs {
                    place(src).for_each(|cells| {
                        read[cells].iter_mut().for_each(|at| *at = done.max(*at));
                    });
                }
                for dst in dsts {
                    place(dst).for_each(|cells| written[cells].fill(done));
                }
            }
            OpKind::Post => of[at.index()] = behind.done.max(behind.waited),
            OpKind::Wait => {
                behind.waited = behind.waited.max(of[order.meets[at.index()].index()]);
                of[at.index()] = behind.waited;
            }
        }
    }
    let count = streams.iter().map(|behind| behind.done.max(behind.waited)).max().unwrap_or(0);
    Steps { of, count }
}

/// Returns the first of the busiest ranks, from each rank's peers by step.
fn busiest(all: Vec<Vec<(u32, RankId, OpId)>>) -> Busiest {
    let mut most = Busiest::default();
    for (rank, mut peers) in (0..).map(RankId).zip(all) {
        peers.sort_unstable();
        peers.dedup_by_key(|(step, peer, _)| (*step, *peer));
        for at_once in peers.chunk_by(|a, b| a.0 == b.0) {
            if at_once.len() > most.peers.len() {
                let peers = at_once.iter().map(|(_, peer, op)| (*peer, *op)).collect();
                most = Busiest { rank, step: at_once[0].0, peers };
            }
        }
    }
    most
}
