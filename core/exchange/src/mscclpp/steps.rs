//! Blocks as lists of steps. Loops are unrolled, and chunks are cut into cells, so that each part of a chunk that
//! several blocks share is a whole number of cells.

use std::collections::BTreeSet;

use super::Program;
use super::program::{Act, Chunk, Operation, PortPut};
use crate::draft;
use roundelay_core::ids::SpanId;
use roundelay_core::rational::gcd;
use roundelay_core::schedule::{OpKind, SignalKind};

/// The cells of a chunk, and the stretches of a loop.
#[derive(Clone, Copy, Debug)]
pub(super) struct Grid {
    pub(super) cells: u32,
    pub(super) stretches: u32,
}

/// A step of a block, or of a queue.
#[derive(Clone, Debug)]
pub(super) struct MscclppStep {
    pub(super) at: SpanId,
    /// The act, on cells in place of chunks.
    pub(super) what: Act,
    /// The thread of a step that a single thread takes: the k-th channel or semaphore of an op is thread k's.
    pub(super) thread: u32,
    /// Posts and waits before the step; in `after`, those after it.
    pub(super) before: Vec<Word>,
    pub(super) after: Vec<Word>,
}

/// A post or a wait of a signal.
#[derive(Clone, Debug)]
pub(super) struct Word {
    pub(super) kind: OpKind,
    /// The ranks that post and wait.
    pub(super) ends: (u32, u32),
    pub(super) signal: SignalKind,
    pub(super) lane: Vec<i64>,
    /// Whether the count of the signal begins anew in each call.
    pub(super) anew: bool,
}

/// The steps of each block of each rank.
pub(super) type All = Vec<Vec<Vec<MscclppStep>>>;

/// A step: its rank, its block and its number there.
pub(super) type StepAt = (usize, usize, usize);

impl Program {
    /// Whether the plan has loops.
    pub(super) fn loops(&self) -> bool {
        self.acts().any(|act| matches!(act, Act::Pipeline { .. }))
    }

    /// Returns the place of the first put that flushes.
    pub(super) fn flush(&self) -> Option<SpanId> {
        let flushes = |act: &Act| matches!(act, Act::Put(PortPut { flushes: true, .. }));
        self.operations().find(|op| op.acts.iter().any(flushes)).map(|op| op.at)
    }

    /// Returns the places of puts over ports.
    pub(super) fn port_puts(&self) -> BTreeSet<SpanId> {
        let puts = |op: &&Operation| op.acts.iter().any(|act| matches!(act, Act::Put(_)));
        self.operations().filter(puts).map(|op| op.at).collect()
    }

    /// Returns all operations, also those within loops.
    fn operations(&self) -> impl Iterator<Item = &Operation> {
        self.blocks().flat_map(|block| &block.operations).flat_map(|op| {
            let inner = match op.acts.first() {
                Some(Act::Pipeline { inner, .. }) => &inner[..],
                _ => &[],
            };
            std::iter::once(op).chain(inner)
        })
    }

    fn acts(&self) -> impl Iterator<Item = &Act> {
        self.operations().flat_map(|op| &op.acts)
    }

    /// Returns the grid of cells into which all parts of chunks are cut; `None` for too many cells.
    pub(super) fn grid(&self, stretches: u32) -> Option<Grid> {
        let mut cells: u32 = 1;
        for act in self.acts() {
            let Some(first) = act.parts()[0].first() else { continue };
            let (_, parts) = first.part;
            cells = cells
                .checked_mul(parts / gcd(cells.into(), parts.into()) as u32)
                .filter(|cells| *cells <= CELLS)?;
        }
        Some(Grid { cells: cells * stretches, stretches })
    }

    /// Returns the steps of all blocks.
    pub(super) fn steps(&self, grid: Grid) -> All {
        let rank = |gpu: &super::Gpu| {
            gpu.blocks.iter().map(|block| steps(&block.operations, grid)).collect()
        };
        self.gpus.iter().map(rank).collect()
    }

    /// Returns an upper bound on the number of steps.
    pub(super) fn length(&self, grid: Grid) -> u64 {
        let one = |op: &Operation| op.acts.len() as u64 * 6 + 1;
        let all = self.blocks().flat_map(|block| &block.operations);
        all.map(|op| match op.acts.first() {
            Some(Act::Pipeline { inner, .. }) => {
                inner.iter().map(one).sum::<u64>() * u64::from(grid.stretches)
            }
            _ => one(op),
        })
        .sum()
    }
}

fn steps(operations: &[Operation], grid: Grid) -> Vec<MscclppStep> {
    let mut steps = Vec::new();
    for operation in operations {
        match operation.acts.first() {
            Some(Act::Pipeline { inner, .. }) => {
                for stretch in 0..grid.stretches {
                    let one = |op| operation_steps(op, grid, Some(stretch));
                    steps.extend(inner.iter().flat_map(one));
                }
            }
            _ => steps.extend(operation_steps(operation, grid, None)),
        }
    }
    steps
}

fn operation_steps(operation: &Operation, grid: Grid, stretch: Option<u32>) -> Vec<MscclppStep> {
    let what = |act: &Act| {
        // An op on 0 chunks moves nothing.
        let none = act.parts()[0].iter().any(|src| src.size == 0);
        match act {
            Act::Put(PortPut { wire, signals: true, .. }) if none => Some(Act::Signal(*wire)),
            Act::Pipeline { .. } => None,
            _ => (!none).then(|| act.at(|chunk| cells(chunk, grid, stretch))),
        }
    };
    let at = operation.at;
    let mut thread = 0;
    let step = |what: Act| {
        let step = MscclppStep { at, what, thread, before: Vec::new(), after: Vec::new() };
        thread += u32::from(step.is_of_one_thread());
        step
    };
    operation.acts.iter().filter_map(what).map(step).collect()
}

/// Returns the cells of a block's part of some chunks, in a stretch of a loop.
fn cells(chunk: Chunk, grid: Grid, stretch: Option<u32>) -> Chunk {
    let (part, parts) = chunk.part;
    let mut size = chunk.size.saturating_mul(grid.cells) / parts;
    let mut index =
        chunk.index.saturating_mul(grid.cells).saturating_add(size.saturating_mul(part));
    if let Some(stretch) = stretch {
        size /= grid.stretches;
        index = index.saturating_add(size.saturating_mul(stretch));
    }
    Chunk { index, size, part: (0, 1), ..chunk }
}

impl MscclppStep {
    /// Whether a single thread takes the step.
    fn is_of_one_thread(&self) -> bool {
        self.waits() || self.posts() || matches!(self.what, Act::Put(_))
    }

    /// Whether a single thread waits in the step.
    pub(super) fn waits(&self) -> bool {
        matches!(self.what, Act::Wait(_) | Act::Acquire(_) | Act::Flush)
    }

    /// Whether all threads wait in the step for the packets that they read.
    pub(super) fn is_arrival(&self) -> bool {
        matches!(self.what, Act::Sync) && !self.before.is_empty()
    }

    /// Whether the step lets others go on, and a single thread takes it.
    pub(super) fn posts(&self) -> bool {
        matches!(self.what, Act::Signal(_) | Act::Release(_) | Act::Enter)
    }
}

/// Returns the streams of a rank's blocks, counted from 1; a block without steps has no stream.
pub(super) fn streams(blocks: &[Vec<MscclppStep>]) -> Vec<u32> {
    draft::streams(blocks.iter().map(Vec::is_empty))
}

/// The most cells of a chunk, before loops multiply them.
const CELLS: u32 = 1 << 12;
