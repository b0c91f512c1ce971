//! Places steps in blocks. Each end of a connection has one block. A step waits for earlier steps of other blocks,
//! unless an earlier wait or receive of its block already implies that these are done.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::super::program::OperationKind;
use super::super::runtime::FUSED;
use super::chunks::{Grid, Span};
use super::fusion::{FusionNode, Ordered};
use super::global_ops::{CellSets, GlobalOp, GlobalOps, PlannedLink};
use crate::terms::Memory;

/// A step of a block.
#[derive(Clone, Debug)]
pub(super) struct BlockStep {
    /// The kind; `None` for a step that only waits.
    pub(super) kind: Option<OperationKind>,
    pub(super) src: Span,
    pub(super) dst: Span,
    /// The block and the step that it waits for.
    pub(super) wait: Option<(usize, usize)>,
    /// Whether other steps wait for it.
    pub(super) posts: bool,
}

/// A thread block of a rank.
#[derive(Clone, Debug, Default)]
pub(super) struct ThreadBlock {
    pub(super) send: Option<u32>,
    pub(super) receive: Option<u32>,
    pub(super) channel: u32,
    pub(super) steps: Vec<BlockStep>,
}

/// The blocks of each rank, and the chunks of its scratch.
#[derive(Debug, Default)]
pub(super) struct Plan {
    pub(super) blocks: Vec<Vec<ThreadBlock>>,
    pub(super) scratch: Vec<u32>,
}

/// The most numbers in the clocks of all ranks together; for a larger program a block's clock counts only its own
/// rank's blocks, and steps may have needless waits.
const CLOCKS: usize = 1 << 24;

/// Places the steps of `order` in the blocks of `ends`.
pub(super) fn plan(mut ends: Ends, ops: &GlobalOps, order: &Ordered, grid: &Grid) -> Plan {
    let of = ends.places(ops, order, grid);
    let total: usize = ends.blocks.iter().map(Vec::len).sum();
    let wide = total.saturating_mul(order.nodes.len()) <= CLOCKS;
    let mut first = Vec::new();
    let mut count = 0;
    for blocks in &ends.blocks {
        first.push(if wide { count } else { 0 });
        count += blocks.len();
    }
    let most = ends.blocks.iter().map(Vec::len).max().unwrap_or(0);
    let mut writer = BlockWriter {
        grid,
        plan: Plan { blocks: ends.blocks, scratch: Vec::new() },
        first,
        clocks: Vec::new(),
        done: Vec::new(),
        memory: (0..grid.nranks).map(|_| Memories::default()).collect(),
        sent: BTreeMap::new(),
        wide,
    };
    let len = if wide { count } else { most };
    for blocks in &writer.plan.blocks {
        writer.clocks.push(vec![vec![0; len]; blocks.len()]);
        writer.done.push(vec![Vec::new(); blocks.len()]);
    }
    for (node, block) in order.nodes.iter().zip(of) {
        writer.node(node, block);
    }
    let mut plan = writer.plan;
    pack(&mut plan);
    plan
}

/// The block of each end of a connection.
pub(super) struct Ends {
    pub(super) blocks: Vec<Vec<ThreadBlock>>,
    sends: BTreeMap<PlannedLink, usize>,
    receives: BTreeMap<PlannedLink, usize>,
}

impl Ends {
    pub(super) fn new(ops: &GlobalOps, order: &Ordered, nranks: usize) -> Self {
        let mut all = Self {
            blocks: vec![Vec::new(); nranks],
            sends: BTreeMap::new(),
            receives: BTreeMap::new(),
        };
        for (from, to) in &order.pairs {
            let blocks = &mut all.blocks[from.to as usize];
            all.receives.insert(*from, blocks.len());
            all.sends.insert(*to, blocks.len());
            let (send, receive) = (Some(to.to), Some(from.from));
            blocks.push(ThreadBlock { send, receive, channel: from.channel, steps: Vec::new() });
        }
        let mut links = ops.links.clone();
        links.sort_unstable();
        links.dedup();
        for link in links {
            let PlannedLink { from, to, channel } = link;
            let none = ThreadBlock { channel, ..ThreadBlock::default() };
            let blocks = &mut all.blocks[from as usize];
            all.sends.entry(link).or_insert_with(|| {
                blocks.push(ThreadBlock { send: Some(to), ..none.clone() });
                blocks.len() - 1
            });
            let blocks = &mut all.blocks[to as usize];
            all.receives.entry(link).or_insert_with(|| {
                blocks.push(ThreadBlock { receive: Some(from), ..none });
                blocks.len() - 1
            });
        }
        all
    }

    /// Returns the block of each node. A local node is placed in the block of the last node that it depends on, or else
    /// of the first node that depends on it.
    fn places(&mut self, ops: &GlobalOps, order: &Ordered, grid: &Grid) -> Vec<usize> {
        let own = |node: &FusionNode| {
            let link = ops.links[node.op.message()? as usize];
            let ends =
                if matches!(node.op, GlobalOp::Send { .. }) { &self.sends } else { &self.receives };
            ends.get(&link).copied()
        };
        let mut of: Vec<Option<usize>> = order.nodes.iter().map(own).collect();
        let mut ranks: Vec<Vec<usize>> = vec![Vec::new(); grid.nranks as usize];
        for (at, node) in order.nodes.iter().enumerate() {
            ranks[node.rank].push(at);
        }
        for (rank, list) in ranks.iter().enumerate() {
            let cells: Vec<CellSets> =
                list.iter().map(|at| order.nodes[*at].op.cells(grid, rank)).collect();
            let mut wanted: Vec<Option<usize>> = list.iter().map(|at| of[*at]).collect();
            let known = wanted.clone();
            for at in (0..list.len()).filter(|at| known[*at].is_none()).rev() {
                let after = (at + 1..list.len()).find(|next| cells[at].conflicts(&cells[*next]));
                wanted[at] = after.and_then(|after| wanted[after]);
            }
            for at in (0..list.len()).filter(|at| known[*at].is_none()) {
                let before = (0..at).rfind(|before| cells[*before].conflicts(&cells[at]));
                let block = before.and_then(|before| of[list[before]]).or(wanted[at]);
                if block.is_none() && self.blocks[rank].is_empty() {
                    self.blocks[rank].push(ThreadBlock::default());
                }
                of[list[at]] = block.or(Some(0));
            }
        }
        of.into_iter().map(Option::unwrap_or_default).collect()
    }
}

/// A step that touched memory: block and number.
type BlockStepAt = (usize, usize);

/// The last steps that touched each cell of a rank.
#[derive(Default)]
struct Memories {
    wrote: BTreeMap<usize, BlockStepAt>,
    read: BTreeMap<usize, Vec<BlockStepAt>>,
}

struct BlockWriter<'g> {
    grid: &'g Grid,
    plan: Plan,
    /// The number of the first block of each rank among all clocks.
    first: Vec<usize>,
    /// For each block the number of steps of every block that it knows to be done.
    clocks: Vec<Vec<Vec<u32>>>,
    /// The clocks after each step.
    done: Vec<Vec<Vec<Rc<Vec<u32>>>>>,
    memory: Vec<Memories>,
    /// The clock of each message's sender.
    sent: BTreeMap<u32, Rc<Vec<u32>>>,
    wide: bool,
}

impl BlockWriter<'_> {
    /// Adds the steps of a node.
    fn node(&mut self, node: &FusionNode, block: usize) {
        let at = (node.rank, block);
        match node.op {
            GlobalOp::Send { src, .. } => self.step(node, at, OperationKind::Send, (src, src)),
            GlobalOp::Receive { dst, .. } => {
                let kind = if node.sends.is_some() {
                    OperationKind::ReceiveCopySend
                } else {
                    OperationKind::Receive
                };
                self.step(node, at, kind, (dst, dst));
            }
            GlobalOp::ReceiveFold { own, dst, .. } => match (node.sends.is_some(), node.stores) {
                (false, _) => self.step(node, at, OperationKind::ReceiveReduceCopy, (own, dst)),
                (true, true) => {
                    self.step(node, at, OperationKind::ReceiveReduceCopySend, (own, dst));
                }
                (true, false) => self.step(node, at, OperationKind::ReceiveReduceSend, (own, own)),
            },
            GlobalOp::Copy { src, dst } => self.step(node, at, OperationKind::Copy, (src, dst)),
            GlobalOp::Fold { left, right, dst } => {
                let cells = |span| self.grid.cells(node.rank, span, true);
                let over = |a: Span| {
                    let both = cells(a).into_iter().zip(cells(dst));
                    both.into_iter().any(|(a, b)| a.start < b.end && b.start < a.end)
                };
                let (kept, other) = if over(right) { (right, left) } else { (left, right) };
                if kept != dst {
                    self.step(node, at, OperationKind::Copy, (kept, dst));
                }
                self.step(node, at, OperationKind::Reduce, (other, dst));
            }
        }
    }

    fn step(
        &mut self,
        node: &FusionNode,
        (rank, block): (usize, usize),
        kind: OperationKind,
        (src, dst): (Span, Span),
    ) {
        // The accesses of a step to memory, as a global op: a reduction reads its destination, too.
        let op = match kind {
            OperationKind::Reduce => GlobalOp::Fold { left: dst, right: src, dst },
            OperationKind::Copy => GlobalOp::Copy { src, dst },
            OperationKind::ReceiveReduceSend => GlobalOp::Send { message: 0, src },
            _ => node.op,
        };
        let cells = op.cells(self.grid, rank);
        if let (true, Some(known)) =
            (kind.receives() && self.wide, node.op.message().and_then(|m| self.sent.get(&m)))
        {
            join(&mut self.clocks[rank][block], known);
        }
        let waits = self.waits((rank, block), &cells);
        let Some((last, before)) = waits.split_last() else {
            return self.push(node, (rank, block), (kind, src, dst, None), cells);
        };
        for wait in before {
            let step = BlockStep { kind: None, src, dst, wait: Some(*wait), posts: false };
            self.done(rank, block);
            self.plan.blocks[rank][block].steps.push(step);
        }
        self.push(node, (rank, block), (kind, src, dst, Some(*last)), cells);
    }

    /// Returns the steps of other blocks that a step must wait for, the latest of each block.
    fn waits(&mut self, (rank, block): (usize, usize), cells: &CellSets) -> Vec<BlockStepAt> {
        let memory = &self.memory[rank];
        let mut needs: BTreeMap<usize, usize> = BTreeMap::new();
        let mut need = |at: &BlockStepAt| {
            let step = needs.entry(at.0).or_insert(at.1);
            *step = (*step).max(at.1);
        };
        for cell in cells.reads.iter().chain(&cells.writes).cloned().flatten() {
            memory.wrote.get(&cell).into_iter().for_each(&mut need);
        }
        for cell in cells.writes.iter().cloned().flatten() {
            memory.read.get(&cell).into_iter().flatten().for_each(&mut need);
        }
        needs.remove(&block);
        // The steps with the largest clocks first: they imply others, which then need no wait.
        let mut needs: Vec<BlockStepAt> = needs.into_iter().collect();
        let known = |at: &BlockStepAt| -> u64 {
            self.done[rank][at.0][at.1].iter().map(|n| u64::from(*n)).sum()
        };
        needs.sort_by_key(|at| std::cmp::Reverse((known(at), *at)));
        let mut waits = Vec::new();
        for at in needs {
            let clock = &mut self.clocks[rank][block];
            if clock[self.first[rank] + at.0] as usize > at.1 {
                continue;
            }
            let after = self.done[rank][at.0][at.1].clone();
            join(clock, &after);
            self.plan.blocks[rank][at.0].steps[at.1].posts = true;
            waits.push(at);
        }
        waits
    }

    fn push(
        &mut self,
        node: &FusionNode,
        (rank, block): (usize, usize),
        (kind, src, dst, wait): (OperationKind, Span, Span, Option<BlockStepAt>),
        cells: CellSets,
    ) {
        let steps = &mut self.plan.blocks[rank][block].steps;
        if kind == OperationKind::Reduce && wait.is_none() {
            part(steps, src, dst);
        }
        let at = (block, steps.len());
        steps.push(BlockStep { kind: Some(kind), src, dst, wait, posts: false });
        let after = self.done(rank, block);
        let message = if kind == OperationKind::Send { node.op.message() } else { node.sends };
        if let Some(message) = message.filter(|_| kind.sends()) {
            self.sent.insert(message, after);
        }
        let memory = &mut self.memory[rank];
        for cell in cells.reads.into_iter().flatten() {
            memory.read.entry(cell).or_default().push(at);
        }
        for cell in cells.writes.into_iter().flatten() {
            memory.wrote.insert(cell, at);
            memory.read.remove(&cell);
        }
    }

    /// Counts a step, and returns the clock after it.
    fn done(&mut self, rank: usize, block: usize) -> Rc<Vec<u32>> {
        let clock = &mut self.clocks[rank][block];
        clock[self.first[rank] + block] += 1;
        let after = Rc::new(clock.clone());
        self.done[rank][block].push(after.clone());
        after
    }
}

fn join(clock: &mut [u32], other: &[u32]) {
    clock.iter_mut().zip(other).for_each(|(own, other)| *own = (*own).max(*other));
}

/// Separates reductions by a post. The runtime joins reductions into one place to one step, with the length of the last
/// reduction and room for few sources.
fn part(steps: &mut [BlockStep], src: Span, dst: Span) {
    let same = |step: &&BlockStep| {
        step.kind == Some(OperationKind::Reduce)
            && (step.dst.memory, step.dst.first) == (dst.memory, dst.first)
            && step.src.memory == src.memory
            && !step.posts
    };
    let chain = steps.iter().rev().take_while(same).count();
    if let Some(last) =
        steps.last_mut().filter(|last| chain > 0 && (last.dst != dst || chain >= FUSED / 2))
    {
        last.posts = true;
    }
}

/// Numbers the used chunks of scratch without gaps.
fn pack(plan: &mut Plan) {
    for blocks in &mut plan.blocks {
        let mut used = Vec::new();
        for step in blocks.iter_mut().flat_map(|block| &mut block.steps) {
            let kind = step.kind;
            // A step that does not use one of its places writes the other place for it.
            match kind {
                Some(kind) if !kind.reads() => step.src = step.dst,
                Some(kind) if !kind.writes() => step.dst = step.src,
                Some(_) => {}
                None => {
                    let none = Span { memory: Memory::Input, first: 0, count: 0 };
                    (step.src, step.dst) = (none, none);
                }
            }
            for span in [step.src, step.dst] {
                if span.memory == Memory::Scratch {
                    used.extend(span.first..span.first + span.count);
                }
            }
        }
        used.sort_unstable();
        used.dedup();
        for span in blocks
            .iter_mut()
            .flat_map(|block| &mut block.steps)
            .flat_map(|step| [&mut step.src, &mut step.dst])
        {
            if span.memory == Memory::Scratch {
                span.first = used.partition_point(|chunk| *chunk < span.first) as u32;
            }
        }
        plan.scratch.push(used.len() as u32);
    }
}
