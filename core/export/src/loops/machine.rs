//! A machine that runs the loop form at a rank: the check that every form passes before anything is printed of it.

use std::collections::{BTreeMap, BTreeSet};

use super::events::{EventPlace, LoopEvent, events};
use super::form::Loops;
use super::ir::{
    At, DivisionId, LoopNode, LoopPlace, LoopTable, MessageStep, NodeId, Number, Piece, division,
};
use roundelay_core::program::ir::Op;
use roundelay_core::schedule::{Schedule, SignalKind};

/// The form differs from the schedule that it stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Differs;

pub(crate) type RunResult<T> = Result<T, Differs>;

/// The least left side of each quotient and remainder, at any rank.
pub(crate) type LeastSides = BTreeMap<DivisionId, i64>;

/// The facts of a form's runs, which its text depends on.
#[derive(Clone, Debug, Default)]
pub(crate) struct RunFacts {
    pub(crate) least: LeastSides,
    /// Whether streams fork streams, so that their numbers are known at run time only.
    pub(crate) nested: bool,
    /// The lanes of the statements: the values of the variables of the streams around.
    pub(crate) lanes: BTreeSet<Vec<i64>>,
    /// The number that is the farthest from 0, by its distance.
    pub(crate) farthest: u64,
    /// The most passes of a link.
    pub(crate) passes: u64,
    /// The statement of each op of the schedule.
    pub(crate) nodes: Vec<NodeId>,
}

/// Runs the form at every rank, and compares the ops of each stream with the schedule. Lines are not compared, and a form
/// of a schedule need not have lanes.
pub(crate) fn check(loops: &Loops, schedule: &Schedule) -> RunResult<RunFacts> {
    let nodes = vec![NodeId::default(); schedule.ops.len()];
    let mut facts = RunFacts { nodes, ..RunFacts::default() };
    let lanes = loops.of_program || loops.has_lanes() || schedule.lanes.len() == 1;
    for me in 0..loops.nranks {
        let streams = run(loops, schedule, me, &mut facts)?;
        let own = schedule.streams.iter().filter(|stream| stream.rank.0 == me);
        let own = own.filter(|stream| stream.len > 0).collect::<Vec<_>>();
        // A stream without ops at this rank may be missing on either side.
        if streams.iter().filter(|ops| !ops.is_empty()).count() != own.len() {
            return Err(Differs);
        }
        for stream in own {
            let ran = streams.get(stream.index as usize).ok_or(Differs)?;
            let ops = events(schedule, stream, loops.pieces, lanes);
            if ran.len() != ops.len() || !ran.iter().zip(&ops).all(|((_, ran), op)| ran.is(op)) {
                return Err(Differs);
            }
            for (node, (id, _)) in facts.nodes[stream.first.index()..].iter_mut().zip(ran) {
                *node = *id;
            }
        }
    }
    Ok(facts)
}

/// Runs a form at a rank, adds the facts of the run, and returns the ops of each stream.
pub(crate) fn run(
    loops: &Loops,
    schedule: &Schedule,
    me: u32,
    facts: &mut RunFacts,
) -> RunResult<Vec<Vec<(NodeId, LoopEvent)>>> {
    let mut machine = Machine::new(&loops.tables.all, loops.nranks, me, loops.vars.len());
    machine.functions = Some(loops);
    machine.lanes = &schedule.lanes;
    machine.run(&loops.body)?;
    facts.lanes.append(&mut machine.facts.lanes);
    facts.farthest = facts.farthest.max(machine.facts.farthest);
    facts.passes = facts.passes.max(machine.facts.passes);
    facts.nested |= machine.facts.nested;
    for (division, value) in machine.facts.least {
        let known = facts.least.entry(division).or_insert(value);
        *known = value.min(*known);
    }
    Ok(machine.streams)
}

/// Runs the statements of a rank, and records the ops of each stream and the least left sides.
pub(crate) struct Machine<'t> {
    tables: &'t [LoopTable],
    functions: Option<&'t Loops>,
    nranks: u32,
    me: u32,
    pub(super) vars: Vec<i64>,
    /// The ops of each stream, each with its statement.
    streams: Vec<Vec<(NodeId, LoopEvent)>>,
    stream: usize,
    /// The lanes of the schedule.
    pub(super) lanes: &'t [Vec<i64>],
    /// The values of the variables of the `Streams` around.
    lane: Vec<i64>,
    /// The streams forked from each stream, and the number of those that are running.
    children: BTreeMap<usize, (Vec<usize>, usize)>,
    facts: RunFacts,
}

impl<'t> Machine<'t> {
    pub(crate) fn new(tables: &'t [LoopTable], nranks: u32, me: u32, vars: usize) -> Self {
        Self {
            tables,
            functions: None,
            nranks,
            me,
            vars: vec![0; vars],
            streams: vec![Vec::new()],
            stream: 0,
            lanes: &[],
            lane: Vec::new(),
            children: BTreeMap::new(),
            facts: RunFacts::default(),
        }
    }

    pub(crate) fn number(&mut self, number: &Number) -> RunResult<i64> {
        let value = self.computed(number)?;
        self.facts.farthest = self.facts.farthest.max(value.unsigned_abs());
        Ok(value)
    }

    fn computed(&mut self, number: &Number) -> RunResult<i64> {
        match number.op {
            Op::Int(value) => Ok(value),
            Op::Local => Ok(self.me.into()),
            Op::Nranks => Ok(self.nranks.into()),
            Op::Var(var) => Ok(self.vars[var.index()]),
            Op::Entry(table) => Ok(self.entry(table as usize, &number.args)?[0]),
            _ => {
                let mut left = division(number);
                let value = number.arithmetic(|part| {
                    let value = self.number(part)?;
                    if let Some(division) = left.take() {
                        let least = self.facts.least.entry(division).or_insert(value);
                        *least = value.min(*least);
                    }
                    Ok(value)
                });
                value.ok_or(Differs)??.map_err(|_| Differs)
            }
        }
    }

    fn entry(&mut self, table: usize, indices: &[Number]) -> RunResult<&'t [i64]> {
        let LoopTable { sizes, by_rank, entries } = &self.tables[table];
        let mut at = 0;
        for (size, index) in sizes.iter().zip(indices) {
            let index: usize = self.index(index)?;
            if index >= *size {
                return Err(Differs);
            }
            at = at * size + index;
        }
        if *by_rank {
            at = at * self.nranks as usize + self.me as usize;
        }
        entries.get(at).map(Vec::as_slice).ok_or(Differs)
    }

    /// Returns a number that is not negative.
    fn index<T: TryFrom<i64>>(&mut self, number: &Number) -> RunResult<T> {
        T::try_from(self.number(number)?).map_err(|_| Differs)
    }

    fn place(&mut self, place: &LoopPlace) -> RunResult<EventPlace> {
        let LoopPlace { of, buffer, piece, step } = place;
        let rank = of.as_ref().map_or(Ok(self.me), |of| self.index(of))?;
        let values = match piece {
            Piece::Computed { lo, width, slot, base } => {
                let lo = self.number(lo)?;
                let hi = lo.checked_add(self.number(width)?).ok_or(Differs)?;
                [lo, hi, self.number(slot)?, self.number(base)?]
            }
            Piece::Entry(table, indices) => {
                self.entry(*table, indices)?.try_into().map_err(|_| Differs)?
            }
        };
        let mut whole = [0; 4];
        for (whole, value) in whole.iter_mut().zip(values) {
            *whole = u64::try_from(value).map_err(|_| Differs)?;
        }
        let step = step.as_ref().map(|step| self.index(step)).transpose()?;
        self.facts.passes = self.facts.passes.max(step.map_or(0, |step| step + 1));
        Ok((rank, *buffer, whole, step))
    }

    fn run(&mut self, nodes: &[LoopNode]) -> RunResult<()> {
        nodes.iter().try_for_each(|node| self.node(node))
    }

    fn node(&mut self, node: &LoopNode) -> RunResult<()> {
        match node {
            LoopNode::Let(var, value) => self.vars[*var] = self.number(value)?,
            LoopNode::Loop { var, lo, hi, body } => {
                for value in self.number(lo)?..self.number(hi)? {
                    self.vars[*var] = value;
                    self.run(body)?;
                }
            }
            LoopNode::Streams { at, var, lo, hi, body } => {
                let (lo, hi) = (self.number(lo)?, self.number(hi)?);
                let (parent, many) = (self.stream, usize::try_from(hi - lo).unwrap_or(0));
                let children = self.fork(parent, many.saturating_sub(1));
                for child in &children {
                    self.child_signal(*at, true, SignalKind::Fork, *child);
                }
                for (stream, value) in [&[parent], &children[..]].concat().into_iter().zip(lo..hi) {
                    self.switch(stream);
                    self.vars[*var] = value;
                    if stream != parent {
                        self.child_signal(*at, false, SignalKind::Fork, stream);
                    }
                    self.lane.push(value);
                    self.facts.lanes.insert(self.lane.clone());
                    self.run(body)?;
                    self.lane.pop();
                    if stream != parent {
                        self.child_signal(*at, true, SignalKind::Join, stream);
                    }
                }
                self.switch(parent);
                for child in &children {
                    self.child_signal(*at, false, SignalKind::Join, *child);
                }
                self.children.entry(parent).or_default().1 -= children.len();
            }
            LoopNode::If(arms, otherwise) => {
                for (condition, body) in arms {
                    if self.number(condition)? != 0 {
                        return self.run(body);
                    }
                }
                self.run(otherwise)?;
            }
            LoopNode::Block { body, .. } => self.run(body)?,
            LoopNode::On { stream, body } => {
                let around = self.stream;
                self.switch(*stream);
                self.run(body)?;
                self.switch(around);
            }
            LoopNode::Do { function, args, .. } => {
                let function = &self.functions.ok_or(Differs)?.functions[*function];
                let args =
                    args.iter().map(|arg| self.number(arg)).collect::<RunResult<Vec<_>>>()?;
                for (param, arg) in function.params.iter().zip(args) {
                    self.vars[*param] = arg;
                }
                self.run(&function.body)?;
            }
            LoopNode::Signal { at, post, kind, peer, lane } => {
                let peer = self.index(peer)?;
                let lane = match lane {
                    Some(number) => {
                        let lane: usize = self.index(number)?;
                        self.lanes.get(lane).ok_or(Differs)?.clone()
                    }
                    None => self.lane.clone(),
                };
                self.push(*at, LoopEvent::Signal(*post, *kind, peer, lane));
            }
            LoopNode::Move { at, chain, srcs, dsts } => {
                let mut places = |all: &[LoopPlace]| {
                    all.iter().map(|place| self.place(place)).collect::<RunResult<Vec<_>>>()
                };
                let (srcs, dsts) = (places(srcs)?, places(dsts)?);
                self.push(*at, LoopEvent::Move(*chain, srcs, dsts));
            }
            LoopNode::Message { at, send, request, step } => {
                let request = self.index(request)?;
                let event = match step {
                    MessageStep::Begin { peer, tag, place } => {
                        let (peer, tag) = (self.index(peer)?, self.index(tag)?);
                        LoopEvent::Begin(*send, request, peer, tag, self.place(place)?)
                    }
                    MessageStep::Finish(many) => {
                        LoopEvent::Finish(*send, request, self.index(many)?)
                    }
                };
                self.push(*at, event);
            }
        }
        Ok(())
    }

    /// Returns child streams that are not running, which earlier loops on `parent` may have had.
    fn fork(&mut self, parent: usize, many: usize) -> Vec<usize> {
        let (mut known, running) = self.children.remove(&parent).unwrap_or_default();
        self.facts.nested |= many > 0 && (parent > 0 || running > 0);
        let first = 1 + self.children.values().map(|(all, _)| all.len()).sum::<usize>();
        while known.len() < running + many {
            known.push(first + known.len());
        }
        let taken = known[running..running + many].to_vec();
        self.children.insert(parent, (known, running + many));
        taken
    }

    fn switch(&mut self, stream: usize) {
        self.streams.resize(self.streams.len().max(stream + 1), Vec::new());
        self.stream = stream;
    }

    fn child_signal(&mut self, at: At, post: bool, kind: SignalKind, child: usize) {
        self.push(at, LoopEvent::Signal(post, kind, child as u32, Vec::new()));
    }

    fn push(&mut self, at: At, event: LoopEvent) {
        self.streams[self.stream].push((at.id, event));
    }
}
