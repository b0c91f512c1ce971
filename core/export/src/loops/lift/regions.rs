//! Regions as arithmetic: the start, the width and the slot of a part of a buffer.

use super::scopes::LiftScope;
use super::{Lift, LiftResult, Unfit};
use crate::loops::ir::{
    LoopNode, LoopPlace, Number, Piece, binary, entry, executing, product, sum, times,
};
use roundelay_core::program::ir::{Expr, Kind, Op, Stmt, VarId};
use roundelay_core::schedule::Buffer;
use roundelay_core::syntax::ast::BinOp;

/// A region or its pieces, as far as arithmetic expresses them.
#[derive(Clone)]
pub(super) enum Cut {
    Region(BufferPart),
    /// Equal pieces of a region, and their number.
    Even(BufferPart, i64),
    /// Pieces of a region, and the table of their starts and of the last end.
    Weighted(BufferPart, usize),
    /// Slots that have the shape of a region.
    Slots(BufferPart),
    /// Slots, or one slot, that take the shape of the data moved there.
    Shapeless(Buffer, Option<Number>),
    /// Any other region: each move of it has a table.
    Other,
}

/// An operand: its rank, if that is not the executing rank, and its region.
pub(super) type RankCut = (Option<Number>, Cut);

/// A part of a buffer, in pieces of a unit.
#[derive(Clone)]
pub(super) struct BufferPart {
    pub(super) buffer: Buffer,
    pub(super) lo: Number,
    pub(super) width: Number,
    pub(super) slot: Number,
    pub(super) base: Number,
    /// The units of the buffer that it is cut from.
    pub(super) units: u32,
    /// The blocks that contain the part, each with its ranks and its width: each of these ranks has its own block,
    /// which begins its number times the width later.
    pub(super) blocks: Vec<(LiftScope, i64)>,
}

impl BufferPart {
    /// Returns a whole buffer of `units` units, each of `pieces` pieces.
    pub(super) fn whole(buffer: Buffer, units: u32, pieces: u64) -> Self {
        let zero = || Number::int(0);
        let width = Number::int(i64::from(units) * pieces as i64);
        Self { buffer, lo: zero(), width, slot: zero(), base: zero(), units, blocks: Vec::new() }
    }

    fn piece(self) -> (Buffer, Piece) {
        let Self { buffer, lo, width, slot, base, .. } = self;
        (buffer, Piece::Computed { lo, width, slot, base })
    }

    /// Returns one of `many` equal pieces.
    pub(super) fn even(self, index: Number, many: i64) -> Self {
        match self.width.op {
            Op::Int(width) => {
                let width = width / many;
                let lo = sum(self.lo, times(index, width));
                Self { lo, width: Number::int(width), ..self }
            }
            _ => {
                let width = binary(BinOp::Div, self.width, Number::int(many));
                let lo = sum(self.lo, product(index, width.clone()));
                Self { lo, width, ..self }
            }
        }
    }
}

impl<'p> Lift<'p> {
    /// Returns a region or its pieces, as arithmetic.
    pub(super) fn cut(&mut self, expr: &'p Expr) -> LiftResult<Cut> {
        let args = &expr.args;
        Ok(match expr.op {
            Op::Var(var) => self.frame.regions.get(&var).cloned().unwrap_or(Cut::Other),
            Op::Input => self.frame.buffers[0].clone(),
            Op::Output => self.frame.buffers[1].clone(),
            Op::Split => match self.cut(&args[0])? {
                Cut::Region(part) => self.split(part, &args[1]),
                _ => Cut::Other,
            },
            Op::Piece => match self.cut(&args[0])? {
                Cut::Even(part, many) => Cut::Region(part.even(self.number(&args[1])?, many)),
                Cut::Weighted(part, table) => {
                    let index = self.number(&args[1])?;
                    let at = |index| entry((table, vec![index]));
                    let width = binary(
                        BinOp::Sub,
                        at(sum(index.clone(), Number::int(1))),
                        at(index.clone()),
                    );
                    Cut::Region(BufferPart { lo: sum(part.lo, at(index)), width, ..part })
                }
                Cut::Slots(part) => {
                    Cut::Region(BufferPart { slot: self.number(&args[1])?, ..part })
                }
                Cut::Shapeless(buffer, None) => {
                    Cut::Shapeless(buffer, Some(self.number(&args[1])?))
                }
                _ => Cut::Other,
            },
            Op::Pieces => match (self.cut(&args[0])?, args[1].op, args[2].op) {
                (Cut::Even(part, many), Op::Int(lo), Op::Int(hi)) if 0 <= lo && lo <= hi => {
                    let first = part.even(Number::int(lo), many);
                    let width = product(Number::int(hi - lo), first.width.clone());
                    Cut::Region(BufferPart { width, ..first })
                }
                _ => Cut::Other,
            },
            _ => Cut::Other,
        })
    }

    /// Cuts a region in equal pieces, or by a list of weights that is the same at every rank and time.
    fn split(&mut self, part: BufferPart, by: &'p Expr) -> Cut {
        let whole = match part.width.op {
            Op::Int(width) => Some(width),
            _ => None,
        };
        // For a width that is not constant, the run of the text checks that pieces are whole.
        let fits = |many: i64| whole.is_none_or(|width| width % many == 0);
        match (self.weights(by), whole) {
            (Some(weights), _) if weights.iter().all(|weight| *weight == weights[0]) => {
                let many = weights.len() as i64;
                if fits(many) { Cut::Even(part, many) } else { Cut::Other }
            }
            (Some(weights), Some(width)) => {
                let total: i64 = weights.iter().sum();
                let mut sums = vec![0];
                for weight in &weights {
                    sums.push(sums[sums.len() - 1] + weight);
                }
                if sums.iter().any(|sum| sum * width % total != 0) {
                    return Cut::Other;
                }
                let entries = sums.iter().map(|sum| vec![sum * width / total]).collect();
                Cut::Weighted(part, self.tables.table(vec![sums.len()], false, entries))
            }
            (Some(_), None) => Cut::Other,
            (None, _) => match self.many(by) {
                Some(many) if fits(many) => Cut::Even(part, many),
                _ => Cut::Other,
            },
        }
    }

    /// Gives a view variables for its start and width if its width is computed: otherwise every move would compute them
    /// again.
    pub(super) fn told(&mut self, var: VarId, cut: Cut, nodes: &mut Vec<LoopNode>) -> Cut {
        let name = self.frame.program.vars[var.0 as usize].name.clone();
        let mut told = |part: BufferPart| {
            if let Op::Int(_) = part.width.op {
                return part;
            }
            let lo = self.named(&name, part.lo.clone(), nodes);
            let width = self.named(&format!("{name}_width"), part.width.clone(), nodes);
            BufferPart { lo, width, ..part }
        };
        match cut {
            Cut::Region(part) => Cut::Region(told(part)),
            Cut::Even(part, many) => Cut::Even(told(part), many),
            other => other,
        }
    }

    pub(super) fn is_pieces(&self, expr: &Expr) -> bool {
        match expr.op {
            Op::Split => true,
            Op::Var(var) => self.frame.program.vars[var.0 as usize].kind == Kind::Pieces,
            Op::If => self.is_pieces(&expr.args[1]),
            _ => false,
        }
    }

    /// Returns the operands of a move, in the order of the op.
    pub(super) fn places(
        &mut self,
        stmt: &'p Stmt,
        exprs: impl Iterator<Item = &'p Expr>,
    ) -> LiftResult<Vec<LoopPlace>> {
        let mut cuts = self.operands(exprs)?;
        self.shaped(&mut cuts);
        self.placed_all(stmt, cuts)
    }

    /// Returns the operands of a statement.
    pub(super) fn operands(
        &mut self,
        exprs: impl Iterator<Item = &'p Expr>,
    ) -> LiftResult<Vec<RankCut>> {
        let mut cuts = Vec::new();
        for expr in exprs {
            let (Op::On, [peer, region]) = (expr.op, &expr.args[..]) else { return Err(Unfit) };
            let of = match peer.op {
                Op::Local => None,
                _ => Some(self.number(peer)?),
            };
            let cut = match self.cut(region)? {
                Cut::Region(part) => Cut::Region(self.placed(part, of.as_ref())?),
                other => other,
            };
            cuts.push((of, cut));
        }
        Ok(cuts)
    }

    /// Gives operands without a shape that of the first one with a shape.
    pub(super) fn shaped(&self, cuts: &mut [RankCut]) {
        let shape = cuts.iter().find(|(_, cut)| !matches!(cut, Cut::Shapeless(..)));
        let Some((_, Cut::Region(part))) = shape else { return };
        let shape = self.in_slot(part);
        for (_, cut) in cuts {
            if let Cut::Shapeless(buffer, Some(slot)) = cut {
                let (buffer, slot) = (*buffer, slot.clone());
                *cut = Cut::Region(BufferPart { buffer, slot, ..shape.clone() });
            }
        }
    }

    /// Returns the places of a move's operands.
    pub(super) fn placed_all(
        &mut self,
        stmt: &'p Stmt,
        cuts: Vec<RankCut>,
    ) -> LiftResult<Vec<LoopPlace>> {
        let many = cuts.len();
        let place = |(at, (of, cut))| {
            let (buffer, piece) = match cut {
                Cut::Region(part) => part.piece(),
                _ => self.listed(stmt, at, many)?,
            };
            Ok(LoopPlace { of, buffer, piece, step: None })
        };
        cuts.into_iter().enumerate().map(place).collect()
    }

    /// Returns a part as it lies at a rank (the executing rank if `of` is `None`): in this rank's blocks.
    pub(super) fn placed(
        &mut self,
        part: BufferPart,
        of: Option<&Number>,
    ) -> LiftResult<BufferPart> {
        let BufferPart { mut lo, blocks, .. } = part.clone();
        for (scope, width) in &blocks {
            let number = self.number_of(scope, of.cloned().unwrap_or(executing()))?;
            lo = sum(lo, times(number, *width));
        }
        Ok(BufferPart { lo, blocks: Vec::new(), ..part })
    }

    /// Returns a part as it lies in a slot with its shape: whole units before it are not counted.
    fn in_slot(&self, part: &BufferPart) -> BufferPart {
        let unit = i64::try_from(self.pieces).unwrap_or(i64::MAX);
        let lo = match part.lo.op {
            Op::Int(lo) => Number::int(lo.rem_euclid(unit)),
            _ if unit == 1 => Number::int(0),
            _ if part.units == 1 => part.lo.clone(),
            _ => binary(BinOp::Rem, part.lo.clone(), Number::int(unit)),
        };
        BufferPart { lo: lo.clone(), base: lo, ..part.clone() }
    }
}
