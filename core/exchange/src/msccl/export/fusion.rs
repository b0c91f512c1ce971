//! Steps that receive, reduce and send at once, and an order of the steps of all ranks in which no step waits for a
//! later step, also with the limited slots of connections.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

use super::Options;
use super::chunks::{Grid, Span};
use super::global_ops::{CellSets, GlobalOp, GlobalOps, PlannedLink, before};
use crate::terms::Memory;
use roundelay_core::diagnostics::Finding;

/// The shape of a program: which steps share a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FusionShape {
    /// A rank forwards data in one step of one block.
    Through,
    /// Each end of a connection has a block of its own.
    Apart,
}

/// A node of the order: one step, or two steps for a reduction into a third place.
#[derive(Clone, Copy, Debug)]
pub(super) struct FusionNode {
    pub(super) rank: usize,
    pub(super) op: GlobalOp,
    /// The message in which the step also sends its result.
    pub(super) sends: Option<u32>,
    /// Whether the step stores its result. It does not if it sends the result and no later step reads it.
    pub(super) stores: bool,
}

/// The nodes of all ranks in order, and the pairs of connections that pass through one block.
pub(super) struct Ordered {
    pub(super) nodes: Vec<FusionNode>,
    pub(super) pairs: BTreeSet<(PlannedLink, PlannedLink)>,
}

/// The receives that also send: rank and position of the receive, and position of the send.
type Fused = BTreeMap<(usize, usize), usize>;

/// The most orders that are tried before all fused sends are given up.
const TRIES: usize = 32;

/// Returns the order for a shape.
pub(super) fn order(
    ops: &GlobalOps,
    grid: &Grid,
    options: Options,
    shape: FusionShape,
) -> Result<Ordered, Box<Finding>> {
    let lists: Vec<Vec<GlobalOp>> =
        ops.of.iter().enumerate().map(|(rank, list)| shorter(list, grid, rank)).collect();
    let before: Vec<_> =
        lists.iter().enumerate().map(|(rank, list)| before(list, grid, rank)).collect();
    let slots = options.protocol.slots() as usize;
    let all = Lists { of: &lists, before: &before, links: &ops.links, slots };
    let (mut fused, pairs) = match shape {
        FusionShape::Through => all.fused(grid),
        FusionShape::Apart => Default::default(),
    };
    for tried in 0.. {
        match all.sorted(&fused) {
            Ok(order) => {
                let nodes = order.into_iter().map(|(rank, at)| {
                    let send = fused.get(&(rank, at)).map(|send| lists[rank][*send]);
                    let (op, sends) = (lists[rank][at], send.and_then(|send| send.message()));
                    let kept = !matches!(op, GlobalOp::ReceiveFold { .. });
                    let stores = kept
                        || send.is_none()
                        || !dead(&lists[rank], at, fused.get(&(rank, at)).copied());
                    FusionNode { rank, op, sends, stores }
                });
                return Ok(Ordered { nodes: nodes.collect(), pairs });
            }
            Err(stuck) if tried < TRIES && fused.contains_key(&stuck) => _ = fused.remove(&stuck),
            Err(_) if fused.is_empty() => break,
            Err(_) => fused.clear(),
        }
    }
    Err(super::unfit("its steps wait for each other"))
}

/// Returns the ops with fewer steps: a message is received at the place to which it would be copied, and reduced as it
/// arrives.
fn shorter(list: &[GlobalOp], grid: &Grid, rank: usize) -> Vec<GlobalOp> {
    let mut list: Vec<Option<GlobalOp>> = list.iter().copied().map(Some).collect();
    for at in 0..list.len() {
        let Some(GlobalOp::Receive { message, dst }) = list[at] else { continue };
        if dst.memory != Memory::Scratch {
            continue;
        }
        let next = list[at + 1..].iter().position(|op| op.is_some_and(|op| touches(&op, dst)));
        match next.map(|next| at + 1 + next).map(|next| (next, list[next])) {
            Some((next, Some(GlobalOp::Copy { src, dst: into }))) if src == dst => {
                landed(
                    &mut list,
                    (grid, rank),
                    (at, next),
                    GlobalOp::Receive { message, dst: into },
                );
            }
            Some((next, Some(fold @ GlobalOp::Fold { .. }))) => {
                folded(&mut list, (grid, rank), (at, next), fold);
            }
            _ => {}
        }
    }
    list.into_iter().flatten().collect()
}

fn touches(op: &GlobalOp, span: Span) -> bool {
    op.reads().into_iter().chain(op.writes()).any(|other| other.meets(span))
}

/// Whether an op can move from position `next` to `at`, past the ops between them.
fn moves(
    list: &[Option<GlobalOp>],
    (grid, rank): (&Grid, usize),
    (at, next): (usize, usize),
    op: &GlobalOp,
) -> bool {
    let cells = op.cells(grid, rank);
    !list[at + 1..next].iter().flatten().any(|op| op.cells(grid, rank).conflicts(&cells))
}

/// Receives into the destination of a later copy, and lets later reads of the scratch read that destination.
fn landed(
    list: &mut [Option<GlobalOp>],
    (grid, rank): (&Grid, usize),
    (at, next): (usize, usize),
    receive: GlobalOp,
) {
    let (Some(from), Some(into)) = (list[at].and_then(|op| op.writes()), receive.writes()) else {
        return;
    };
    if !moves(list, (grid, rank), (at, next), &receive) {
        return;
    }
    let cells = receive.cells(grid, rank);
    let (mut readers, mut lost) = (Vec::new(), false);
    for (later, op) in (next + 1..).zip(&list[next + 1..]) {
        let Some(op) = op else { continue };
        let reads: Vec<Span> = op.reads().into_iter().filter(|read| read.meets(from)).collect();
        if reads.iter().any(|read| *read != from || lost) {
            return;
        }
        if !reads.is_empty() {
            readers.push(later);
        }
        let written = CellSets { reads: Vec::new(), writes: op.cells(grid, rank).writes };
        lost |= written.conflicts(&cells);
        match op.writes().filter(|write| write.meets(from)) {
            None => {}
            Some(write) if write == from => break,
            Some(_) => return,
        }
    }
    list[at] = Some(receive);
    list[next] = None;
    for later in readers {
        list[later] = list[later].map(|op| op.reading(from, into));
    }
}

/// Joins a receive and the reduction of its data, if possible.
fn folded(
    list: &mut [Option<GlobalOp>],
    (grid, rank): (&Grid, usize),
    (at, next): (usize, usize),
    fold: GlobalOp,
) {
    let (Some(GlobalOp::Receive { message, dst }), GlobalOp::Fold { left, right, dst: into }) =
        (list[at], fold)
    else {
        return;
    };
    let own = match (left == dst, right == dst) {
        (true, false) => right,
        (false, true) => left,
        _ => return,
    };
    let gone = into == dst || !into.meets(dst) && unread(&list[next + 1..], dst);
    let both = GlobalOp::ReceiveFold { message, own, dst: into };
    if !own.meets(dst) && gone && moves(list, (grid, rank), (at, next), &both) {
        list[at] = Some(both);
        list[next] = None;
    }
}

/// Whether no op reads the scratch before the whole scratch is written again.
fn unread(after: &[Option<GlobalOp>], span: Span) -> bool {
    let mut left: BTreeSet<u32> = (span.first..span.first + span.count).collect();
    for op in after.iter().flatten() {
        let reads = op.reads().into_iter().filter(|read| read.memory == span.memory);
        for read in reads {
            if left.range(read.first..read.first + read.count).next().is_some() {
                return false;
            }
        }
        if let Some(write) = op.writes().filter(|write| write.memory == span.memory) {
            left.retain(|chunk| !(write.first..write.first + write.count).contains(chunk));
        }
        if left.is_empty() {
            return true;
        }
    }
    true
}

/// Whether a receive stores into scratch that only the send reads.
fn dead(list: &[GlobalOp], at: usize, send: Option<usize>) -> bool {
    let Some(dst) = list[at].writes().filter(|dst| dst.memory == Memory::Scratch) else {
        return false;
    };
    let others = (at + 1..list.len()).map(|next| Some(list[next]).filter(|_| Some(next) != send));
    unread(&others.collect::<Vec<_>>(), dst)
}

struct Lists<'a> {
    /// The ops of each rank.
    of: &'a [Vec<GlobalOp>],
    /// For each op the earlier ops that it must follow in memory.
    before: &'a [Vec<Vec<usize>>],
    links: &'a [PlannedLink],
    slots: usize,
}

impl Lists<'_> {
    /// Returns the sends that can join a receive, and the pairs of connections that share a block for them.
    fn fused(&self, grid: &Grid) -> (Fused, BTreeSet<(PlannedLink, PlannedLink)>) {
        let (mut fused, mut pairs) = (Fused::new(), BTreeSet::new());
        for (rank, list) in self.of.iter().enumerate() {
            let mut of: BTreeMap<(PlannedLink, PlannedLink), Vec<(usize, usize)>> = BTreeMap::new();
            let cells: Vec<CellSets> = list.iter().map(|op| op.cells(grid, rank)).collect();
            for (at, op) in list.iter().enumerate() {
                let (Some(message), Some(dst)) = (op.message(), op.writes()) else { continue };
                let from = self.links[message as usize];
                for next in at + 1..list.len() {
                    if let GlobalOp::Send { message, src } = list[next]
                        && src == dst
                        && self.links[message as usize].channel == from.channel
                    {
                        let to = self.links[message as usize];
                        of.entry((from, to)).or_default().push((at, next));
                    }
                    let writes = |cells: &CellSets| CellSets {
                        reads: Vec::new(),
                        writes: cells.writes.clone(),
                    };
                    if writes(&cells[next]).conflicts(&writes(&cells[at])) {
                        break;
                    }
                }
            }
            let mut ways: Vec<_> = of.into_iter().collect();
            ways.sort_by_key(|(way, sends)| (Reverse(sends.len()), *way));
            let mut taken = BTreeSet::new();
            for ((from, to), sends) in ways {
                if taken.contains(&(from, true)) || taken.contains(&(to, false)) {
                    continue;
                }
                taken.extend([(from, true), (to, false)]);
                pairs.insert((from, to));
                let mut gone = BTreeSet::new();
                for (at, next) in sends {
                    if !fused.contains_key(&(rank, at)) && gone.insert(next) {
                        fused.insert((rank, at), next);
                    }
                }
            }
        }
        (fused, pairs)
    }

    /// Returns all ops in order, without the sends that joined a receive. If ops wait for each other, returns the first
    /// receive with a joined send among them.
    fn sorted(&self, fused: &Fused) -> Result<Vec<(usize, usize)>, (usize, usize)> {
        // The node of each op: a joined send has the node of its receive.
        let mut first = Vec::new();
        let mut count = 0;
        for list in self.of {
            first.push(count);
            count += list.len();
        }
        let mut node: Vec<usize> = (0..count).collect();
        for ((rank, at), send) in fused {
            node[first[*rank] + send] = first[*rank] + at;
        }
        let mut graph = Graph { after: vec![Vec::new(); count], open: vec![0; count] };
        let mut keys = vec![(0, 0); count];
        let mut ends = [vec![0; self.links.len()], vec![0; self.links.len()]];
        for (rank, list) in self.of.iter().enumerate() {
            let mut last = 0;
            for (at, op) in list.iter().enumerate() {
                let me = first[rank] + at;
                for before in &self.before[rank][at] {
                    graph.edge(node[first[rank] + before], node[me]);
                }
                if let Some(message) = op.message() {
                    last = message;
                    ends[usize::from(!matches!(op, GlobalOp::Send { .. }))][message as usize] =
                        node[me];
                }
                keys[me] = (last, me);
            }
        }
        let mut on: BTreeMap<PlannedLink, Vec<usize>> = BTreeMap::new();
        for (message, link) in self.links.iter().enumerate() {
            graph.edge(ends[0][message], ends[1][message]);
            let earlier = on.entry(*link).or_default();
            if let Some(before) = earlier.last() {
                graph.edge(ends[0][*before], ends[0][message]);
                graph.edge(ends[1][*before], ends[1][message]);
            }
            if let Some(full) = earlier.len().checked_sub(self.slots) {
                graph.edge(ends[1][earlier[full]], ends[0][message]);
            }
            earlier.push(message);
        }
        let place = |me: usize| {
            let rank = first.partition_point(|first| *first <= me) - 1;
            (rank, me - first[rank])
        };
        let ready = (0..count).filter(|me| node[*me] == *me && graph.open[*me] == 0);
        let mut heap: BinaryHeap<_> = ready.map(|me| Reverse(keys[me])).collect();
        let mut order = Vec::with_capacity(count);
        while let Some(Reverse((_, me))) = heap.pop() {
            order.push(place(me));
            for next in std::mem::take(&mut graph.after[me]) {
                graph.open[next] -= 1;
                if graph.open[next] == 0 {
                    heap.push(Reverse(keys[next]));
                }
            }
            // An op that is done must not count as waiting.
            graph.open[me] = usize::MAX;
        }
        if order.len() + fused.len() == count {
            return Ok(order);
        }
        let stuck = fused.keys().filter(|(rank, at)| graph.open[first[*rank] + at] != usize::MAX);
        Err(stuck.min_by_key(|(rank, at)| keys[first[*rank] + at]).copied().unwrap_or_default())
    }
}

/// The graph of the order: for each node its successors, and the number of its open predecessors.
struct Graph {
    after: Vec<Vec<usize>>,
    open: Vec<usize>,
}

impl Graph {
    fn edge(&mut self, before: usize, after: usize) {
        if before != after {
            self.after[before].push(after);
            self.open[after] += 1;
        }
    }
}
