//! Expressions in relative coordinates: every value is a term in the rank, nranks and the round, or is not covered. A
//! rank is named by its place in the natural order or in one ring, never by both: so every fact about the natural order
//! holds for every order of that ring.

use super::linear::{Affine, Facts, N};
use super::rounds::{Interval, NotCovered, Owned, Region, WHOLE};
use crate::collective::Collective;
use crate::program::ir::{Expr, Op, VarId};
use crate::rational::Rat;
use crate::schedule::Buffer;
use crate::source::Span;
use crate::syntax::ast::BinOp;
use crate::values::arith;

/// An integer: `me` times the rank's coordinate, plus `form`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Int {
    pub(super) me: i64,
    pub(super) form: Affine,
    pub(super) known: Known,
}

/// The relation of an [`Int`] to its term.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Known {
    /// The number is the term.
    Exactly,
    /// The number is the term's residue in `0..nranks`.
    Reduced,
    /// The number differs from the term by a multiple of nranks.
    Congruent,
}

/// The unit that coordinates count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Frame {
    /// Ranks.
    Rank,
    /// Positions in the ring of that parameter.
    Ring(VarId),
}

/// The value of an expression.
#[derive(Clone, Debug)]
pub(super) enum EvalValue {
    /// A number, or a known truth value.
    Int(Int),
    /// A peer, counted from the rank, modulo nranks.
    Peer(Affine),
    Ring(Frame),
    List(Vec<Int>),
    Region(Region),
    Pieces(Region, Cut),
    Place(Owned),
}

/// The cut of a region.
#[derive(Clone, Debug)]
pub(super) enum Cut {
    /// A cut in nranks blocks.
    Blocks,
    /// A cut at these sums of weights; the last sum is the total.
    At(Vec<u64>),
}

/// The state of the walk that expressions read.
pub(super) struct EvalScope {
    pub(super) collective: Collective,
    pub(super) vars: Vec<Option<EvalValue>>,
    /// The facts about nranks and the round.
    pub(super) facts: Facts,
    /// The frame of all coordinates; the first use of a coordinate decides it.
    pub(super) frame: Option<Frame>,
}

type Answer<T> = Result<T, NotCovered>;

impl Int {
    pub(super) fn exactly(form: Affine) -> Self {
        Self { me: 0, form, known: Known::Exactly }
    }

    fn truth(holds: bool) -> Self {
        Self::exactly(Affine::int(holds.into()))
    }

    /// Returns a number that is equal at every rank, count and round.
    fn constant(self) -> Option<i64> {
        (self.me == 0 && self.known == Known::Exactly).then(|| self.form.constant())?
    }
}

impl EvalScope {
    pub(super) fn int(&mut self, expr: &Expr) -> Answer<Int> {
        match self.eval(expr)? {
            EvalValue::Int(value) => Ok(value),
            _ => Err(unknown(expr.span)),
        }
    }

    pub(super) fn bool(&mut self, expr: &Expr) -> Answer<bool> {
        let value = self.int(expr)?.constant().ok_or_else(|| unknown(expr.span))?;
        Ok(value != 0)
    }

    pub(super) fn peer(&mut self, expr: &Expr) -> Answer<Affine> {
        match self.eval(expr)? {
            EvalValue::Peer(offset) => Ok(offset),
            _ => Err(unknown(expr.span)),
        }
    }

    pub(super) fn place(&mut self, expr: &Expr) -> Answer<Owned> {
        match self.eval(expr)? {
            EvalValue::Place(place) => Ok(place),
            _ => Err(unknown(expr.span)),
        }
    }

    pub(super) fn region(&mut self, expr: &Expr) -> Answer<Region> {
        match self.eval(expr)? {
            EvalValue::Region(region) => Ok(region),
            _ => Err(unknown(expr.span)),
        }
    }

    /// Returns the value of a bound, which must be one term, known exactly, at every rank.
    pub(super) fn bound(&mut self, expr: &Expr) -> Answer<Affine> {
        match self.int(expr)? {
            Int { me: 0, form, known: Known::Exactly } => Ok(form),
            _ => Err(NotCovered::new(expr.span, "this bound differs from rank to rank")),
        }
    }

    pub(super) fn eval(&mut self, expr: &Expr) -> Answer<EvalValue> {
        let (span, args) = (expr.span, &expr.args);
        Ok(match expr.op {
            Op::Int(value) => EvalValue::Int(tame(Int::exactly(small(value, span)?), span)?),
            Op::Var(var) => self.vars[var.index()].clone().ok_or_else(|| unknown(span))?,
            Op::Rank => EvalValue::Int(self.coordinate(Frame::Rank, span)?),
            Op::Nranks => EvalValue::Int(Int::exactly(N)),
            Op::Local => EvalValue::Peer(Affine::ZERO),
            Op::Input => EvalValue::Region(self.buffer(Buffer::Input)),
            Op::Output => EvalValue::Region(self.buffer(Buffer::Output)),
            Op::Not => EvalValue::Int(Int::truth(!self.bool(&args[0])?)),
            Op::Neg => EvalValue::Int(scaled(self.int(&args[0])?, -1)),
            Op::Flip => return Err(NotCovered::new(span, "`!` of a number is no linear term")),
            Op::Binary(op) => self.binary(op, &args[0], &args[1], span)?,
            Op::If => {
                let chosen = if self.bool(&args[0])? { &args[1] } else { &args[2] };
                self.eval(chosen)?
            }
            Op::List => EvalValue::List(args.iter().map(|i| self.int(i)).collect::<Answer<_>>()?),
            Op::Function(function) => {
                let first = self.int(&args[0])?.constant();
                let second =
                    args.get(1).map_or(Ok(Some(0)), |arg| self.int(arg).map(Int::constant))?;
                let value = first.zip(second).and_then(|(a, b)| function.apply(a, b).ok());
                let value = value
                    .ok_or_else(|| NotCovered::new(span, "this is no linear term in nranks"))?;
                EvalValue::Int(Int::exactly(small(value, span)?))
            }
            Op::IsPowerOfTwo => {
                let value = self.int(&args[0])?.constant();
                let value = value
                    .ok_or_else(|| NotCovered::new(span, "this does not hold of every nranks"))?;
                EvalValue::Int(Int::truth(value > 0 && value & (value - 1) == 0))
            }
            Op::Peer => EvalValue::Peer(self.shift(Frame::Rank, &args[0], span)?),
            Op::RingSeat => {
                let frame = self.ring(&args[0])?;
                EvalValue::Peer(self.shift(frame, &args[1], span)?)
            }
            Op::RankOf => {
                let offset = self.peer(&args[0])?;
                let me = self.coordinate(Frame::Rank, span)?;
                let known = if offset == Affine::ZERO { Known::Exactly } else { Known::Reduced };
                EvalValue::Int(Int { form: offset, known, ..me })
            }
            Op::RingNatural => EvalValue::Ring(Frame::Rank),
            Op::RingLeft => EvalValue::Peer(self.neighbor(&args[0], -1)?),
            Op::RingRight => EvalValue::Peer(self.neighbor(&args[0], 1)?),
            Op::RingPosition => {
                let frame = self.ring(&args[0])?;
                EvalValue::Int(self.coordinate(frame, span)?)
            }
            Op::Split => {
                let (region, by) = (self.region(&args[0])?, &args[1]);
                let cut = match self.eval(by)? {
                    EvalValue::Int(Int { me: 0, form, known: Known::Exactly }) if form == N => {
                        blocks(region, span)?
                    }
                    EvalValue::Int(pieces) => {
                        let pieces = pieces.constant().filter(|n| (1..=64).contains(n));
                        let pieces = pieces.ok_or_else(|| {
                            NotCovered::new(by.span, "neither nranks nor a constant from 1 to 64")
                        })?;
                        Cut::At((1..=pieces as u64).collect())
                    }
                    EvalValue::List(weights) => Cut::At(sums(&weights, by.span)?),
                    _ => return Err(unknown(span)),
                };
                EvalValue::Pieces(region, cut)
            }
            Op::Piece => {
                let index = self.int(&args[1])?;
                match self.eval(&args[0])? {
                    EvalValue::Pieces(region, cut) => {
                        EvalValue::Region(piece(region, &cut, index, span)?)
                    }
                    _ => return Err(unknown(span)),
                }
            }
            Op::On => {
                let owner = self.peer(&args[0])?;
                EvalValue::Place(Owned { owner, region: self.region(&args[1])? })
            }
            Op::Len => match self.eval(&args[0])? {
                EvalValue::Pieces(_, Cut::Blocks) => EvalValue::Int(Int::exactly(N)),
                EvalValue::Pieces(_, Cut::At(sums)) => {
                    EvalValue::Int(Int::exactly(Affine::int(sums.len() as i64)))
                }
                EvalValue::List(items) => {
                    EvalValue::Int(Int::exactly(Affine::int(items.len() as i64)))
                }
                _ => return Err(unknown(span)),
            },
            // The results of searches, and the questions about them.
            _ => return Err(unknown(span)),
        })
    }

    fn buffer(&self, buffer: Buffer) -> Region {
        let many = match buffer {
            Buffer::Input => {
                matches!(self.collective, Collective::ReduceScatter | Collective::AllToAll)
            }
            _ => matches!(self.collective, Collective::AllGather | Collective::AllToAll),
        };
        Region { buffer, many, outer: WHOLE, block: None, inner: WHOLE }
    }

    /// Returns the rank's own coordinate; an algorithm counts in one frame.
    fn coordinate(&mut self, frame: Frame, span: Span) -> Answer<Int> {
        self.count_in(frame, span)?;
        Ok(Int { me: 1, form: Affine::ZERO, known: Known::Exactly })
    }

    fn count_in(&mut self, frame: Frame, span: Span) -> Answer<()> {
        if *self.frame.get_or_insert(frame) != frame {
            let what = "ranks and positions in a ring agree only if the ring is the natural order";
            return Err(NotCovered::of_rings(span, what));
        }
        if frame != Frame::Rank && self.collective != Collective::AllReduce {
            let what = format!(
                "the blocks of {} belong to ranks, and not every ring has rank i at position i",
                self.collective
            );
            return Err(NotCovered::of_rings(span, what));
        }
        Ok(())
    }

    fn ring(&mut self, expr: &Expr) -> Answer<Frame> {
        match self.eval(expr)? {
            EvalValue::Ring(frame) => Ok(frame),
            _ => Err(unknown(expr.span)),
        }
    }

    fn neighbor(&mut self, ring: &Expr, by: i64) -> Answer<Affine> {
        let frame = self.ring(ring)?;
        self.count_in(frame, ring.span)?;
        Ok(Affine::int(by))
    }

    /// Returns the offset of `peer(rank)`, or of `ring[position]`.
    fn shift(&mut self, frame: Frame, rank: &Expr, span: Span) -> Answer<Affine> {
        let value = self.int(rank)?;
        self.count_in(frame, span)?;
        match value {
            Int { me: 1, form, known: Known::Reduced } => Ok(form),
            Int { me: 1, form, .. } if form == Affine::ZERO => Ok(form),
            Int { me: 1, .. } => {
                Err(NotCovered::new(rank.span, "at some rank this is no rank; take it `% nranks`"))
            }
            _ => Err(NotCovered::new(rank.span, "this is no shift of the rank")),
        }
    }

    fn binary(&mut self, op: BinOp, left: &Expr, right: &Expr, span: Span) -> Answer<EvalValue> {
        if let BinOp::And | BinOp::Or = op {
            let decided = op == BinOp::Or;
            let left = self.bool(left)?;
            let holds = if left == decided { decided } else { self.bool(right)? };
            return Ok(EvalValue::Int(Int::truth(holds)));
        }
        match (self.eval(left)?, self.eval(right)?) {
            (EvalValue::Int(l), EvalValue::Int(r)) if op.precedence() > BinOp::Eq.precedence() => {
                tame(arithmetic(op, l, r, span)?, span).map(EvalValue::Int)
            }
            (EvalValue::Int(l), EvalValue::Int(r)) => {
                Ok(EvalValue::Int(Int::truth(self.compare(op, l, r, span)?)))
            }
            (EvalValue::Peer(_), EvalValue::Peer(_)) => {
                Err(NotCovered::new(span, "two peers are compared"))
            }
            _ => Err(unknown(span)),
        }
    }

    /// Compares two numbers; the answer must be equal at every rank, count and round.
    fn compare(&self, op: BinOp, left: Int, right: Int, span: Span) -> Answer<bool> {
        if [left, right].iter().any(|v| v.known != Known::Exactly) || left.me != right.me {
            return Err(NotCovered::new(span, "the ranks do not all do the same"));
        }
        let more = left.form - right.form;
        let (least, one) = (Affine::ZERO, Affine::int(1));
        let always = |op: BinOp| match op {
            BinOp::Eq => self.facts.prove_zero(more),
            BinOp::Ne => self.facts.prove(more - one) || self.facts.prove(-more - one),
            BinOp::Lt => self.facts.prove(-more - one),
            BinOp::Le => self.facts.prove(least - more),
            BinOp::Gt => self.facts.prove(more - one),
            _ => self.facts.prove(more),
        };
        let opposite = match op {
            BinOp::Eq => BinOp::Ne,
            BinOp::Ne => BinOp::Eq,
            BinOp::Lt => BinOp::Ge,
            BinOp::Le => BinOp::Gt,
            BinOp::Gt => BinOp::Le,
            _ => BinOp::Lt,
        };
        match (always(op), always(opposite)) {
            (true, _) => Ok(true),
            (_, true) => Ok(false),
            _ => Err(NotCovered::new(span, "this holds in some rounds or for some nranks only")),
        }
    }
}

fn blocks(region: Region, span: Span) -> Answer<Cut> {
    if region.block.is_some() {
        return Err(NotCovered::new(span, "a block is cut in nranks pieces once more"));
    }
    Ok(Cut::Blocks)
}

fn unknown(span: Span) -> NotCovered {
    NotCovered::new(span, "this is not the same for every rank and nranks")
}

fn small(value: i64, span: Span) -> Answer<Affine> {
    if value.abs() > 1 << 20 {
        return Err(NotCovered::new(span, "this number is too large to reason about"));
    }
    Ok(Affine::int(value))
}

/// Returns a value whose term is small enough to compute with.
fn tame(value: Int, span: Span) -> Answer<Int> {
    if value.form.is_tame() && value.me.abs() <= 8 {
        return Ok(value);
    }
    Err(NotCovered::new(span, "this term is too steep to reason about"))
}

fn scaled(value: Int, by: i64) -> Int {
    let known = if value.known == Known::Exactly { Known::Exactly } else { Known::Congruent };
    Int { me: value.me * by, form: value.form * by, known }
}

fn arithmetic(op: BinOp, left: Int, right: Int, span: Span) -> Answer<Int> {
    if let Some((l, r)) = left.constant().zip(right.constant()) {
        let value = arith::arithmetic(op, l, r)
            .map_err(|fault| NotCovered::new(span, fault.to_string()))?;
        return Ok(Int::exactly(small(value, span)?));
    }
    let known = match (left.known, right.known) {
        (Known::Exactly, Known::Exactly) => Known::Exactly,
        _ => Known::Congruent,
    };
    let nranks = Int::exactly(N);
    match (op, left.constant(), right.constant()) {
        (BinOp::Add, ..) => Ok(Int { me: left.me + right.me, form: left.form + right.form, known }),
        (BinOp::Sub, ..) => arithmetic(BinOp::Add, left, scaled(right, -1), span),
        (BinOp::Mul, Some(by), _) if by.abs() <= 8 => Ok(scaled(right, by)),
        (BinOp::Mul, _, Some(by)) if by.abs() <= 8 => Ok(scaled(left, by)),
        (BinOp::Rem, ..) if right == nranks => Ok(Int { known: Known::Reduced, ..left }),
        _ => {
            let of = if left.me != 0 || right.me != 0 {
                "of the rank is no shift of it"
            } else {
                "is no linear term here"
            };
            Err(NotCovered::new(span, format!("`{}` {of}", op.text())))
        }
    }
}

/// Returns the running sums of weights.
fn sums(weights: &[Int], span: Span) -> Answer<Vec<u64>> {
    let mut total = 0;
    let mut sums = Vec::new();
    for weight in weights {
        let weight = weight.constant().filter(|w| (1..=1 << 10).contains(w));
        total += weight
            .ok_or_else(|| NotCovered::new(span, "weights are constants from 1 to 1024"))?
            as u64;
        sums.push(total);
    }
    if sums.is_empty() {
        return Err(NotCovered::new(span, "a split by no weights"));
    }
    Ok(sums)
}

/// Returns piece `index` of a region.
fn piece(mut region: Region, cut: &Cut, index: Int, span: Span) -> Answer<Region> {
    match cut {
        Cut::Blocks => {
            let inside = index.known == Known::Reduced
                || (index.known == Known::Exactly && index.form == Affine::ZERO);
            if index.me != 1 {
                return Err(NotCovered::new(span, "this block does not move along with the rank"));
            }
            if !inside {
                return Err(NotCovered::new(
                    span,
                    "at some rank there is no such block; take it `% nranks`",
                ));
            }
            region.block = Some(index.form.residue());
            region.inner = WHOLE;
        }
        Cut::At(sums) => {
            let index = index.constant().and_then(|i| usize::try_from(i).ok());
            let index = index.filter(|i| *i < sums.len());
            let index =
                index.ok_or_else(|| NotCovered::new(span, "this is not always the same piece"))?;
            let total = sums[sums.len() - 1];
            let before = if index == 0 { 0 } else { sums[index - 1] };
            let whole = region.finest();
            *whole = between(*whole, before, sums[index], total).ok_or_else(|| {
                NotCovered::new(span, "this fraction is too fine to reason about")
            })?;
        }
    }
    Ok(region)
}

fn between(whole: Interval, lo: u64, hi: u64, total: u64) -> Option<Interval> {
    Some((whole.0.between(whole.1, lo, total)?, whole.0.between(whole.1, hi, total)?))
        .filter(|(lo, hi): &(Rat, Rat)| lo < hi && hi.den() < 1 << 24)
}
