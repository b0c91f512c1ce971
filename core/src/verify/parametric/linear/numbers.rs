//! Numbers of the linear class: terms in the rank, nranks and the round. A rank is named by its place in the natural
//! order or in one ring, never by both: so every fact about the natural order holds for every order of that ring.

use super::{Linear, Region};
use crate::collective::Collective;
use crate::program::ir::{Expr, Op};
use crate::rational::Rat;
use crate::source::Span;
use crate::syntax::ast::BinOp;
use crate::values::arith::IntFn;
use crate::verify::parametric::eval::{Cut, EvalScope, Frame, Numbers, Numeric, Value};
use crate::verify::parametric::rounds::{
    Answer, Covered as _, Interval, Naming as _, NotCovered, WHOLE,
};
use crate::verify::parametric::terms::{Affine, N};

/// An integer: `me` times the rank's coordinate, plus `form`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::verify::parametric) struct Int {
    me: i64,
    form: Affine,
    known: Known,
}

/// The relation of an [`Int`] to its term.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Known {
    /// The number is the term.
    Exactly,
    /// The number is the term's residue in `0..nranks`.
    Reduced,
    /// The number differs from the term by a multiple of nranks.
    Congruent,
}

impl Int {
    pub(super) const fn exactly(form: Affine) -> Self {
        Self { me: 0, form, known: Known::Exactly }
    }

    /// Returns the term of a number that is this term at every rank.
    pub(super) fn term(self) -> Option<Affine> {
        (self.me == 0 && self.known == Known::Exactly).then_some(self.form)
    }
}

impl Numeric for Int {
    const NRANKS: Self = Self::exactly(N);

    fn int(value: i64) -> Self {
        Self::exactly(Affine::int(value))
    }

    fn constant(&self) -> Option<i64> {
        self.term()?.constant()
    }
}

impl Numbers for Linear {
    type Number = Int;

    const UNKNOWN: &'static str = "this is not the same for every rank and nranks";

    fn rank_of(scope: &mut EvalScope<Self>, peer: Affine, at: Span) -> Answer<Int> {
        let known = if peer == Affine::ZERO { Known::Exactly } else { Known::Reduced };
        Ok(Int { form: peer, known, ..coordinate(scope, Frame::Rank, at)? })
    }

    fn peer(scope: &mut EvalScope<Self>, rank: &Int, of: &Expr, at: Span) -> Answer<Affine> {
        shift(scope, Frame::Rank, rank, of, at)
    }

    fn arithmetic(self, op: BinOp, left: &Int, right: &Int, at: Span) -> Answer<Int> {
        let value = arithmetic(op, *left, *right, at)?;
        if value.form.is_tame() && value.me.abs() <= 8 {
            return Ok(value);
        }
        Err(NotCovered::new(at, "this term is too steep to reason about"))
    }

    fn compare(
        scope: &EvalScope<Self>,
        op: BinOp,
        left: &Int,
        right: &Int,
        at: Span,
    ) -> Answer<bool> {
        if [left, right].iter().any(|v| v.known != Known::Exactly) || left.me != right.me {
            return Err(NotCovered::new(at, "the ranks do not all do the same"));
        }
        let facts = scope.class.facts(scope.rounds);
        let more = left.form - right.form;
        let one = Affine::int(1);
        let always = |op: BinOp| match op {
            BinOp::Eq => facts.prove_zero(more),
            BinOp::Ne => facts.prove(more - one) || facts.prove(-more - one),
            BinOp::Lt => facts.prove(-more - one),
            BinOp::Le => facts.prove(-more),
            BinOp::Gt => facts.prove(more - one),
            _ => facts.prove(more),
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
            _ => Err(NotCovered::new(at, "this holds in some rounds or for some nranks only")),
        }
    }

    fn function(self, _function: IntFn, _a: &Int, _b: &Int, at: Span) -> Answer<Int> {
        Err(NotCovered::new(at, "this is no linear term in nranks"))
    }

    fn cut(region: &Region, by: Value<Self>, of: &Expr, at: Span) -> Answer<Cut> {
        Ok(match by {
            Value::Number(by) if by == Int::NRANKS => {
                if region.block.is_some() {
                    return Err(NotCovered::new(at, "a block is cut in nranks pieces once more"));
                }
                Cut::Blocks
            }
            Value::Number(pieces) => {
                let pieces = pieces.constant().filter(|n| (1..=64).contains(n));
                let pieces =
                    pieces.covered(of.span, "neither nranks nor a constant from 1 to 64")?;
                Cut::At((1..=pieces as u64).collect())
            }
            Value::List(weights) => Cut::At(sums(&weights, of.span)?),
            _ => return Self::unknown(at),
        })
    }

    fn piece(mut region: Region, cut: &Cut, index: &Int, span: Span) -> Answer<Region> {
        match cut {
            Cut::Blocks => {
                let inside = index.known == Known::Reduced
                    || (index.known == Known::Exactly && index.form == Affine::ZERO);
                if index.me != 1 {
                    return Err(NotCovered::new(
                        span,
                        "this block does not move along with the rank",
                    ));
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
                let index = index.covered(span, "this is not always the same piece")?;
                let total = sums[sums.len() - 1];
                let before = if index == 0 { 0 } else { sums[index - 1] };
                let whole = region.finest();
                *whole = between(*whole, before, sums[index], total)
                    .covered(span, "this fraction is too fine to reason about")?;
            }
        }
        Ok(region)
    }

    fn other(scope: &mut EvalScope<Self>, expr: &Expr) -> Answer<Value<Self>> {
        let (span, args) = (expr.span, &expr.args);
        Ok(match expr.op {
            Op::Flip => return Err(NotCovered::new(span, "`!` of a number is no linear term")),
            Op::RingSeat => {
                let frame = ring(scope, &args[0])?;
                let seat = scope.number(&args[1])?;
                Value::Peer(shift(scope, frame, &seat, &args[1], span)?)
            }
            Op::RingNatural => Value::Ring(Frame::Rank),
            Op::RingLeft => Value::Peer(neighbor(scope, &args[0], -1)?),
            Op::RingRight => Value::Peer(neighbor(scope, &args[0], 1)?),
            Op::RingPosition => {
                let frame = ring(scope, &args[0])?;
                Value::Number(coordinate(scope, frame, span)?)
            }
            Op::Len => Value::Number(match scope.eval(&args[0])? {
                Value::Pieces(_, Cut::Blocks) => Int::NRANKS,
                Value::Pieces(_, Cut::At(sums)) => Int::int(sums.len() as i64),
                Value::List(items) => Int::int(items.len() as i64),
                _ => return Self::unknown(span),
            }),
            // The results of searches, and the questions about them.
            _ => return Self::unknown(span),
        })
    }
}

/// Returns the rank's own coordinate; an algorithm counts in one frame.
fn coordinate(scope: &mut EvalScope<Linear>, frame: Frame, span: Span) -> Answer<Int> {
    count_in(scope, frame, span)?;
    Ok(Int { me: 1, form: Affine::ZERO, known: Known::Exactly })
}

fn count_in(scope: &mut EvalScope<Linear>, frame: Frame, span: Span) -> Answer<()> {
    if *scope.class.frame.get_or_insert(frame) != frame {
        let what = "ranks and positions in a ring agree only if the ring is the natural order";
        return Err(NotCovered::of_rings(span, what));
    }
    if frame != Frame::Rank && scope.collective != Collective::AllReduce {
        let what = format!(
            "the blocks of {} belong to ranks, and not every ring has rank i at position i",
            scope.collective
        );
        return Err(NotCovered::of_rings(span, what));
    }
    Ok(())
}

fn ring(scope: &mut EvalScope<Linear>, expr: &Expr) -> Answer<Frame> {
    match scope.eval(expr)? {
        Value::Ring(frame) => Ok(frame),
        _ => Linear::unknown(expr.span),
    }
}

fn neighbor(scope: &mut EvalScope<Linear>, of: &Expr, by: i64) -> Answer<Affine> {
    let frame = ring(scope, of)?;
    count_in(scope, frame, of.span)?;
    Ok(Affine::int(by))
}

/// Returns the offset of `peer(rank)`, or of `ring[position]`.
fn shift(
    scope: &mut EvalScope<Linear>,
    frame: Frame,
    rank: &Int,
    of: &Expr,
    span: Span,
) -> Answer<Affine> {
    count_in(scope, frame, span)?;
    match *rank {
        Int { me: 1, form, known: Known::Reduced } => Ok(form),
        Int { me: 1, form, .. } if form == Affine::ZERO => Ok(form),
        Int { me: 1, .. } => {
            Err(NotCovered::new(of.span, "at some rank this is no rank; take it `% nranks`"))
        }
        _ => Err(NotCovered::new(of.span, "this is no shift of the rank")),
    }
}

fn scaled(value: Int, by: i64) -> Int {
    let known = if value.known == Known::Exactly { Known::Exactly } else { Known::Congruent };
    Int { me: value.me * by, form: value.form * by, known }
}

fn arithmetic(op: BinOp, left: Int, right: Int, span: Span) -> Answer<Int> {
    let known = match (left.known, right.known) {
        (Known::Exactly, Known::Exactly) => Known::Exactly,
        _ => Known::Congruent,
    };
    match (op, left.constant(), right.constant()) {
        (BinOp::Add, ..) => Ok(Int { me: left.me + right.me, form: left.form + right.form, known }),
        (BinOp::Sub, ..) => arithmetic(BinOp::Add, left, scaled(right, -1), span),
        (BinOp::Mul, Some(by), _) if by.abs() <= 8 => Ok(scaled(right, by)),
        (BinOp::Mul, _, Some(by)) if by.abs() <= 8 => Ok(scaled(left, by)),
        (BinOp::Rem, ..) if right == Int::NRANKS => Ok(Int { known: Known::Reduced, ..left }),
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
        total += weight.covered(span, "weights are constants from 1 to 1024")? as u64;
        sums.push(total);
    }
    if sums.is_empty() {
        return Err(NotCovered::new(span, "a split by no weights"));
    }
    Ok(sums)
}

fn between(whole: Interval, lo: u64, hi: u64, total: u64) -> Option<Interval> {
    Some((whole.0.boundary(whole.1, lo, total)?, whole.0.boundary(whole.1, hi, total)?))
        .filter(|(lo, hi): &(Rat, Rat)| lo < hi && hi.den() < 1 << 24)
}
