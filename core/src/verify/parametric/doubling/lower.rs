//! Statements in a loop over the bits k of nranks: the actions of every rank, with its peers and blocks named by 2^k.

use super::eval::{TermScope, TermValue};
use super::program::{Action, Blocks, Doubling, Move, RoundStep, SeatPlace};
use super::terms::{Quantity, RoundSeat, Term};
use crate::collective::Collective;
use crate::ids::ScratchId;
use crate::program::ir::{self, Expr, Op, Stmt, StmtKind, VarId};
use crate::schedule::{Buffer, SignalKind};
use crate::source::Span;
use crate::values::arith::IntFn;
use crate::verify::parametric::rounds::NotCovered;

/// The most actions, with constant loops unrolled.
const MOST_STEPS: usize = 64;

/// The most statements that are visited, as steps may call each other.
const MOST_VISITED: usize = 1 << 12;

type Done = Result<(), NotCovered>;

/// Whether an expression of the program asks for the logarithm of a number, or whether it is a power of two.
pub(super) fn counts_bits(source: &ir::Program) -> bool {
    let mut blocks: Vec<&[Stmt]> = source.steps.iter().map(|step| &*step.body).collect();
    blocks.push(&source.body);
    while let Some(block) = blocks.pop() {
        for stmt in block {
            blocks.extend(stmt.blocks());
            let found = match &stmt.kind {
                StmtKind::For(_, _, hi, _) => asks(hi),
                StmtKind::Let(_, value) | StmtKind::Require(value, _) => asks(value),
                _ => false,
            };
            if found {
                return true;
            }
        }
    }
    false
}

fn asks(expr: &Expr) -> bool {
    matches!(expr.op, Op::IsPowerOfTwo | Op::Function(IntFn::Log2 | IntFn::CeilLog2))
        || expr.args.iter().any(asks)
}

/// Lowers `source` to its actions.
pub(super) fn lower(source: &ir::Program) -> Result<Doubling, NotCovered> {
    let header = source.header();
    if !matches!(source.collective, Collective::AllReduce | Collective::AllGather) {
        let what = "loops over the bits of nranks are proved in AllReduce and AllGather alone";
        return Err(NotCovered::new(header, what));
    }
    if let Some(param) = source.params.first() {
        let span = source.vars[param.var.index()].span;
        return Err(NotCovered::new(span, "its value decides what ranks do"));
    }
    let mut walk = Walk {
        source,
        scope: TermScope {
            collective: source.collective,
            powers_of_two: source.body.iter().any(requires_power_of_two),
            vars: vec![None; source.vars.len()],
            scratch: Vec::new(),
        },
        parts: Vec::new(),
        steps: Vec::new(),
        open: None,
        in_rounds: false,
        visited: 0,
    };
    walk.block(&source.body)?;
    let Walk { scope, parts, steps, .. } = walk;
    let program = Doubling {
        collective: source.collective,
        header,
        out_of_place: source.out_of_place,
        powers_of_two: scope.powers_of_two,
        parts,
        steps,
        scratch: scope.scratch,
    };
    one_family(&program)?;
    Ok(program)
}

/// Whether the statement refuses every nranks that is no power of two.
fn requires_power_of_two(stmt: &Stmt) -> bool {
    match &stmt.kind {
        StmtKind::Require(Expr { op: Op::IsPowerOfTwo, args, .. }, _) => {
            matches!(args[..], [Expr { op: Op::Nranks, .. }])
        }
        _ => false,
    }
}

/// Checks that peers are all `rank ^ 2^k`, with blocks in groups, or all `rank ± 2^k`, with blocks in runs; and that each
/// run of blocks has its second copy.
fn one_family(program: &Doubling) -> Done {
    let mut by_xor = None;
    for (i, step) in program.steps.iter().enumerate() {
        let mut seats = Vec::new();
        let mut found = Vec::new();
        match &step.action {
            Action::Post(_, seat) | Action::Wait(_, seat) => seats.push(*seat),
            Action::Move(step) => {
                for place in step.sources.iter().chain(&step.destinations) {
                    seats.push(place.owner);
                    match place.blocks {
                        Blocks::All => {}
                        Blocks::One(seat) => seats.push(seat),
                        Blocks::Group(seat) => {
                            seats.push(seat);
                            found.push(true);
                        }
                        Blocks::Run(seat) => {
                            seats.push(seat);
                            found.push(false);
                        }
                        Blocks::Front(_) | Blocks::Wrapped(_) => {
                            let what = "a run of blocks that may pass the last block: the copy \
                                        of the rest has to stand behind this one";
                            return program.fault(i, what);
                        }
                    }
                }
            }
        }
        let others = seats.into_iter().filter(|seat| *seat != RoundSeat::Own);
        found.extend(others.map(|seat| seat == RoundSeat::Partner));
        if found.into_iter().any(|xor| *by_xor.get_or_insert(xor) != xor) {
            let what = "peers `rank ^ 2^k` with groups of blocks, and peers `rank ± 2^k` with runs \
                        of blocks, in one program";
            return program.fault(i, what);
        }
    }
    Ok(())
}

struct Walk<'a> {
    source: &'a ir::Program,
    scope: TermScope,
    parts: Vec<bool>,
    steps: Vec<RoundStep>,
    /// The part of the next statement, if a part is begun.
    open: Option<usize>,
    in_rounds: bool,
    /// The statements that were visited.
    visited: usize,
}

impl<'a> Walk<'a> {
    fn set(&mut self, var: VarId, value: TermValue) {
        self.scope.vars[var.index()] = Some(value);
    }

    fn block(&mut self, body: &'a [Stmt]) -> Done {
        body.iter().try_for_each(|stmt| self.stmt(stmt))
    }

    fn stmt(&mut self, stmt: &'a Stmt) -> Done {
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
            StmtKind::If(arms, otherwise) => {
                if let [(condition, body)] = &arms[..]
                    && otherwise.is_empty()
                    && let Some(seat) = self.scope.wraps(condition)?
                {
                    return self.rest(seat, body, at);
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
                let like = self.scope.region(like)?;
                if count.is_some() || like.1 != Blocks::All || self.in_rounds {
                    return outside("scratch other than one slot that is like a whole buffer");
                }
                let blocks = self.scope.has_blocks(like.0);
                let buffer = Buffer::Scratch(ScratchId(self.scope.scratch.len() as u32));
                self.scope.scratch.push(blocks);
                self.set(*var, TermValue::Region(buffer, Blocks::All));
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
                let sources = vec![self.scope.place(src)?];
                let destinations = self.places(dsts)?;
                self.push(at, Action::Move(Move { sources, destinations, reduces: false }))?;
            }
            StmtKind::Reduce(srcs, dst) => {
                let destinations = vec![self.scope.place(dst)?];
                let sources = self.places(srcs)?;
                self.push(at, Action::Move(Move { sources, destinations, reduces: true }))?;
            }
            StmtKind::Post(kind @ (SignalKind::Ack | SignalKind::Data), peer) => {
                let seat = self.other(peer)?;
                self.push(at, Action::Post(*kind, seat))?;
            }
            StmtKind::Wait(kind @ (SignalKind::Ack | SignalKind::Data), peer) => {
                let seat = self.other(peer)?;
                self.push(at, Action::Wait(*kind, seat))?;
            }
            // Demands on a schedule, and the limits of its loops, are checked in the schedule.
            StmtKind::Demand(
                ir::Demand::Links(_)
                | ir::Demand::Order(_)
                | ir::Demand::Roundings(_)
                | ir::Demand::Uneven
                | ir::Demand::AtMost(..),
            )
            | StmtKind::Limit(_) => {}
            _ => {
                return outside(
                    "this is not covered in programs with loops over the bits of nranks",
                );
            }
        }
        Ok(())
    }

    fn places(&self, exprs: &'a [Expr]) -> Result<Vec<SeatPlace>, NotCovered> {
        exprs.iter().map(|expr| self.scope.place(expr)).collect()
    }

    /// Returns the seat of a peer to which a signal may go.
    fn other(&self, peer: &'a Expr) -> Result<RoundSeat, NotCovered> {
        match self.scope.peer(peer)? {
            RoundSeat::Own => Err(NotCovered::new(peer.span, "this peer is the rank itself")),
            seat => Ok(seat),
        }
    }

    /// Lowers a loop: a loop over the bits of nranks is a part of its own; a constant loop is unrolled.
    fn rounds(
        &mut self,
        var: VarId,
        lo: &'a Expr,
        hi: &'a Expr,
        body: &'a [Stmt],
        at: Span,
    ) -> Done {
        let (first, end) = (self.scope.number(lo)?, self.scope.number(hi)?);
        if let (Some(first), Some(end)) = (first.constant(), end.constant()) {
            if end.saturating_sub(first) > MOST_STEPS as i64 {
                return Err(NotCovered::new(at, "too many rounds to unroll"));
            }
            for k in first..end {
                self.set(var, TermValue::Number(Term::int(k)));
                self.block(body)?;
            }
            return Ok(());
        }
        if self.in_rounds {
            return Err(NotCovered::new(at, "a loop within a loop over the bits of nranks"));
        }
        if first.constant() != Some(0) || end != Term::of(Quantity::Rounds) {
            let what = "these are not the rounds 0..log2(nranks)";
            return Err(NotCovered::new(hi.span, what));
        }
        let outside = self.scope.clone();
        let start = self.steps.len();
        self.open = Some(self.parts.len());
        self.parts.push(true);
        self.in_rounds = true;
        // The first round sees values from outside, and every later round those of the round before. So where the
        // second round does what the first does, and leaves the same values, all rounds do.
        let mut rounds = Vec::new();
        for _ in 0..2 {
            self.steps.truncate(start);
            self.set(var, TermValue::Number(Term::of(Quantity::Round)));
            self.block(body)?;
            rounds.push((self.steps[start..].to_vec(), self.scope.clone()));
        }
        if rounds[0] != rounds[1] {
            return Err(NotCovered::new(at, "a round takes values over from the round before"));
        }
        (self.scope, self.in_rounds, self.open) = (outside, false, None);
        Ok(())
    }

    /// Lowers the copy of the rest of a run of blocks, which stands behind the copy of its blocks up to the last
    /// block: both are one copy of the run.
    fn rest(&mut self, seat: RoundSeat, body: &'a [Stmt], at: Span) -> Done {
        let before = self.steps.len();
        self.block(body)?;
        let front = |place: &SeatPlace| SeatPlace { blocks: Blocks::Front(seat), ..*place };
        let run = |place: &SeatPlace| SeatPlace { blocks: Blocks::Run(seat), ..*place };
        let whole = match &self.steps[..] {
            [.., first, last] if self.steps.len() == before + 1 && first.part == last.part => {
                match (&first.action, &last.action) {
                    (Action::Move(first), Action::Move(last))
                        if !first.reduces && !last.reduces =>
                    {
                        let all = || last.sources.iter().chain(&last.destinations);
                        let fits = all().all(|place| place.blocks == Blocks::Wrapped(seat))
                            && all().map(front).eq(first
                                .sources
                                .iter()
                                .chain(&first.destinations)
                                .copied());
                        fits.then(|| Move {
                            sources: last.sources.iter().map(run).collect(),
                            destinations: last.destinations.iter().map(run).collect(),
                            reduces: false,
                        })
                    }
                    _ => None,
                }
            }
            _ => None,
        };
        let Some(whole) = whole else {
            let what = "in some rounds and on some ranks only, and not the rest of the run of blocks \
                        that the statement before copies";
            return Err(NotCovered::new(at, what));
        };
        self.steps.truncate(before);
        if let Some(step) = self.steps.last_mut() {
            step.action = Action::Move(whole);
        }
        Ok(())
    }

    fn push(&mut self, at: Span, action: Action) -> Done {
        let part = *self.open.get_or_insert_with(|| {
            self.parts.push(false);
            self.parts.len() - 1
        });
        self.steps.push(RoundStep { at, part, action });
        if self.steps.len() > MOST_STEPS {
            return Err(NotCovered::new(at, "too many statements to reason about"));
        }
        Ok(())
    }
}
