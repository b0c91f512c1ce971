//! The schedule builder: the walk through a program calls it, statement by statement, once for each rank. It makes
//! the checks that need a rank count, and records every problem at its statement.

pub(crate) mod data;
mod demands;
pub(crate) mod fifo;
pub(crate) mod frame;
mod membership;
mod scratch;
mod topology;
mod turns;
mod watch;

use rustc_hash::FxHashMap;

use super::area::Area;
use super::interning::{Lane, Limits, Tables};
use crate::diagnostics::{Code, Finding};
use crate::ids::{LaneId, RankId, ScratchId, SpanId};
use crate::schedule::{Channel, Op, OpKind, Operand, Region, SignalKind};
use crate::source::Span;
use crate::values::arith::Fault;
use frame::Frame;
pub(super) use watch::Watch;

/// A rank's program cannot go on; the reason has been recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stop;

/// One rank's part of a schedule that is being built.
pub struct Builder<'t> {
    pub(super) tables: &'t mut Tables,
    pub(super) rank: RankId,
    streams: Vec<Vec<Op>>,
    /// Streams forked from each stream, for iterations after the first of a `parallel` on it.
    children: Vec<Vec<usize>>,
    /// The number of children that are running: iteration 0 runs on the stream they were forked from, and may fork
    /// more.
    running: Vec<usize>,
    current: usize,
    lane: Lane,
    /// The shape last written to each slot of this rank, in program order.
    pub(super) slots: FxHashMap<(ScratchId, u32), Area>,
    pub(super) declared: usize,
    /// The frames of `within` blocks and calls, innermost last.
    frames: Vec<Frame>,
    /// The calls that lead to the running algorithm, outermost first.
    path: Vec<At>,
    /// The first of these calls: the statement of this algorithm that all ops of the call are attributed to.
    called_at: Option<At>,
    /// The number of times that each call was made.
    calls: FxHashMap<(Vec<At>, LaneId), u32>,
    /// A fault in a called algorithm, before its callers have put it in their words.
    pending: Option<Finding>,
    /// The fifo of the algorithm whose statements are being laid out.
    fifo: Option<fifo::Fifo>,
    /// The operands of the op that is being built.
    operands: Vec<(RankId, Area)>,
    /// The expression that the walk evaluates, where its place is known.
    pub(crate) exact: Option<Span>,
    /// The ops whose loop variables are wanted.
    pub(super) watch: Option<Watch>,
    /// Whether the last problem lacks the values of the loops around it.
    unplaced: bool,
}

/// A region of one rank's buffer: an operand of `copy` and `reduce`.
pub(crate) type Place = (RankId, Area);

/// The number of a statement, in source order, which a walk passes.
pub type At = u32;

impl<'t> Builder<'t> {
    pub(crate) fn new(tables: &'t mut Tables, rank: RankId) -> Self {
        Self {
            tables,
            rank,
            streams: vec![Vec::new()],
            children: vec![Vec::new()],
            running: vec![0],
            current: 0,
            lane: Lane::default(),
            slots: FxHashMap::default(),
            declared: 0,
            frames: Vec::new(),
            path: Vec::new(),
            called_at: None,
            calls: FxHashMap::default(),
            pending: None,
            fifo: None,
            operands: Vec::new(),
            exact: None,
            watch: None,
            unplaced: false,
        }
    }

    pub(crate) fn into_streams(self) -> Vec<Vec<Op>> {
        self.streams
    }

    /// Returns the operands of the last move; the source alone where a copy of data onto itself was left out.
    pub(crate) fn last_operands(&self) -> Vec<(RankId, Region)> {
        self.operands.iter().map(|(rank, area)| (*rank, area.region)).collect()
    }

    /// Returns the operands of each of the last moves, which have equally many.
    pub(crate) fn last_moves(&self, moves: u32) -> Vec<Vec<(RankId, Region)>> {
        let Tables { operands, regions, .. } = &*self.tables;
        let many = self.operands.len();
        let place = |operand: &Operand| (operand.rank, regions.items[operand.region.index()]);
        let last = operands[operands.len() - many * moves as usize..].chunks(many);
        last.map(|operands| operands.iter().map(place).collect()).collect()
    }

    // ---- questions of the program -----------------------------------------------------------

    /// Returns this rank, by its number in the whole run.
    pub(crate) fn local(&self) -> RankId {
        self.rank
    }

    /// Checks a parameter of type `Rank`; the parameter `root` is the root of a rooted collective.
    pub(crate) fn rank_param(&mut self, at: At, value: i64, is_root: bool) -> Result<(), Stop> {
        let rank = self.settle(at, self.find_rank(value))?;
        if is_root && !self.is_called() {
            self.tables.root = rank;
        }
        Ok(())
    }

    // ---- control ----------------------------------------------------------------------------

    /// Stops unless `condition` holds.
    pub(crate) fn require(&mut self, at: At, condition: bool, why: &str) -> Result<(), Stop> {
        if condition {
            return Ok(());
        }
        let (name, nranks) = self.running();
        let title = format!("{name} refuses nranks = {nranks}: {why}");
        Err(self.fail(
            Finding::new(Code::RankCountRefused, SpanId(at), title).label("this does not hold"),
        ))
    }

    /// Enters a `step`.
    pub(crate) fn step(&mut self, at: At) -> Result<(), Stop> {
        self.spend(at, 0, 1)
    }

    /// Takes the steps of a loop from the budget before its first iteration runs.
    pub(crate) fn spend(&mut self, at: At, lo: i64, hi: i64) -> Result<(), Stop> {
        let steps = hi.saturating_sub(lo).max(0) as u64;
        self.take(at, steps, || format!("this loop of {steps} iterations goes"))
    }

    /// Checks nested loops by their bounds, as far as they are known, from the outermost on: loops that must exceed
    /// the step budget are refused before their first step.
    pub(crate) fn nested(
        &mut self,
        at: At,
        loops: &[(Option<i64>, Option<i64>)],
    ) -> Result<(), Stop> {
        let limit = Limits::FULL.steps;
        let times = loops.iter().try_fold(1_u64, |times, (lo, hi)| {
            let here = (*hi)?.saturating_sub((*lo)?).max(0);
            Some(times.saturating_mul(here.unsigned_abs()))
        });
        let Some(times) = times.filter(|times| *times > limit) else { return Ok(()) };
        let title =
            format!("the loops in this one take {times} steps, beyond the limit of {limit}");
        Err(self.too_long(at, title))
    }

    /// Refuses calls of steps that take at least `steps` steps in total, if that exceeds the budget, before the first
    /// of them.
    pub(crate) fn foresee(&mut self, at: At, steps: u64) -> Result<(), Stop> {
        let limit = Limits::FULL.steps;
        if steps <= limit {
            return Ok(());
        }
        let least = if steps == u64::MAX { "more than 2^64".to_owned() } else { steps.to_string() };
        let title =
            format!("the calls of steps here take {least} steps, beyond the limit of {limit}");
        Err(self.too_long(at, title))
    }

    /// Takes `steps` steps from the budget; `what` begins the message if there are too few.
    fn take(&mut self, at: At, steps: u64, what: impl FnOnce() -> String) -> Result<(), Stop> {
        if self.tables.spend(steps) {
            return Ok(());
        }
        let what = what();
        let limit = self.tables.limits().steps;
        let title = format!("{what} beyond the step limit of {limit}");
        Err(self.too_long(at, title))
    }

    fn too_long(&mut self, at: At, title: String) -> Stop {
        self.fail(
            Finding::new(Code::StepLimit, SpanId(at), title)
                .note("the limit counts the iterations of all loops and the calls of steps, on all ranks")
                .help("loop over ranks, rounds or pieces; a larger piece is still one op"),
        )
    }

    /// `parallel x in lo..hi`: runs the first iteration on this stream, and the others on streams of their own, which
    /// are forked before and joined after.
    pub(crate) fn parallel(
        &mut self,
        at: At,
        lo: i64,
        hi: i64,
        mut body: impl FnMut(&mut Self, i64) -> Result<(), Stop>,
    ) -> Result<(), Stop> {
        self.spend(at, lo, hi)?;
        let parent = self.current;
        let others = usize::try_from(hi.saturating_sub(lo) - 1).unwrap_or(0);
        let first = self.running[parent];
        let children: Vec<usize> =
            (first..first + others).map(|k| self.child(at, parent, k)).collect::<Result<_, _>>()?;
        self.running[parent] += others;
        for &child in &children {
            self.fork(at, parent, child, SignalKind::Fork)?;
        }
        for (stream, value) in std::iter::once(parent).chain(children.iter().copied()).zip(lo..hi) {
            self.current = stream;
            self.lane.push(value, self.tables);
            let done = body(self, value);
            self.lane.pop();
            done?;
        }
        for &child in &children {
            self.fork(at, child, parent, SignalKind::Join)?;
        }
        self.running[parent] = first;
        self.current = parent;
        Ok(())
    }

    fn child(&mut self, at: At, parent: usize, k: usize) -> Result<usize, Stop> {
        if let Some(&child) = self.children[parent].get(k) {
            return Ok(child);
        }
        if self.streams.len() >= Tables::STREAM_LIMIT {
            let title = format!("more than {} streams at one rank", Tables::STREAM_LIMIT);
            return Err(self.fail(Finding::new(Code::StepLimit, SpanId(at), title)));
        }
        self.streams.push(Vec::new());
        self.children.push(Vec::new());
        self.running.push(0);
        self.children[parent].push(self.streams.len() - 1);
        Ok(self.streams.len() - 1)
    }

    /// Writes a post on `from` that a wait on `to` meets; the channel is the child's.
    fn fork(&mut self, at: At, from: usize, to: usize, kind: SignalKind) -> Result<(), Stop> {
        let lane = LaneId(from.max(to) as u32);
        let channel = Channel { from: self.rank, to: self.rank, kind, lane };
        for (stream, kind) in [(from, OpKind::Post), (to, OpKind::Wait)] {
            self.current = stream;
            self.signal(at, kind, channel)?;
        }
        Ok(())
    }

    // ---- signals ----------------------------------------------------------------------------

    /// Writes the post of a signal to a peer.
    pub(crate) fn post(&mut self, at: At, peer: RankId, kind: SignalKind) -> Result<(), Stop> {
        let to = self.other(at, peer)?;
        let channel = Channel { from: self.rank, to, kind, lane: self.lane.id() };
        self.signal(at, OpKind::Post, channel)
    }

    /// Writes the wait for a peer's signal.
    pub(crate) fn wait(&mut self, at: At, peer: RankId, kind: SignalKind) -> Result<(), Stop> {
        let from = self.other(at, peer)?;
        let channel = Channel { from, to: self.rank, kind, lane: self.lane.id() };
        self.signal(at, OpKind::Wait, channel)
    }

    fn other(&mut self, at: At, rank: RankId) -> Result<RankId, Stop> {
        if rank == self.rank {
            let title = format!("rank {rank} signals itself");
            let finding = Finding::new(Code::SelfSignal, SpanId(at), title);
            return Err(self.fail(match self.size() {
                1 => finding.remedy(
                    "with one rank there is nobody to signal: put this into `if nranks > 1 { … }`",
                ),
                _ => finding
                    .note("ops of one rank are ordered already; `parallel` is joined at its end"),
            }));
        }
        Ok(rank)
    }

    fn signal(&mut self, at: At, kind: OpKind, channel: Channel) -> Result<(), Stop> {
        let arg = self.tables.channel(channel).0;
        self.push(at, Op::new(kind, SpanId(at), arg))
    }

    pub(super) fn push(&mut self, at: At, mut op: Op) -> Result<(), Stop> {
        if !self.tables.count_op() {
            let title = self.tables.limits().too_many_ops();
            return Err(self.fail(Finding::new(Code::StepLimit, SpanId(at), title)));
        }
        op.at = SpanId(self.called_at.unwrap_or(at));
        if let Some(watch) = &mut self.watch {
            watch.lay_out(self.current, self.streams[self.current].len());
        }
        self.streams[self.current].push(op);
        Ok(())
    }

    // ---- problems ---------------------------------------------------------------------------

    /// Returns the value, or reports the fault at the statement.
    pub(crate) fn settle<T>(&mut self, at: At, value: Result<T, Fault>) -> Result<T, Stop> {
        value.map_err(|fault| self.fault(at, fault))
    }

    pub(super) fn fault(&mut self, at: At, fault: Fault) -> Stop {
        self.fail(fault.finding(SpanId(at)))
    }

    /// Records a problem of this rank.
    pub(crate) fn fail(&mut self, mut finding: Finding) -> Stop {
        finding.exact = finding.exact.or(self.exact);
        if self.is_called() {
            self.pending = Some(finding);
            self.unplaced = true;
        } else {
            self.unplaced = self.tables.fail(self.rank, finding);
        }
        Stop
    }

    /// Ends a statement: `values` returns the values of the loops around it in words, for a problem that was recorded in
    /// it, and for ops that are watched.
    pub(crate) fn end(&mut self, at: At, values: impl Fn() -> Option<String>) {
        if std::mem::take(&mut self.unplaced)
            && let Some(values) = values()
        {
            match &mut self.pending {
                Some(finding) => finding.notes.insert(0, format!("where {values}")),
                None => self.tables.place_last(&values),
            }
        }
        let called = self.is_called();
        if let Some(watch) = self.watch.as_mut().filter(|_| !called) {
            watch.end(at, values);
        }
    }

    /// Whether the end of a statement matters: where it failed, or where ops are watched.
    pub(crate) fn is_watched(&self) -> bool {
        self.watch.is_some()
    }
}
