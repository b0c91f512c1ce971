//! Statements in relative coordinates: the actions of a program as seen from every rank at once. Constant loops and
//! steps are unrolled, `parallel` becomes streams, and one level of the class's loops stays.

use super::eval::{EvalScope, Numbers, Numeric as _, Value};
use super::rounds::{Action, Answer, NotCovered, Owned, Region, RoundPart, RoundStep, Rounds};
use crate::ids::ScratchId;
use crate::program::ir::{self, Demand, Expr, Op, Stmt, StmtKind, VarId};
use crate::schedule::{Buffer, SignalKind};
use crate::source::Span;
use crate::syntax::ast::BinOp;

/// The most iterations of all constant loops; a program with more is too long to reason about.
const MOST_STEPS: usize = 64;

/// The most statements that are visited: steps may call each other, and loops may nest, without a useful bound.
const MOST_VISITED: usize = 1 << 12;

/// The most sources of one move.
const MAX_SOURCES: usize = 7;

/// A condition, and the statements that run where it holds.
pub(super) type Arm = (Expr, Vec<Stmt>);

/// The loops of a class of programs, and where its statements differ from those of other classes.
pub(super) trait Loops: Numbers {
    /// The reason why a loop of the class may not stand within another.
    const NESTED: &'static str;
    /// Whether there may be several streams: not with loops over the bits of nranks.
    const STREAMS: bool;

    /// The round at hand.
    const ROUND: Self::Number;

    /// Checks a bound of a loop or of streams.
    fn check_bound(_bound: &Self::Number, _at: Span) -> Answer<()> {
        Ok(())
    }

    /// Returns the number of iterations of a loop that is unrolled.
    fn between(first: &Self::Number, end: &Self::Number) -> Option<i64> {
        Some(end.constant()? - first.constant()?)
    }

    /// Returns the rounds of any other loop, at least one for each nranks.
    fn rounds(self, first: &Self::Number, end: &Self::Number, at: Span) -> Answer<Self::Rounds>;

    /// Returns the value of a parameter, which stands for every value that it may have.
    fn param(source: &ir::Program, param: &ir::Param) -> Answer<Value<Self>> {
        let span = source.vars[param.var.index()].span;
        Err(NotCovered::new(span, "its value decides what ranks do"))
    }

    /// Lowers the only arm of an `if`, which runs where its condition holds, in another way than by its one value;
    /// returns whether it did.
    fn guarded<'a>(_walk: &mut Walk<'a, Self>, _arm: &'a Arm, _at: Span) -> Answer<bool> {
        Ok(false)
    }

    /// Checks the whole program.
    fn check(_program: &Rounds<Self>) -> Answer<()> {
        Ok(())
    }
}

/// Lowers `source` to its actions for every nranks of the class.
pub(super) fn lower<C: Loops>(source: &ir::Program, class: C) -> Answer<Rounds<C>> {
    let scope = EvalScope {
        class,
        collective: source.collective,
        vars: vec![None; source.vars.len()],
        rounds: C::ONCE,
    };
    let mut walk = Walk {
        source,
        scope,
        program: Rounds {
            class,
            collective: source.collective,
            header: source.header(),
            out_of_place: source.out_of_place,
            parts: Vec::new(),
            steps: Vec::new(),
            scratch: 0,
        },
        open: None,
        section: 0,
        stream: 0,
        lane: None,
        visited: 0,
    };
    for param in &source.params {
        let value = C::param(source, param)?;
        walk.set(param.var, value);
    }
    walk.block(&source.body)?;
    C::check(&walk.program)?;
    Ok(walk.program)
}

/// The walk of one program.
pub(super) struct Walk<'a, C: Loops> {
    source: &'a ir::Program,
    pub(super) scope: EvalScope<C>,
    pub(super) program: Rounds<C>,
    /// The part of the next statement, if a part is begun.
    open: Option<usize>,
    section: usize,
    stream: usize,
    lane: Option<i64>,
    /// The statements that were visited.
    visited: usize,
}

impl<'a, C: Loops> Walk<'a, C> {
    fn set(&mut self, var: VarId, value: Value<C>) {
        self.scope.vars[var.index()] = Some(value);
    }

    pub(super) fn block(&mut self, body: &'a [Stmt]) -> Answer<()> {
        body.iter().try_for_each(|stmt| self.stmt(stmt))
    }

    fn stmt(&mut self, stmt: &'a Stmt) -> Answer<()> {
        let at = self.source.spans.get(stmt.at.index()).copied().unwrap_or_default();
        let outside = |what: &str| Err(NotCovered::new(at, what));
        self.visited += 1;
        if self.visited > MOST_VISITED {
            return outside("too many statements to reason about");
        }
        match &stmt.kind {
            StmtKind::Let(var, value) => {
                let value = self.scope.eval(value)?;
                self.set(*var, value);
            }
            StmtKind::For(var, lo, hi, body) => self.rounds(*var, lo, hi, body, at)?,
            StmtKind::Each(var, list, body) => match self.scope.eval(list)? {
                Value::List(items) => {
                    for item in items {
                        self.set(*var, Value::Number(item));
                        self.block(body)?;
                    }
                }
                _ => return Err(NotCovered::new(list.span, "this list differs from rank to rank")),
            },
            StmtKind::Parallel(var, lo, hi, body) => self.streams(*var, lo, hi, body, at)?,
            StmtKind::If(arms, otherwise) => {
                if let [arm] = &arms[..]
                    && otherwise.is_empty()
                    && C::guarded(self, arm, at)?
                {
                    return Ok(());
                }
                for (condition, body) in arms {
                    if self.scope.holds(condition)? {
                        return self.block(body);
                    }
                }
                self.block(otherwise)?;
            }
            StmtKind::Require(condition, _) => {
                if !self.scope.holds(condition)? {
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
                    return outside("a reduce of no sources, or of more than 7");
                }
                self.push(at, Action::Move(all, vec![dst]))?;
            }
            StmtKind::Switch(..) => {
                return outside("a switch moves data of all ranks at once");
            }
            StmtKind::Fifo(..) | StmtKind::Pass(_) => {
                return outside("the slots of a fifo are counted, not named by ranks");
            }
            // A demand on counts does not matter to a proof for all counts; but the divisor must be positive at every
            // nranks.
            StmtKind::Demand(Demand::Multiple(of, _)) => {
                let one = Expr { op: Op::Int(1), args: Box::new([]), span: of.span };
                let args = Box::new([of.clone(), one]);
                let positive = Expr { op: Op::Binary(BinOp::Ge), args, span: of.span };
                if !self.scope.holds(&positive)? {
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
            StmtKind::Post(kind @ (SignalKind::Ack | SignalKind::Data), peer) => {
                let peer = self.scope.peer(peer)?;
                self.push(at, Action::Post(*kind, peer))?;
            }
            StmtKind::Wait(kind @ (SignalKind::Ack | SignalKind::Data), peer) => {
                let peer = self.scope.peer(peer)?;
                self.push(at, Action::Wait(*kind, peer))?;
            }
            StmtKind::Post(..) | StmtKind::Wait(..) => {
                return outside("a signal of streams, or of a fifo");
            }
        }
        Ok(())
    }

    fn places(&mut self, exprs: &'a [Expr]) -> Answer<Vec<Owned<C>>> {
        exprs.iter().map(|expr| self.scope.place(expr)).collect()
    }

    fn bounds(&mut self, lo: &'a Expr, hi: &'a Expr) -> Answer<(C::Number, C::Number)> {
        let mut bound = |expr: &'a Expr| {
            let bound = self.scope.number(expr)?;
            C::check_bound(&bound, expr.span).map(|()| bound)
        };
        Ok((bound(lo)?, bound(hi)?))
    }

    /// Whether the statement stands in a loop that is not unrolled.
    fn in_rounds(&self) -> bool {
        self.scope.rounds != C::ONCE
    }

    /// Lowers a loop: a loop of the class is a part of its own; a constant loop is unrolled.
    fn rounds(
        &mut self,
        var: VarId,
        lo: &'a Expr,
        hi: &'a Expr,
        body: &'a [Stmt],
        at: Span,
    ) -> Answer<()> {
        let (first, end) = self.bounds(lo, hi)?;
        if let Some(rounds) = C::between(&first, &end) {
            if rounds > MOST_STEPS as i64 {
                return Err(NotCovered::new(at, "too many rounds to unroll"));
            }
            for k in 0..rounds {
                let round = self.scope.arithmetic(BinOp::Add, &first, &C::Number::int(k), at)?;
                self.set(var, Value::Number(round));
                self.block(body)?;
            }
            return Ok(());
        }
        if self.in_rounds() {
            return Err(NotCovered::new(at, C::NESTED));
        }
        let rounds = self.scope.class.rounds(&first, &end, hi.span)?;
        self.begin(rounds);
        self.scope.rounds = rounds;
        let (outside, start, visited) =
            (self.scope.vars.clone(), self.program.steps.len(), self.visited);
        // The first round sees values from outside, and every later round those of the round before. So where the
        // second round does what the first does, and leaves the same values, all rounds do.
        let mut passes = Vec::new();
        for _ in 0..2 {
            self.program.steps.truncate(start);
            self.visited = visited;
            self.set(var, Value::Number(C::ROUND.clone()));
            self.block(body)?;
            passes.push((self.program.steps[start..].to_vec(), self.scope.vars.clone()));
        }
        if passes[0] != passes[1] {
            return Err(NotCovered::new(at, "a round takes values over from the round before"));
        }
        (self.scope.vars, self.scope.rounds, self.open) = (outside, C::ONCE, None);
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
    ) -> Answer<()> {
        if !C::STREAMS {
            let what = "this is not covered in programs with loops over the bits of nranks";
            return Err(NotCovered::new(at, what));
        }
        let (first, end) = self.bounds(lo, hi)?;
        let Some((first, end)) = first.constant().zip(end.constant()) else {
            return Err(NotCovered::new(at, "the number of these streams grows with nranks"));
        };
        if self.in_rounds() || self.lane.is_some() {
            return Err(NotCovered::new(at, "a `parallel` within a loop over nranks or another"));
        }
        self.open = None;
        self.section += 1;
        for value in first..end {
            (self.stream, self.lane) = ((value - first) as usize, Some(value));
            self.set(var, Value::Number(C::Number::int(value)));
            self.block(body)?;
            self.open = None;
        }
        (self.stream, self.lane) = (0, None);
        self.section += 1;
        Ok(())
    }

    /// Lowers scratch: a slot like a region is a buffer of its own that is cut like the region.
    fn scratch(
        &mut self,
        var: VarId,
        count: Option<&'a Expr>,
        like: &'a Expr,
        at: Span,
    ) -> Answer<()> {
        let slot = match (self.scope.eval(like)?, count) {
            (Value::Region(region), None) if region.block.is_none() && !self.in_rounds() => region,
            _ => {
                let what = "scratch other than one slot that is alike on all ranks";
                return Err(NotCovered::new(at, what));
            }
        };
        let buffer = Buffer::Scratch(ScratchId(self.program.scratch));
        self.program.scratch += 1;
        self.set(var, Value::Region(Region { buffer, ..slot }));
        Ok(())
    }

    fn begin(&mut self, rounds: C::Rounds) -> usize {
        let (section, stream, lane) = (self.section, self.stream, self.lane);
        self.program.parts.push(RoundPart { section, stream, lane, rounds });
        *self.open.insert(self.program.parts.len() - 1)
    }

    fn push(&mut self, at: Span, action: Action<C>) -> Answer<()> {
        let part = self.open.unwrap_or_else(|| self.begin(C::ONCE));
        self.program.steps.push(RoundStep { at, part, action });
        if self.program.steps.len() > MOST_STEPS {
            return Err(NotCovered::new(at, "too many statements to reason about"));
        }
        Ok(())
    }
}
