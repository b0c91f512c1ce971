//! The moves that make one piece: folds of up to eight sources, partials where an expression branches.
//!
//! A move rounds after each source, or once: it takes as many folds of the author as round alike. A partial of an
//! expression that is not rounded keeps narrow floats as f32.

use std::collections::{BTreeMap, BTreeSet};

use rustc_hash::FxHashMap;

use crate::ids::RankId;
use crate::rational::Rat;
use crate::schedule::{Buffer, Operand};
use crate::verify::values::ValueId;

use super::Unfit;
use super::flow::{Destination, Item, aliased};
use super::share::Piece;
use super::statements::StatementSet;
use super::writer::{OpWriter, Partial, Provenance};

/// The most sources of a move, and the most destinations.
const MOST: usize = 8;

/// A source of a move.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PieceSource {
    Input(RankId),
    Partial(Partial),
}

/// The operands of the moves that make an expression.
struct Sources {
    /// The innermost first.
    all: Vec<PieceSource>,
    /// Whether the folds between them round.
    chain: bool,
    provenance: Provenance,
}

/// Writes the moves that make one piece of the outputs.
pub(super) struct PieceWriter<'w, 's> {
    writer: &'w mut OpWriter<'s>,
    piece: &'w Piece<'s>,
    /// The partial of each kept expression, and the number of moves that still read it.
    kept: FxHashMap<u32, (Partial, u32)>,
    free: Vec<Partial>,
    /// The number of partials, and of wide ones.
    slots: [u32; 2],
}

impl<'w, 's> PieceWriter<'w, 's> {
    pub(super) fn new(writer: &'w mut OpWriter<'s>, piece: &'w Piece<'s>) -> Self {
        Self { writer, piece, kept: FxHashMap::default(), free: Vec::new(), slots: [0; 2] }
    }

    pub(super) fn write(mut self) -> Result<(), Unfit> {
        let items: Vec<&Item> =
            self.piece.items.iter().map(|i| &self.piece.column.items[*i]).collect();
        let (uses, inputs) = self.uses(&items)?;
        // Expressions that several moves need. The map has operands before the expressions over them.
        for (&expr, &times) in uses.iter().filter(|(_, times)| **times > 1) {
            if self.writer.flow.values.parts(expr).is_some() {
                let slot = self.partial(expr)?;
                self.kept.insert(expr, (slot, times));
            }
        }
        let mut late = Vec::new();
        for (at, item) in items.iter().enumerate() {
            // In place, this item may overwrite an input that later items read.
            let clobbers = at + 1 < items.len()
                && item.dsts.iter().any(|dst| {
                    let per_unit = self.writer.flow.cells.per_unit;
                    aliased(self.writer.schedule, per_unit, *dst) && inputs.contains(&dst.rank)
                });
            if clobbers {
                let slot = self.partial(item.expr)?;
                late.push((slot, item));
            } else {
                self.item(item)?;
            }
        }
        for (slot, item) in late {
            let provenance = self.goes(item);
            self.spread(slot, &item.dsts, provenance)?;
        }
        Ok(())
    }

    /// Returns the number of times that each expression is read, and the ranks whose inputs are read.
    fn uses(&self, items: &[&Item]) -> Result<(BTreeMap<u32, u32>, BTreeSet<RankId>), Unfit> {
        let mut uses = BTreeMap::new();
        let mut inputs = BTreeSet::new();
        let mut open: Vec<u32> = items.iter().map(|item| item.expr).collect();
        while let Some(expr) = open.pop() {
            let times = uses.entry(expr).or_insert(0);
            *times += 1;
            if *times > 1 {
                continue;
            }
            if !self.writer.flow.values.is_straight(expr) {
                return Err(Unfit("it mixes elements of different places".into()));
            }
            match self.writer.flow.values.parts(expr) {
                Some((operands, _)) => open.extend(operands),
                None => {
                    inputs.insert(RankId(expr));
                }
            }
        }
        Ok((uses, inputs))
    }

    /// Writes an item directly to its destinations.
    fn item(&mut self, item: &Item) -> Result<(), Unfit> {
        let sources = self.sources(item.expr)?;
        let here = |rank: RankId| rank == self.piece.owner;
        let local = sources.all.iter().any(|s| {
            matches!(s, PieceSource::Partial(_)) || matches!(s, PieceSource::Input(r) if here(*r))
        }) || item.dsts.iter().any(|dst| here(dst.rank));
        if item.dsts.len() > MOST || !local {
            let slot = self.fold(sources, item.expr)?;
            let provenance = self.goes(item);
            return self.spread(slot, &item.dsts, provenance);
        }
        let mut sources = self.shorten(sources)?;
        let dsts: Vec<Operand> = item.dsts.iter().map(|dst| self.output(*dst)).collect();
        let all = sources.provenance.all;
        sources.provenance.all = self.writer.sets.union(all, item.brought);
        self.push(&sources, &dsts)?;
        self.release(&sources.all);
        Ok(())
    }

    /// Writes an expression into a partial.
    fn partial(&mut self, expr: u32) -> Result<Partial, Unfit> {
        let sources = self.sources(expr)?;
        self.fold(sources, expr)
    }

    /// Returns the statements that copied an item to its destinations; if there are none, those of its fold, which
    /// wrote there.
    fn goes(&self, item: &Item) -> Provenance {
        if item.brought == StatementSet::EMPTY {
            self.folds(item.expr)
        } else {
            Provenance { first: None, all: item.brought }
        }
    }

    /// Returns the statements that make an expression of its operands.
    fn folds(&self, expr: u32) -> Provenance {
        let OpWriter { schedule, flow, sets, .. } = &*self.writer;
        let first = flow.values.parts(expr).map(|(_, op)| schedule.op(op).at);
        let first = first.map(|at| schedule.statements(&at)[0]);
        let all = flow.folded.get(expr as usize).copied().unwrap_or_default();
        let these = sets.get(all);
        // A reduction that was nested anew has no single op.
        let first = first.filter(|at| these.is_empty() || these.contains(at));
        Provenance { first, all }
    }

    /// Returns the sources of `expr`'s last folds that round alike; a source that is no input is made a partial before.
    fn sources(&mut self, expr: u32) -> Result<Sources, Unfit> {
        let mut provenance = Provenance::default();
        let (mut rest, mut chain) = (Vec::new(), None);
        let mut next = expr;
        // The folds end at an expression that is kept in a partial, which is read from there.
        while let (None, Some((operands, _))) =
            (self.known(next), self.writer.flow.values.parts(next))
        {
            if next != expr {
                let rounds = self.writer.flow.values.rounds(next);
                if *chain.get_or_insert(rounds) != rounds {
                    break;
                }
            }
            let folds = self.folds(next);
            provenance.first = provenance.first.or(folds.first);
            provenance.all = self.writer.sets.union(provenance.all, folds.all);
            let depth = |expr: u32| self.writer.flow.values.depth(ValueId { expr, cell: 0 });
            let open = |expr: &u32| self.known(*expr).is_none();
            let [a, b] = operands;
            let (deep, other) = match (open(&a), open(&b)) {
                (true, true) if depth(a) >= depth(b) => (a, b),
                (true, false) => (a, b),
                _ => (b, a),
            };
            let source = match self.known(other) {
                Some(source) => source,
                None => PieceSource::Partial(self.partial(other)?),
            };
            rest.push(source);
            next = deep;
        }
        rest.push(match self.known(next) {
            Some(source) => source,
            None => PieceSource::Partial(self.partial(next)?),
        });
        rest.reverse();
        Ok(Sources { all: rest, chain: chain.unwrap_or(false), provenance })
    }

    /// Returns the place where an expression can be read now, if there is one.
    fn known(&self, expr: u32) -> Option<PieceSource> {
        match self.kept.get(&expr) {
            Some((slot, _)) => Some(PieceSource::Partial(*slot)),
            None if self.writer.flow.values.parts(expr).is_none() => {
                Some(PieceSource::Input(RankId(expr)))
            }
            None => None,
        }
    }

    /// Folds the sources into a new partial of `expr`.
    fn fold(&mut self, sources: Sources, expr: u32) -> Result<Partial, Unfit> {
        if let [PieceSource::Partial(slot)] = &sources.all[..] {
            return Ok(*slot);
        }
        let wide = !self.writer.flow.values.rounds(expr);
        let sources = self.shorten(sources)?;
        self.put(&sources, wide)
    }

    /// Writes the move that folds the sources into a new partial.
    fn put(&mut self, sources: &Sources, wide: bool) -> Result<Partial, Unfit> {
        let slot = self.take(wide);
        let dst = self.place(PieceSource::Partial(slot));
        self.push(sources, &[dst])?;
        self.release(&sources.all);
        Ok(slot)
    }

    /// Folds sources from the front until one move can take the rest.
    fn shorten(&mut self, mut sources: Sources) -> Result<Sources, Unfit> {
        while sources.all.len() > MOST {
            let rest = sources.all.split_off(MOST);
            let slot = self.put(&sources, !sources.chain)?;
            sources.all = [&[PieceSource::Partial(slot)], &rest[..]].concat();
        }
        Ok(sources)
    }

    /// Copies a partial to its destinations.
    fn spread(
        &mut self,
        slot: Partial,
        dsts: &[Destination],
        provenance: Provenance,
    ) -> Result<(), Unfit> {
        let from = Sources { all: vec![PieceSource::Partial(slot)], chain: false, provenance };
        for some in dsts.chunks(MOST) {
            let some: Vec<Operand> = some.iter().map(|dst| self.output(*dst)).collect();
            self.push(&from, &some)?;
        }
        self.release(&from.all);
        Ok(())
    }

    fn push(&mut self, sources: &Sources, dsts: &[Operand]) -> Result<(), Unfit> {
        let srcs: Vec<Operand> = sources.all.iter().map(|source| self.place(*source)).collect();
        let chain = sources.chain && srcs.len() > 2;
        self.writer.push(self.piece.owner, (&srcs, chain), dsts, sources.provenance)
    }

    fn take(&mut self, wide: bool) -> Partial {
        if let Some(at) = self.free.iter().rposition(|free| free.wide == wide) {
            return self.free.remove(at);
        }
        let slots = &mut self.slots[usize::from(wide)];
        *slots += 1;
        Partial { slot: *slots - 1, wide }
    }

    /// Frees the partials that were read for the last time.
    fn release(&mut self, sources: &[PieceSource]) {
        for source in sources {
            let PieceSource::Partial(slot) = source else { continue };
            if let Some((_, left)) = self.kept.values_mut().find(|(kept, _)| kept == slot) {
                *left -= 1;
                if *left > 0 {
                    continue;
                }
                self.kept.retain(|_, (kept, _)| kept != slot);
            }
            self.free.push(*slot);
        }
    }

    fn place(&mut self, source: PieceSource) -> Operand {
        let Piece { lo, hi, owner, .. } = *self.piece;
        match source {
            PieceSource::Input(rank) => self.writer.user(rank, Buffer::Input, lo, hi),
            PieceSource::Partial(slot) => self.writer.partial(owner, slot, lo, hi),
        }
    }

    fn output(&mut self, destination: Destination) -> Operand {
        let units = destination.shift.div_euclid(i64::from(self.writer.flow.cells.per_unit));
        let by = |at: Rat| {
            let apart = Rat::whole(units.unsigned_abs());
            let moved = if units < 0 { at.minus(apart) } else { at.plus(apart) };
            moved.expect("outputs are as long as they were proved to be")
        };
        let (lo, hi) = (by(self.piece.lo), by(self.piece.hi));
        self.writer.user(destination.rank, Buffer::Output, lo, hi)
    }
}
