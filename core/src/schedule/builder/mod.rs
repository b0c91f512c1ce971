//! The schedule builder: what expanded Rust and the walk through a program both call, statement by statement, once
//! for each rank. It checks what only a rank count can tell and records every problem at its statement.

mod data;
mod demands;
pub(crate) mod fifo;
pub(crate) mod frame;
mod given;
mod membership;
mod scratch;
mod topology;

use std::collections::HashMap;
use std::hash::BuildHasherDefault;

use super::area::{Area, Pieces};
use super::arith::Fault;
use super::interner::Mix;
use super::record::{Record, countable};
use super::tables::{Lane, Limits, Tables};
use super::value::{Flag, Int, List, Peer, Piece};
use super::{Buffer, Channel, Op, OpKind, Region, SignalKind};
use crate::diagnostics::{Code, Finding};
use crate::ids::{LaneId, RankId, ScratchId, SpanId};
use crate::source::Span;
use frame::Frame;
pub use given::Given;

/// A rank's program cannot go on; why has been recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stop;

/// One rank's part of a schedule in the making.
pub struct Builder<'t> {
    pub(super) tables: &'t mut Tables,
    pub(super) rank: RankId,
    streams: Vec<Vec<Op>>,
    /// Streams forked from each stream, for iterations after the first of a `parallel` on it.
    children: Vec<Vec<usize>>,
    /// How many of them are running: iteration 0 goes on where they were forked from, and may fork more.
    running: Vec<usize>,
    current: usize,
    lane: Lane,
    /// The shape last written to each slot of this rank, in program order.
    pub(super) slots: HashMap<(ScratchId, u32), Area, BuildHasherDefault<Mix>>,
    pub(super) declared: usize,
    /// What `within` blocks and calls make of the run, innermost last.
    frames: Vec<Frame>,
    /// The calls that the running algorithm came by.
    path: Vec<At>,
    /// The first of them: the statement of this algorithm that all ops inside stand at.
    called_at: Option<At>,
    /// How often each call was made.
    calls: HashMap<(Vec<At>, LaneId), u32, BuildHasherDefault<Mix>>,
    /// What went wrong in a called algorithm, before its callers have put it in their words.
    pending: Option<Finding>,
    /// That of the algorithm whose statements are being laid out.
    fifo: Option<fifo::Fifo>,
    /// The operands of the op in the making.
    operands: Vec<(RankId, Area)>,
    /// The expression that a walk is at; expanded Rust knows only statements.
    pub(crate) exact: Option<Span>,
}

/// The values of a loop variable.
pub struct Steps(std::ops::Range<i64>);

impl Iterator for Steps {
    type Item = Int;

    fn next(&mut self) -> Option<Int> {
        self.0.next().map(Int::from)
    }
}

/// Statements are numbered in source order; generated code passes the number.
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
            slots: HashMap::default(),
            declared: 0,
            frames: Vec::new(),
            path: Vec::new(),
            called_at: None,
            calls: HashMap::default(),
            pending: None,
            fifo: None,
            operands: Vec::new(),
            exact: None,
        }
    }

    pub(crate) fn into_streams(self) -> Vec<Vec<Op>> {
        self.streams
    }

    /// The operands of the last move; of a copy to where its data is already, which is none, the source alone.
    pub(crate) fn last_operands(&self) -> Vec<(RankId, Region)> {
        self.operands.iter().map(|(rank, area)| (*rank, area.region)).collect()
    }

    /// What the program asked of the host so far, where that is kept for another engine.
    pub(crate) fn record(&mut self) -> Option<&mut Record> {
        self.tables.record.as_mut()
    }

    // ---- what the program may ask -----------------------------------------------------------

    /// This rank.
    pub fn rank(&self) -> Int {
        Int::from(self.here())
    }

    /// The number of ranks.
    pub fn nranks(&self) -> Int {
        Int::from(self.size())
    }

    /// This rank as a peer.
    pub fn local(&self) -> Peer {
        Peer(Ok(self.rank))
    }

    /// The built-in `peer(rank)`.
    pub fn peer(&self, rank: impl Into<Int>) -> Peer {
        Peer(rank.into().0.and_then(|rank| self.find_rank(rank)))
    }

    /// The input buffer.
    pub fn input(&self) -> Piece {
        Piece(Ok(self.buffer(Buffer::Input)))
    }

    /// The output buffer.
    pub fn output(&self) -> Piece {
        Piece(Ok(self.buffer(Buffer::Output)))
    }

    /// A parameter of type `Rank`; the one called `root` is the root of a rooted collective.
    pub fn rank_param(&mut self, at: At, value: Int, is_root: bool) -> Result<Int, Stop> {
        let rank = self.settle(at, value.0)?;
        let rank = self.settle(at, self.find_rank(rank))?;
        if is_root && !self.is_called() {
            self.tables.root = rank;
        }
        Ok(value)
    }

    // ---- control ----------------------------------------------------------------------------

    /// Goes on only where `condition` holds.
    pub fn require(&mut self, at: At, condition: Flag, why: &str) -> Result<(), Stop> {
        if self.settle(at, condition.0)? {
            return Ok(());
        }
        let (name, nranks) = self.running();
        let title = format!("{name} refuses nranks = {nranks}: {why}");
        Err(self.fail(
            Finding::new(Code::RankCountRefused, SpanId(at), title).label("this does not hold"),
        ))
    }

    /// The condition of an `if`.
    pub fn test(&mut self, at: At, condition: Flag) -> Result<bool, Stop> {
        self.settle(at, condition.0)
    }

    /// The values of `for x in lo..hi`; none when `hi <= lo`.
    pub fn range(&mut self, at: At, lo: impl Into<Int>, hi: impl Into<Int>) -> Result<Steps, Stop> {
        let (lo, hi) = (self.settle(at, lo.into().0)?, self.settle(at, hi.into().0)?);
        self.spend(at, lo, hi)?;
        Ok(Steps(lo..hi))
    }

    /// The values of `for x in list`.
    pub fn each(&mut self, at: At, list: &List) -> Result<impl Iterator<Item = Int> + use<>, Stop> {
        let list = self.settle(at, list.0.clone())?;
        self.spend(at, 0, list.len() as i64)?;
        Ok(list.into_iter().map(Int::from))
    }

    /// Enters a `step`.
    pub fn step(&mut self, at: At) -> Result<(), Stop> {
        self.spend(at, 0, 1)
    }

    /// Takes the steps of a loop from the budget before the first of them runs.
    pub(crate) fn spend(&mut self, at: At, lo: i64, hi: i64) -> Result<(), Stop> {
        let steps = hi.saturating_sub(lo).max(0) as u64;
        self.take(at, steps, || format!("this loop of {steps} iterations goes"))
    }

    /// Loops in one another, by their bounds from the outermost on: what must end beyond the budget of steps is
    /// refused before a step of it is walked.
    pub fn nested(&mut self, at: At, loops: &[(Int, Int)]) -> Result<(), Stop> {
        let limit = Limits::FULL.steps;
        let times = loops.iter().try_fold(1_u64, |times, (lo, hi)| {
            let here = hi.0.ok()?.saturating_sub(lo.0.ok()?).max(0);
            Some(times.saturating_mul(here.unsigned_abs()))
        });
        let Some(times) = times.filter(|times| *times > limit) else { return Ok(()) };
        let title =
            format!("the loops in this one take {times} steps, beyond the limit of {limit}");
        Err(self.too_long(at, title))
    }

    /// Takes steps from the budget for `what`.
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
                .note("the limit counts the iterations of all loops on all ranks")
                .help("loop over ranks, rounds or pieces; a larger piece is still one op"),
        )
    }

    /// `parallel x in lo..hi`: the first iteration on this stream, the others on streams of their own,
    /// forked before and joined after.
    pub fn parallel(
        &mut self,
        at: At,
        lo: impl Into<Int>,
        hi: impl Into<Int>,
        mut body: impl FnMut(&mut Self, Int) -> Result<(), Stop>,
    ) -> Result<(), Stop> {
        let (lo, hi) = (self.settle(at, lo.into().0)?, self.settle(at, hi.into().0)?);
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
            let done = body(self, Int::from(value));
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

    /// A post on `from` that a wait on `to` meets; the channel is the child's.
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

    /// `peer.TxAck()`
    pub fn tx_ack(&mut self, at: At, peer: Peer) -> Result<(), Stop> {
        self.post(at, peer, SignalKind::Ack)
    }

    /// `peer.RxAck()`
    pub fn rx_ack(&mut self, at: At, peer: Peer) -> Result<(), Stop> {
        self.wait(at, peer, SignalKind::Ack)
    }

    /// `peer.TxDataSignal()`
    pub fn tx_data_signal(&mut self, at: At, peer: Peer) -> Result<(), Stop> {
        self.post(at, peer, SignalKind::Data)
    }

    /// `peer.RxDataSignal()`
    pub fn rx_data_signal(&mut self, at: At, peer: Peer) -> Result<(), Stop> {
        self.wait(at, peer, SignalKind::Data)
    }

    pub(crate) fn post(&mut self, at: At, peer: Peer, kind: SignalKind) -> Result<(), Stop> {
        let to = self.other(at, peer)?;
        let channel = Channel { from: self.rank, to, kind, lane: self.lane.id() };
        self.signal(at, OpKind::Post, channel)
    }

    pub(crate) fn wait(&mut self, at: At, peer: Peer, kind: SignalKind) -> Result<(), Stop> {
        let from = self.other(at, peer)?;
        let channel = Channel { from, to: self.rank, kind, lane: self.lane.id() };
        self.signal(at, OpKind::Wait, channel)
    }

    fn other(&mut self, at: At, peer: Peer) -> Result<RankId, Stop> {
        let rank = self.settle(at, peer.0)?;
        if rank == self.rank {
            let title = format!("rank {rank} signals itself");
            let help = match self.size() {
                1 => "with one rank there is nobody to signal: put this into `if nranks > 1 { … }`",
                _ => "ops of one rank are ordered already; `parallel` is joined at its end",
            };
            return Err(self.fail(Finding::new(Code::SelfSignal, SpanId(at), title).help(help)));
        }
        Ok(rank)
    }

    fn signal(&mut self, at: At, kind: OpKind, channel: Channel) -> Result<(), Stop> {
        let arg = self.tables.channel(channel).0;
        self.push(at, Op { kind, srcs: 0, dsts: 0, finish: false, at: SpanId(at), arg })
    }

    pub(super) fn push(&mut self, at: At, mut op: Op) -> Result<(), Stop> {
        if !self.tables.count_op() {
            let title = self.tables.limits().too_many_ops();
            return Err(self.fail(Finding::new(Code::StepLimit, SpanId(at), title)));
        }
        op.at = SpanId(self.called_at.unwrap_or(at));
        self.streams[self.current].push(op);
        Ok(())
    }

    /// Where another engine is to follow: whether it can count the boundaries of these pieces.
    pub(crate) fn countable(&self, pieces: &Pieces) -> Result<(), Fault> {
        let Region { lo, hi, .. } = pieces.whole.region;
        if self.tables.record.is_some() { countable(&[lo, hi], pieces.parts()) } else { Ok(()) }
    }

    // ---- problems ---------------------------------------------------------------------------

    /// The value, or the fault reported at the statement.
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
        } else {
            self.tables.fail(self.rank, finding);
        }
        Stop
    }
}
