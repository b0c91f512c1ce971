//! Tables of values that each rank looked up, with as few indices as possible, for values that arithmetic cannot
//! express.

use std::collections::BTreeMap;

use super::grids::Grid;
use super::numbers::binary;
use super::{Around, Lift, LiftResult, Rows, Unfit};
use crate::contest::tree::{LoopTable, Number, Piece};
use roundelay_core::ids::RankId;
use roundelay_core::layout::trace::LoopPath;
use roundelay_core::program::ir::Stmt;
use roundelay_core::schedule::{Buffer, Region};
use roundelay_core::syntax::ast::BinOp;

impl Lift<'_> {
    /// Whether a way leads through the enclosing loops and calls.
    fn leads_here(&self, way: &LoopPath) -> bool {
        way.len() == self.around.len()
            && way.iter().zip(&self.around).all(|(at, around)| match around {
                Around::Step(call) => at == call,
                Around::Loop(_) => true,
            })
    }

    /// Returns the values that were seen at this place, without those of other calls.
    pub(super) fn here<T: Clone>(&self, seen: &[&[(LoopPath, T)]]) -> Rows<T> {
        let own = |own: &&[(LoopPath, T)]| {
            own.iter().filter(|(way, _)| self.leads_here(way)).cloned().collect::<Vec<_>>()
        };
        seen.iter().map(own).collect()
    }

    /// Returns an operand as a table of the operands in every rank's ops.
    pub(super) fn listed(
        &mut self,
        stmt: &Stmt,
        at: usize,
        many: usize,
    ) -> LiftResult<(Buffer, Piece)> {
        let mut seen: Vec<Vec<(LoopPath, Vec<i64>)>> = Vec::new();
        let mut buffer = None;
        let all: Vec<_> = self.traces.iter().map(|trace| trace.moves(stmt)).collect();
        for trace in self.here(&all) {
            let mut own = Vec::new();
            for (way, operands) in &trace {
                let (_, region): &(RankId, Region) =
                    operands.get(at).filter(|_| operands.len() == many).ok_or(Unfit)?;
                if *buffer.get_or_insert(region.buffer) != region.buffer {
                    return Err(Unfit);
                }
                let end = |end: roundelay_core::rational::Rat| {
                    i64::try_from(end.num() * (self.pieces / end.den())).map_err(|_| Unfit)
                };
                let slot = region.slot.into();
                let piece = vec![end(region.lo)?, end(region.hi)?, slot, end(region.base)?];
                own.push((way.clone(), piece));
            }
            seen.push(own);
        }
        let (table, indices) = self.table(&seen, &[0; 4])?;
        Ok((buffer.ok_or(Unfit)?, Piece::Entry(table, indices)))
    }

    /// Returns a number that each rank looked up: arithmetic on the rank if possible, or else an entry of a table.
    pub(in crate::contest) fn entry(
        &mut self,
        seen: &[Vec<(LoopPath, i64)>],
    ) -> LiftResult<Number> {
        let all = || seen.iter().flatten().map(|(_, value)| *value);
        let Some(first) = all().next() else { return Ok(Number::Const(0)) };
        if all().all(|value| value == first) {
            return Ok(Number::Const(first));
        }
        let n = i64::from(self.nranks);
        let at_ranks = |is: &dyn Fn(i64, i64) -> bool| {
            (0..).zip(seen).all(|(rank, own)| own.iter().all(|(_, value)| is(rank, *value)))
        };
        if at_ranks(&|rank, value| rank == value) {
            return Ok(Number::Me);
        }
        // Neighbors in the ring of ranks, in the nearer direction: of all ranks, and of the ranks in scope.
        let turned = |rank: &Number, by: i64, many: &Number| {
            let op = if by > 0 { BinOp::Add } else { BinOp::Sub };
            binary(BinOp::Rem, binary(op, rank.clone(), Number::Const(by.abs())), many.clone())
        };
        let distances = || (1..=n / 2).flat_map(|d| [d, -d]);
        for by in distances() {
            if at_ranks(&|rank, value| (rank + by).rem_euclid(n) == value) {
                return Ok(turned(&Number::Me, by, &Number::Nranks));
            }
        }
        let scope = self.frame.scope.clone();
        for by in std::iter::once(0).chain(distances()) {
            let is = |which: usize| {
                at_ranks(&|rank, value| {
                    scope.turned(rank, by).is_some_and(|all| all[which] == value)
                })
            };
            let number = || match by {
                0 => scope.rank.clone(),
                _ => turned(&scope.rank, by, &scope.size),
            };
            if is(0) {
                return Ok(number());
            }
            if is(1) {
                return self.peer(&scope, number());
            }
        }
        if let Some(grid) =
            Grid::all(self.nranks).find(|grid| at_ranks(&|rank, value| grid.number(rank) == value))
        {
            return Ok(grid.text(Number::Me, self.nranks));
        }
        self.count(seen)
    }

    /// Returns a count or a condition, which could be arithmetic on the rank only by chance: a constant, or an entry of
    /// a table.
    pub(super) fn count(&mut self, seen: &[Vec<(LoopPath, i64)>]) -> LiftResult<Number> {
        let mut all = seen.iter().flatten().map(|(_, value)| *value);
        let Some(first) = all.next() else { return Ok(Number::Const(0)) };
        if all.all(|value| value == first) {
            return Ok(Number::Const(first));
        }
        let seen: Vec<Vec<(LoopPath, Vec<i64>)>> =
            each(seen, |way, v| vec![(way.clone(), vec![*v])]);
        let (table, indices) = self.table(&seen, &[0])?;
        Ok(Number::Entry(table, indices))
    }

    /// Adds a table of the values with as few indices as possible, and returns it with its indices here.
    fn table(
        &mut self,
        seen: &[Vec<(LoopPath, Vec<i64>)>],
        nothing: &[i64],
    ) -> LiftResult<(usize, Vec<Number>)> {
        let rows: Vec<(usize, &LoopPath, &Vec<i64>)> = seen
            .iter()
            .enumerate()
            .flat_map(|(rank, own)| own.iter().map(move |(way, value)| (rank, way, value)))
            .filter(|(_, way, _)| self.leads_here(way))
            .collect();
        let loops = |at: &usize| matches!(self.around[*at], Around::Loop(_));
        let mut kept: Vec<usize> = (0..self.around.len()).filter(loops).collect();
        let mut by_rank = true;
        let tells = |kept: &[usize], by_rank: bool| {
            let mut known: BTreeMap<(usize, Vec<i64>), &Vec<i64>> = BTreeMap::new();
            rows.iter().all(|(rank, way, value)| {
                let key = kept.iter().map(|at| way[*at]).collect();
                let rank = if by_rank { *rank } else { 0 };
                *known.entry((rank, key)).or_insert(value) == *value
            })
        };
        if !tells(&kept, by_rank) {
            return Err(Unfit);
        }
        by_rank = !tells(&kept, false);
        for at in kept.clone() {
            let fewer: Vec<_> = kept.iter().copied().filter(|other| *other != at).collect();
            if tells(&fewer, by_rank) {
                kept = fewer;
            }
        }
        let size = |at: &usize| rows.iter().map(|(_, way, _)| way[*at] + 1).max().unwrap_or(0);
        let sizes = kept.iter().map(|at| usize::try_from(size(at)).map_err(|_| Unfit));
        let sizes = sizes.collect::<LiftResult<Vec<_>>>()?;
        let ranks = if by_rank { self.nranks as usize } else { 1 };
        let mut entries = vec![nothing.to_vec(); sizes.iter().product::<usize>() * ranks];
        for (rank, way, value) in rows {
            let at =
                kept.iter().zip(&sizes).fold(0, |sum, (at, size)| sum * size + way[*at] as usize);
            entries[if by_rank { at * ranks + rank } else { at }].clone_from(value);
        }
        let indices = kept.iter().map(|at| match &self.around[*at] {
            Around::Loop(number) => number.clone(),
            Around::Step(_) => Number::Const(0),
        });
        let indices = indices.collect();
        let id = self.table_of(sizes, by_rank, entries);
        Ok((id, indices))
    }

    /// Adds a table with these entries, unless there is an equal one.
    pub(super) fn table_of(
        &mut self,
        sizes: Vec<usize>,
        by_rank: bool,
        entries: Vec<Vec<i64>>,
    ) -> usize {
        let table = LoopTable { sizes, by_rank, entries };
        let known = self.tables.iter().position(|known| *known == table);
        known.unwrap_or_else(|| {
            self.tables.push(table);
            self.tables.len() - 1
        })
    }
}

/// Maps every entry of every rank to other entries.
pub(super) fn each<T, U>(
    seen: &[Vec<(LoopPath, T)>],
    made: impl Fn(&LoopPath, &T) -> Vec<(LoopPath, U)>,
) -> Vec<Vec<(LoopPath, U)>> {
    let own =
        |own: &Vec<(LoopPath, T)>| own.iter().flat_map(|(way, value)| made(way, value)).collect();
    seen.iter().map(own).collect()
}
