//! Regions as arithmetic: where a part of a buffer begins, how wide it is, and in which slot it lies.

use super::{Answer, Lift, Unfit};
use crate::emit::hccl_cpp::tree::{Number, Piece, Place};
use crate::program::ir::{Expr, Kind, Op, Stmt};
use crate::schedule::Buffer;
use crate::syntax::ast::BinOp;

/// A region, or a region cut in pieces, as far as it is arithmetic.
#[derive(Clone)]
pub(super) enum Cut {
    Region(Part),
    /// So many equal pieces of a region.
    Even(Part, u64),
    /// Slots that have the shape of a region.
    Slots(Part),
    /// Slots, or one of them, that take the shape of what is moved there.
    Shapeless(Buffer, Option<Number>),
    /// Anything else: every move has a table of it.
    Other,
}

/// A part of a buffer, in pieces of a unit.
#[derive(Clone)]
pub(super) struct Part {
    pub(super) buffer: Buffer,
    pub(super) lo: Number,
    pub(super) width: u64,
    pub(super) slot: Number,
    pub(super) base: Number,
}

impl Part {
    fn piece(self) -> Answer<(Buffer, Piece)> {
        let Self { buffer, lo, width, slot, base } = self;
        let width = i64::try_from(width).map_err(|_| Unfit)?;
        Ok((buffer, Piece::Computed { lo, width, slot, base }))
    }
}

impl<'p> Lift<'p> {
    /// What a region or pieces are, as arithmetic.
    pub(super) fn cut(&mut self, expr: &'p Expr) -> Answer<Cut> {
        let args = &expr.args;
        let whole = |lift: &Self, buffer, units: u32| {
            let zero = || Number::Const(0);
            let width = u64::from(units) * lift.pieces;
            Cut::Region(Part { buffer, lo: zero(), width, slot: zero(), base: zero() })
        };
        Ok(match expr.op {
            Op::Var(var) => self.regions.get(&var).cloned().unwrap_or(Cut::Other),
            Op::Input => whole(self, Buffer::Input, self.units[0]),
            Op::Output => whole(self, Buffer::Output, self.units[1]),
            Op::Split => match (self.cut(&args[0])?, self.many(&args[1])) {
                (Cut::Region(part), Some(many)) if part.width % many == 0 => Cut::Even(part, many),
                _ => Cut::Other,
            },
            Op::Piece => match self.cut(&args[0])? {
                Cut::Even(part, many) => {
                    let width = part.width / many;
                    let index = self.number(&args[1])?;
                    Cut::Region(Part { lo: sum(part.lo, times(index, width)), width, ..part })
                }
                Cut::Slots(part) => Cut::Region(Part { slot: self.number(&args[1])?, ..part }),
                Cut::Shapeless(buffer, None) => {
                    Cut::Shapeless(buffer, Some(self.number(&args[1])?))
                }
                _ => Cut::Other,
            },
            Op::Pieces => match (self.cut(&args[0])?, args[1].op, args[2].op) {
                (Cut::Even(part, many), Op::Int(lo), Op::Int(hi)) if 0 <= lo && lo <= hi => {
                    let one = part.width / many;
                    let lo_at = sum(part.lo, times(Number::Const(lo), one));
                    Cut::Region(Part { lo: lo_at, width: one * (hi - lo) as u64, ..part })
                }
                _ => Cut::Other,
            },
            _ => Cut::Other,
        })
    }

    pub(super) fn is_pieces(&self, expr: &Expr) -> bool {
        match expr.op {
            Op::Split => true,
            Op::Var(var) => self.program.vars[var.0 as usize].kind == Kind::Pieces,
            Op::If => self.is_pieces(&expr.args[1]),
            _ => false,
        }
    }

    /// A number of pieces that is the same at every rank and time.
    fn many(&self, expr: &Expr) -> Option<u64> {
        match expr.op {
            Op::Int(value) => u64::try_from(value).ok().filter(|many| *many > 0),
            Op::Nranks => Some(self.nranks.into()),
            _ => None,
        }
    }

    /// The operands of a move, in the order of the op.
    pub(super) fn places(
        &mut self,
        stmt: &'p Stmt,
        exprs: impl Iterator<Item = &'p Expr>,
    ) -> Answer<Vec<Place>> {
        let exprs: Vec<_> = exprs.collect();
        let mut cuts = Vec::new();
        for expr in &exprs {
            let (Op::On, [peer, region]) = (expr.op, &expr.args[..]) else { return Err(Unfit) };
            let of = match peer.op {
                Op::Local => None,
                _ => Some(self.number(peer)?),
            };
            cuts.push((of, self.cut(region)?));
        }
        // The first operand that has a shape gives it to those that have none.
        let shape = cuts.iter().find(|(_, cut)| !matches!(cut, Cut::Shapeless(..)));
        let shape = match shape {
            Some((_, Cut::Region(part))) => Some(self.in_slot(part)),
            _ => None,
        };
        let mut places = Vec::new();
        for (at, (of, cut)) in cuts.into_iter().enumerate() {
            let (buffer, piece) = match (cut, &shape) {
                (Cut::Region(part), _) => part.piece()?,
                (Cut::Shapeless(buffer, Some(slot)), Some(shape)) => {
                    Part { buffer, slot, ..shape.clone() }.piece()?
                }
                _ => self.listed(stmt, at, exprs.len())?,
            };
            places.push(Place { of, buffer, piece });
        }
        Ok(places)
    }

    /// A part as it lies in a slot that took its shape: whole units before it do not count.
    fn in_slot(&self, part: &Part) -> Part {
        let unit = i64::try_from(self.pieces).unwrap_or(i64::MAX);
        let units = match part.buffer {
            Buffer::Input => self.units[0],
            Buffer::Output => self.units[1],
            Buffer::Scratch(_) => 1,
        };
        let lo = match &part.lo {
            Number::Const(lo) => Number::Const(lo.rem_euclid(unit)),
            lo if units == 1 => lo.clone(),
            lo => Number::Binary(BinOp::Rem, Box::new([lo.clone(), Number::Const(unit)])),
        };
        Part { lo: lo.clone(), base: lo, ..part.clone() }
    }
}

fn times(index: Number, width: u64) -> Number {
    match (index, width) {
        (Number::Const(index), _) => Number::Const(index * width as i64),
        (index, 1) => index,
        (index, _) => Number::Binary(BinOp::Mul, Box::new([index, Number::Const(width as i64)])),
    }
}

fn sum(a: Number, b: Number) -> Number {
    match (a, b) {
        (Number::Const(0), b) => b,
        (a, Number::Const(0)) => a,
        (Number::Const(a), Number::Const(b)) => Number::Const(a + b),
        (a, b) => Number::Binary(BinOp::Add, Box::new([a, b])),
    }
}
