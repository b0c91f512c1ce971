//! Statements in relative coordinates: the actions of a program as seen from every rank at once. Constant loops and
//! steps are unrolled, `parallel` becomes streams, and one level of loops over nranks stays.

use super::eval::{EvalScope, EvalValue, Frame, Int};
use super::linear::{Affine, Facts, N, S};
use super::rounds::{Action, NotCovered, Owned, Region, RoundPart, RoundStep, Rounds};
use crate::ids::ScratchId;
use crate::program::ir::{self, Demand, Expr, Op, Stmt, StmtKind, VarId};
use crate::schedule::Buffer;
use crate::source::Span;
use crate::syntax::ast::BinOp;
use crate::values::params::ParamTy;

/// The most iterations of all constant loops; a program with more is too long to reason about.
const MOST_STEPS: usize = 64;

/// The most statements that are visited: steps may call each other, and loops may nest, without a useful bound.
const MOST_VISITED: usize = 1 << 12;

/// The most sources of one move.
const MAX_SOURCES: usize = 7;

/// Lowers `source` to its actions for every `nranks >= from`.
pub(super) fn lower(source: &ir::Program, from: u32) -> Result<Rounds, NotCovered> {
    let scope = EvalScope {
        collective: source.collective,
        vars: vec![None; source.vars.len()],
        facts: Facts::ranks(from),
        frame: None,
    };
    let header = source.header();
    if source.collective.is_rooted() {
        return Err(NotCovered::new(header, "the root does not do what the others do"));
    }
    let mut walk = Walk {
        source,
        scope,
        program: Rounds {
            collective: source.collective,
            header,
            out_of_place: source.out_of_place,
            parts: Vec::new(),
            steps: Vec::new(),
        },
        open: None,
        section: 0,
        stream: 0,
        lane: None,
        depth: Depth::Straight,
        scratch: 0,
        visited: 0,
    };
    for param in &source.params {
        walk.param(param)?;
    }
    walk.block(&source.body)?;
    Ok(walk.program)
}

/// The place of a statement: straight code or a loop over nranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Depth {
    Straight,
    Loop,
}

struct Walk<'a> {
    source: &'a ir::Program,
    scope: EvalScope,
    program: Rounds,
    /// The part of the next statement, if a part is begun.
    open: Option<usize>,
    section: usize,
    stream: usize,
    lane: Option<i64>,
    depth: Depth,
    scratch: u32,
    /// The statements that were visited.
    visited: usize,
}

type Done = Result<(), NotCovered>;

impl<'a> Walk<'a> {
    fn param(&mut self, param: &'a ir::Param) -> Done {
        let span = self.source.vars[param.var.index()].span;
        if param.ty != ParamTy::Ring {
            return Err(NotCovered::new(span, "its value decides what ranks do"));
        }
        if let Some(default) = &param.default
            && !always_a_ring(default, None)
        {
            return Err(NotCovered::new(default.span, "this is no ring for every nranks"));
        }
        self.set(param.var, EvalValue::Ring(Frame::Ring(param.var)));
        Ok(())
    }

    fn set(&mut self, var: VarId, value: EvalValue) {
        self.scope.vars[var.index()] = Some(value);
    }

    fn block(&mut self, body: &'a [Stmt]) -> Done {
        body.iter().try_for_each(|stmt| self.stmt(stmt))
    }

    fn stmt(&mut self, stmt: &'a Stmt) -> Done {
        let at = self.source.spans.get(stmt.at.index()).copied().unwrap_or_default();
        self.visited += 1;
        if self.visited > MOST_VISITED {
            return Err(NotCovered::new(at, "too many statements to reason about"));
        }
        match &stmt.kind {
            StmtKind::Let(var, value) => {
                let value = self.scope.eval(value)?;
                self.set(*var, value);
            }
            StmtKind::For(var, lo, hi, body) => self.rounds(*var, lo, hi, body, at)?,
            StmtKind::Each(var, list, body) => match self.scope.eval(list)? {
                EvalValue::List(items) => {
                    for item in items {
                        self.set(*var, EvalValue::Int(item));
                        self.block(body)?;
                    }
                }
                _ => return Err(NotCovered::new(list.span, "this list differs from rank to rank")),
            },
            StmtKind::Parallel(var, lo, hi, body) => self.streams(*var, lo, hi, body, at)?,
            StmtKind::If(arms, otherwise) => {
                for (condition, body) in arms {
                    if self.scope.bool(condition)? {
                        return self.block(body);
                    }
                }
                self.block(otherwise)?;
            }
            StmtKind::Require(condition, _) => {
                if !self.scope.bool(condition)? {
                    return Err(NotCovered::new(condition.span, "this holds for no nranks here"));
                }
            }
            StmtKind::Scratch(var, count, like, _) => {
                self.scratch(*var, count.as_ref(), like, at)?;
            }
            StmtKind::Step(step, args) => {
                let step = &self.source.steps[step.0 as usize];
                for (param, arg) in step.params.iter().zip(args) {
                    let value = self.scope.eval(arg)?;
                    self.set(*param, value);
                }
                self.block(&step.body)?;
            }
            StmtKind::Copy(src, dsts) => {
                let srcs = vec![self.scope.place(src)?];
                let dsts = self.places(dsts)?;
                self.push(at, Action::Move(srcs, dsts))?;
            }
            StmtKind::Reduce(srcs, dst) => {
                let dst = self.scope.place(dst)?;
                let mut all = vec![dst];
                all.extend(self.places(srcs)?);
                if !(2..=1 + MAX_SOURCES).contains(&all.len()) {
                    return Err(NotCovered::new(at, "a reduce of no sources, or of more than 7"));
                }
                self.push(at, Action::Move(all, vec![dst]))?;
            }
            StmtKind::Fifo(..) | StmtKind::Pass(_) => {
                return Err(NotCovered::new(
                    at,
                    "the slots of a fifo are counted, not named by ranks",
                ));
            }
            // A demand on counts does not matter to a proof for all counts; but the divisor must be positive at every
            // nranks.
            StmtKind::Demand(Demand::Multiple(of, _)) => {
                let one = Expr { op: Op::Int(1), args: Box::new([]), span: of.span };
                let args = Box::new([of.clone(), one]);
                let positive = Expr { op: Op::Binary(BinOp::Ge), args, span: of.span };
                if !self.scope.bool(&positive)? {
                    return Err(NotCovered::new(of.span, "this is no divisor for some nranks"));
                }
            }
            // The demands on a schedule, and the limits of its loops, are checked in the schedule.
            StmtKind::Demand(_) | StmtKind::Limit(_) => {}
            StmtKind::Within(group, _) => {
                return Err(NotCovered::new(group.span, "a group of ranks sees others than all"));
            }
            StmtKind::Call(call) => {
                return Err(NotCovered::new(call.input.span, "another algorithm runs here"));
            }
            StmtKind::Post(kind, peer) => {
                let offset = self.scope.peer(peer)?;
                self.push(at, Action::Post(*kind, offset))?;
            }
            StmtKind::Wait(kind, peer) => {
                let offset = self.scope.peer(peer)?;
                self.push(at, Action::Wait(*kind, offset))?;
            }
        }
        Ok(())
    }

    fn places(&mut self, exprs: &'a [Expr]) -> Result<Vec<Owned>, NotCovered> {
        exprs.iter().map(|expr| self.scope.place(expr)).collect()
    }

    /// Lowers a loop: a loop over nranks is a part of its own; a constant loop is unrolled.
    fn rounds(
        &mut self,
        var: VarId,
        lo: &'a Expr,
        hi: &'a Expr,
        body: &'a [Stmt],
        at: Span,
    ) -> Done {
        let (first, end) = (self.scope.bound(lo)?, self.scope.bound(hi)?);
        if let Some(rounds) = (end - first).constant() {
            if rounds > MOST_STEPS as i64 {
                return Err(NotCovered::new(at, "too many rounds to unroll"));
            }
            for k in 0..rounds {
                self.set(var, EvalValue::Int(Int::exactly(first + Affine::int(k))));
                self.block(body)?;
            }
            return Ok(());
        }
        if self.depth == Depth::Loop {
            return Err(NotCovered::new(at, "a loop over nranks within another"));
        }
        let last = end - Affine::int(1);
        if !self.scope.facts.prove(last - first) {
            return Err(NotCovered::new(hi.span, "for some nranks this loop has no round"));
        }
        if !self.scope.facts.prove(N - Affine::int(1) - last + first) {
            return Err(NotCovered::new(hi.span, "this loop may have more than nranks rounds"));
        }
        self.begin(first, last)?;
        let outside = std::mem::replace(&mut self.scope.facts, Facts::ranks(0));
        self.scope.facts = outside.within(S, first, last);
        self.depth = Depth::Loop;
        self.set(var, EvalValue::Int(Int::exactly(S)));
        self.block(body)?;
        self.depth = Depth::Straight;
        self.scope.facts = outside;
        self.open = None;
        Ok(())
    }

    /// Lowers a `parallel`: every iteration is a stream of its own.
    fn streams(
        &mut self,
        var: VarId,
        lo: &'a Expr,
        hi: &'a Expr,
        body: &'a [Stmt],
        at: Span,
    ) -> Done {
        let (first, end) = (self.scope.bound(lo)?, self.scope.bound(hi)?);
        let Some((first, end)) = first.constant().zip(end.constant()) else {
            return Err(NotCovered::new(at, "the number of these streams grows with nranks"));
        };
        if self.depth == Depth::Loop || self.lane.is_some() {
            return Err(NotCovered::new(at, "a `parallel` within a loop over nranks or another"));
        }
        self.open = None;
        self.section += 1;
        for value in first..end {
            (self.stream, self.lane) = ((value - first) as usize, Some(value));
            self.set(var, EvalValue::Int(Int::exactly(Affine::int(value))));
            self.block(body)?;
            self.open = None;
        }
        (self.stream, self.lane) = (0, None);
        self.section += 1;
        Ok(())
    }

    /// Lowers scratch: a slot like a region is a buffer of its own that is cut like the region.
    fn scratch(&mut self, var: VarId, count: Option<&'a Expr>, like: &'a Expr, at: Span) -> Done {
        let slot = match (self.scope.eval(like)?, count) {
            (EvalValue::Region(region), None) if region.block.is_none() || region.many => region,
            _ => {
                return Err(NotCovered::new(
                    at,
                    "scratch other than one slot that is alike on all ranks",
                ));
            }
        };
        if self.depth == Depth::Loop || slot.block.is_some() {
            return Err(NotCovered::new(
                at,
                "scratch other than one slot that is alike on all ranks",
            ));
        }
        let buffer = Buffer::Scratch(ScratchId(self.scratch));
        self.scratch += 1;
        self.set(var, EvalValue::Region(Region { buffer, ..slot }));
        Ok(())
    }

    fn begin(&mut self, first: Affine, last: Affine) -> Done {
        if self.program.steps.len() > MOST_STEPS {
            return Err(NotCovered::new(
                self.program.header,
                "too many statements to reason about",
            ));
        }
        self.open = Some(self.program.parts.len());
        let (section, stream, lane) = (self.section, self.stream, self.lane);
        self.program.parts.push(RoundPart { section, stream, lane, first, last });
        Ok(())
    }

    fn push(&mut self, at: Span, action: Action) -> Done {
        if self.open.is_none() {
            self.begin(Affine::ZERO, Affine::ZERO)?;
        }
        let part = self.open.unwrap_or_default();
        self.program.steps.push(RoundStep { at, part, action });
        if self.program.steps.len() > MOST_STEPS {
            return Err(NotCovered::new(at, "too many statements to reason about"));
        }
        Ok(())
    }
}

/// Whether a ring parameter's default is a ring of all ranks for every nranks.
fn always_a_ring(default: &Expr, nranks: Option<i64>) -> bool {
    match (default.op, &default.args[..]) {
        (Op::RingNatural, _) => true,
        (Op::RingTwisted, _) => nranks == Some(8),
        (Op::If, [condition, then, otherwise]) => {
            let named = match (condition.op, &condition.args[..]) {
                (Op::Binary(BinOp::Eq), [left, right]) => match (left.op, right.op) {
                    (Op::Nranks, Op::Int(n)) => Some(n),
                    _ => None,
                },
                _ => None,
            };
            named.is_some() && always_a_ring(then, named) && always_a_ring(otherwise, nranks)
        }
        _ => false,
    }
}
