//! Expressions in relative coordinates: every value is a term in the rank, nranks and the round, or leaves
//! the class. A rank is named by its place in the natural order or in one ring, never by both: whatever
//! holds of the natural order then holds of every order of that ring.

use super::linear::{Affine, Facts, N};
use super::program::{Interval, Outside, Place, Region, WHOLE};
use crate::check::hir::{Expr, ExprKind, VarId};
use crate::collective::Collective;
use crate::rational::Rat;
use crate::schedule::Buffer;
use crate::schedule::arith;
use crate::source::Span;
use crate::syntax::ast::{BinOp, UnOp};

/// An integer: `me` times the rank's coordinate, plus `form`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Int {
    pub(super) me: i64,
    pub(super) form: Affine,
    pub(super) known: Known,
}

/// In which sense an [`Int`] is its term.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Known {
    /// It is the term.
    Exactly,
    /// It is the term's residue in `0..nranks`.
    Reduced,
    /// It differs from the term by a multiple of nranks.
    Congruent,
}

/// What coordinates count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Frame {
    /// Ranks.
    Rank,
    /// Positions in the ring of that parameter.
    Ring(VarId),
}

/// A value.
#[derive(Clone, Debug)]
pub(super) enum Value {
    Int(Int),
    Bool(bool),
    /// Counted from the rank, modulo nranks.
    Peer(Affine),
    Ring(Frame),
    List(Vec<Int>),
    Region(Region),
    Pieces(Region, Cut),
    Place(Place),
    Places(Affine, Region, Cut),
}

/// How a region is cut.
#[derive(Clone, Debug)]
pub(super) enum Cut {
    /// In nranks blocks.
    Blocks,
    /// At these sums of weights; the last is the total.
    At(Vec<u64>),
}

/// The state of the walk that expressions see.
pub(super) struct Scope {
    pub(super) collective: Collective,
    pub(super) vars: Vec<Option<Value>>,
    /// What is known of nranks and the round.
    pub(super) facts: Facts,
    /// Settled by the first coordinate that is used.
    pub(super) frame: Option<Frame>,
}

type Answer<T> = Result<T, Outside>;

impl Int {
    pub(super) fn exactly(form: Affine) -> Self {
        Self { me: 0, form, known: Known::Exactly }
    }

    /// A number that is the same at every rank, count and round.
    fn constant(self) -> Option<i64> {
        (self.me == 0 && self.known == Known::Exactly).then(|| self.form.constant())?
    }
}

impl Scope {
    pub(super) fn int(&mut self, expr: &Expr) -> Answer<Int> {
        match self.eval(expr)? {
            Value::Int(value) => Ok(value),
            _ => Err(unknown(expr.span)),
        }
    }

    pub(super) fn bool(&mut self, expr: &Expr) -> Answer<bool> {
        match self.eval(expr)? {
            Value::Bool(value) => Ok(value),
            _ => Err(unknown(expr.span)),
        }
    }

    pub(super) fn peer(&mut self, expr: &Expr) -> Answer<Affine> {
        match self.eval(expr)? {
            Value::Peer(offset) => Ok(offset),
            _ => Err(unknown(expr.span)),
        }
    }

    pub(super) fn place(&mut self, expr: &Expr) -> Answer<Place> {
        match self.eval(expr)? {
            Value::Place(place) => Ok(place),
            _ => Err(unknown(expr.span)),
        }
    }

    pub(super) fn region(&mut self, expr: &Expr) -> Answer<Region> {
        match self.eval(expr)? {
            Value::Region(region) => Ok(region),
            _ => Err(unknown(expr.span)),
        }
    }

    /// The value of a bound, which must be one term, known exactly, at every rank.
    pub(super) fn bound(&mut self, expr: &Expr) -> Answer<Affine> {
        match self.int(expr)? {
            Int { me: 0, form, known: Known::Exactly } => Ok(form),
            _ => Err(Outside::new(expr.span, "this bound differs from rank to rank")),
        }
    }

    pub(super) fn eval(&mut self, expr: &Expr) -> Answer<Value> {
        let span = expr.span;
        Ok(match &*expr.kind {
            ExprKind::Int(value) => Value::Int(tame(Int::exactly(small(*value, span)?), span)?),
            ExprKind::Bool(value) => Value::Bool(*value),
            ExprKind::Var(var) => self.vars[var.0 as usize].clone().ok_or_else(|| unknown(span))?,
            ExprKind::Rank => Value::Int(self.coordinate(Frame::Rank, span)?),
            ExprKind::Nranks => Value::Int(Int::exactly(N)),
            ExprKind::Local => Value::Peer(Affine::ZERO),
            ExprKind::Input => Value::Region(self.buffer(Buffer::Input)),
            ExprKind::Output => Value::Region(self.buffer(Buffer::Output)),
            ExprKind::Unary(op, operand) => match (op, self.eval(operand)?) {
                (UnOp::Not, Value::Bool(value)) => Value::Bool(!value),
                (UnOp::Neg, Value::Int(value)) => Value::Int(scaled(value, -1)),
                _ => return Err(Outside::new(span, "`!` of a number is no linear term")),
            },
            ExprKind::Binary(op, left, right) => self.binary(*op, left, right, span)?,
            ExprKind::If(condition, then, otherwise) => {
                let chosen = if self.bool(condition)? { then } else { otherwise };
                self.eval(chosen)?
            }
            ExprKind::List(items) => {
                Value::List(items.iter().map(|i| self.int(i)).collect::<Answer<_>>()?)
            }
            ExprKind::IntFn(function, args) => {
                let known = |v: Int| v.constant();
                let first = known(self.int(&args[0])?);
                let second = args.get(1).map_or(Ok(Some(0)), |arg| self.int(arg).map(known))?;
                let value = first.zip(second).and_then(|(a, b)| function.apply(a, b).ok());
                let value =
                    value.ok_or_else(|| Outside::new(span, "this is no linear term in nranks"))?;
                Value::Int(Int::exactly(small(value, span)?))
            }
            ExprKind::IsPowerOfTwo(x) => {
                let value = self.int(x)?.constant();
                let value = value
                    .ok_or_else(|| Outside::new(span, "this does not hold of every nranks"))?;
                Value::Bool(value > 0 && value & (value - 1) == 0)
            }
            ExprKind::Peer(rank) => Value::Peer(self.shift(Frame::Rank, rank, span)?),
            ExprKind::RingSeat(ring, position) => {
                let frame = self.ring(ring)?;
                Value::Peer(self.shift(frame, position, span)?)
            }
            ExprKind::RankOf(peer) => {
                let offset = self.peer(peer)?;
                let me = self.coordinate(Frame::Rank, span)?;
                let known = if offset == Affine::ZERO { Known::Exactly } else { Known::Reduced };
                Value::Int(Int { form: offset, known, ..me })
            }
            ExprKind::RingNatural => Value::Ring(Frame::Rank),
            ExprKind::RingLeft(ring) => Value::Peer(self.neighbor(ring, -1)?),
            ExprKind::RingRight(ring) => Value::Peer(self.neighbor(ring, 1)?),
            ExprKind::RingPosition(ring) => {
                let frame = self.ring(ring)?;
                Value::Int(self.coordinate(frame, span)?)
            }
            ExprKind::Split(region, by) => {
                let region = self.region(region)?;
                let cut = match self.eval(by)? {
                    Value::Int(Int { me: 0, form, known: Known::Exactly }) if form == N => {
                        blocks(region, span)?
                    }
                    Value::Int(pieces) => {
                        let pieces = pieces.constant().filter(|n| (1..=64).contains(n));
                        let pieces = pieces.ok_or_else(|| {
                            Outside::new(by.span, "neither nranks nor a constant from 1 to 64")
                        })?;
                        Cut::At((1..=pieces as u64).collect())
                    }
                    Value::List(weights) => Cut::At(sums(&weights, by.span)?),
                    _ => return Err(unknown(span)),
                };
                Value::Pieces(region, cut)
            }
            ExprKind::Block(region, index) => {
                let region = self.region(region)?;
                let cut = blocks(region, span)?;
                let index = self.int(index)?;
                Value::Region(piece(region, &cut, index, span)?)
            }
            ExprKind::Piece(pieces, index) => {
                let index = self.int(index)?;
                match self.eval(pieces)? {
                    Value::Pieces(region, cut) => Value::Region(piece(region, &cut, index, span)?),
                    Value::Places(owner, region, cut) => {
                        Value::Place(Place { owner, region: piece(region, &cut, index, span)? })
                    }
                    _ => return Err(unknown(span)),
                }
            }
            ExprKind::On(peer, region) => {
                let owner = self.peer(peer)?;
                match self.eval(region)? {
                    Value::Region(region) => Value::Place(Place { owner, region }),
                    Value::Pieces(region, cut) => Value::Places(owner, region, cut),
                    _ => return Err(unknown(span)),
                }
            }
            ExprKind::Len(of) => match self.eval(of)? {
                Value::Pieces(_, Cut::Blocks) => Value::Int(Int::exactly(N)),
                Value::Pieces(_, Cut::At(sums)) => {
                    Value::Int(Int::exactly(Affine::int(sums.len() as i64)))
                }
                Value::List(items) => Value::Int(Int::exactly(Affine::int(items.len() as i64))),
                _ => return Err(unknown(span)),
            },
            ExprKind::Rev(_)
            | ExprKind::Element(..)
            | ExprKind::Range(..)
            | ExprKind::RingTwisted
            | ExprKind::RingOrder(_)
            | ExprKind::RingAround(_)
            | ExprKind::RingsChannels(_)
            | ExprKind::RingsDisjoint(..)
            | ExprKind::RingAt(..)
            | ExprKind::Tree(_)
            | ExprKind::TreeField(..)
            | ExprKind::Groups(_)
            | ExprKind::GroupsField(..)
            | ExprKind::GroupsOf(..)
            | ExprKind::GroupAt(..)
            | ExprKind::Topology(..)
            | ExprKind::Linked(..)
            | ExprKind::Neighbors(..)
            | ExprKind::Relays(..)
            | ExprKind::TopologyField(..)
            | ExprKind::Rust(_)
            | ExprKind::Error => return Err(unknown(span)),
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

    /// The rank's own coordinate; an algorithm counts in one frame.
    fn coordinate(&mut self, frame: Frame, span: Span) -> Answer<Int> {
        self.count_in(frame, span)?;
        Ok(Int { me: 1, form: Affine::ZERO, known: Known::Exactly })
    }

    fn count_in(&mut self, frame: Frame, span: Span) -> Answer<()> {
        if *self.frame.get_or_insert(frame) != frame {
            let what = "ranks and positions in a ring agree only if the ring is the natural order";
            return Err(Outside::new(span, what));
        }
        if frame != Frame::Rank && self.collective != Collective::AllReduce {
            let what = format!(
                "the blocks of {} belong to ranks, and not every ring has rank i at position i",
                self.collective
            );
            return Err(Outside::new(span, what));
        }
        Ok(())
    }

    fn ring(&mut self, expr: &Expr) -> Answer<Frame> {
        match self.eval(expr)? {
            Value::Ring(frame) => Ok(frame),
            _ => Err(unknown(expr.span)),
        }
    }

    fn neighbor(&mut self, ring: &Expr, by: i64) -> Answer<Affine> {
        let frame = self.ring(ring)?;
        self.count_in(frame, ring.span)?;
        Ok(Affine::int(by))
    }

    /// The offset of `peer(rank)`, or of `ring[position]`.
    fn shift(&mut self, frame: Frame, rank: &Expr, span: Span) -> Answer<Affine> {
        let value = self.int(rank)?;
        self.count_in(frame, span)?;
        match value {
            Int { me: 1, form, known: Known::Reduced } => Ok(form),
            Int { me: 1, form, .. } if form == Affine::ZERO => Ok(form),
            Int { me: 1, .. } => {
                Err(Outside::new(rank.span, "at some rank this is no rank; take it `% nranks`"))
            }
            _ => Err(Outside::new(rank.span, "this is no shift of the rank")),
        }
    }

    fn binary(&mut self, op: BinOp, left: &Expr, right: &Expr, span: Span) -> Answer<Value> {
        if let BinOp::And | BinOp::Or = op {
            let decided = op == BinOp::Or;
            let left = self.bool(left)?;
            return Ok(Value::Bool(if left == decided { decided } else { self.bool(right)? }));
        }
        match (self.eval(left)?, self.eval(right)?) {
            (Value::Int(l), Value::Int(r)) if op.precedence() > BinOp::Eq.precedence() => {
                tame(arithmetic(op, l, r, span)?, span).map(Value::Int)
            }
            (Value::Int(l), Value::Int(r)) => self.compare(op, l, r, span).map(Value::Bool),
            (Value::Bool(l), Value::Bool(r)) => Ok(Value::Bool((l == r) == (op == BinOp::Eq))),
            (Value::Peer(_), Value::Peer(_)) => Err(Outside::new(span, "two peers are compared")),
            _ => Err(unknown(span)),
        }
    }

    /// A comparison whose answer is the same at every rank, count and round.
    fn compare(&self, op: BinOp, left: Int, right: Int, span: Span) -> Answer<bool> {
        if [left, right].iter().any(|v| v.known != Known::Exactly) || left.me != right.me {
            return Err(Outside::new(span, "the ranks do not all do the same"));
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
            _ => Err(Outside::new(span, "this holds in some rounds or for some nranks only")),
        }
    }
}

fn blocks(region: Region, span: Span) -> Answer<Cut> {
    if region.block.is_some() {
        return Err(Outside::new(span, "a block is cut in nranks pieces once more"));
    }
    Ok(Cut::Blocks)
}

fn unknown(span: Span) -> Outside {
    Outside::new(span, "this is not the same for every rank and nranks")
}

fn small(value: i64, span: Span) -> Answer<Affine> {
    if value.abs() > 1 << 20 {
        return Err(Outside::new(span, "this number is too large to reason about"));
    }
    Ok(Affine::int(value))
}

/// A value whose term is small enough to compute with.
fn tame(value: Int, span: Span) -> Answer<Int> {
    if value.form.is_tame() && value.me.abs() <= 8 {
        return Ok(value);
    }
    Err(Outside::new(span, "this term is too steep to reason about"))
}

fn scaled(value: Int, by: i64) -> Int {
    let known = if value.known == Known::Exactly { Known::Exactly } else { Known::Congruent };
    Int { me: value.me * by, form: value.form * by, known }
}

fn arithmetic(op: BinOp, left: Int, right: Int, span: Span) -> Answer<Int> {
    if let Some((l, r)) = left.constant().zip(right.constant()) {
        let value =
            arith::arithmetic(op, l, r).map_err(|fault| Outside::new(span, fault.to_string()))?;
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
            Err(Outside::new(span, format!("`{}` {of}", op.text())))
        }
    }
}

/// Sums of weights.
fn sums(weights: &[Int], span: Span) -> Answer<Vec<u64>> {
    let mut total = 0;
    let mut sums = Vec::new();
    for weight in weights {
        let weight = weight.constant().filter(|w| (1..=1 << 10).contains(w));
        total += weight.ok_or_else(|| Outside::new(span, "weights are constants from 1 to 1024"))?
            as u64;
        sums.push(total);
    }
    if sums.is_empty() {
        return Err(Outside::new(span, "a split by no weights"));
    }
    Ok(sums)
}

/// Piece `index` of a region.
fn piece(mut region: Region, cut: &Cut, index: Int, span: Span) -> Answer<Region> {
    match cut {
        Cut::Blocks => {
            let inside = index.known == Known::Reduced
                || (index.known == Known::Exactly && index.form == Affine::ZERO);
            if index.me != 1 {
                return Err(Outside::new(span, "this block does not move along with the rank"));
            }
            if !inside {
                return Err(Outside::new(
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
                index.ok_or_else(|| Outside::new(span, "this is not always the same piece"))?;
            let total = sums[sums.len() - 1];
            let before = if index == 0 { 0 } else { sums[index - 1] };
            let whole = region.finest();
            *whole = between(*whole, before, sums[index], total)
                .ok_or_else(|| Outside::new(span, "this fraction is too fine to reason about"))?;
        }
    }
    Ok(region)
}

fn between(whole: Interval, lo: u64, hi: u64, total: u64) -> Option<Interval> {
    Some((whole.0.between(whole.1, lo, total)?, whole.0.between(whole.1, hi, total)?))
        .filter(|(lo, hi): &(Rat, Rat)| lo < hi && hi.den() < 1 << 24)
}
