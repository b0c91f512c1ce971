//! Values that each rank looked up: arithmetic where the recogniser finds it, or else tables.

use std::collections::BTreeMap;

use super::{Around, Lift, LiftResult, Rows, Unfit};
use crate::loops::ir::{Number, Op, Piece, entry, executing};
use crate::loops::recognise::{Sample, Samples};
use roundelay_core::ids::RankId;
use roundelay_core::layout::trace::LoopPath;
use roundelay_core::program::ir::Stmt;
use roundelay_core::schedule::{Buffer, Region};

impl Lift<'_> {
    /// Whether a way leads through the enclosing loops and calls.
    fn leads_here(&self, way: &LoopPath) -> bool {
        way.len() == self.around.len()
            && way.iter().zip(&self.around).all(|(at, around)| match around {
                Around::Step(here) | Around::Stream(here) => at == here,
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

    /// Returns a number that each rank looked up: arithmetic if possible, or else an entry of a table.
    pub(in crate::loops) fn entry(&mut self, seen: &[Vec<(LoopPath, i64)>]) -> LiftResult<Number> {
        let (loops, kept) = self.loops_around();
        let mut counters: BTreeMap<Vec<i64>, usize> = BTreeMap::new();
        let mut rows = Vec::new();
        for (rank, own) in (0..).zip(seen) {
            for (way, value) in own.iter().filter(|(way, _)| self.leads_here(way)) {
                let many = counters.len();
                let at = kept.iter().map(|at| way[*at]).collect();
                let at = *counters.entry(at).or_insert(many);
                rows.push(Sample { at, rank, value: *value });
            }
        }
        if rows.is_empty() {
            return Ok(Number::int(0));
        }
        let mut ordered = vec![Vec::new(); counters.len()];
        for (counter, at) in counters {
            ordered[at] = counter;
        }
        let nranks = (i64::from(self.nranks), &Number::leaf(Op::Nranks));
        let samples = Samples {
            counters: &ordered,
            rows,
            loops: &loops,
            rank: &executing(),
            nranks,
            whole: false,
        };
        if let Some(number) = samples.linear() {
            return Ok(number);
        }
        // The ranks in scope, where these are at equal distances: numbers among them, and the ranks with these numbers.
        let scope = self.frame.scope.clone();
        if let Some(grid) = scope.grid() {
            let own = |row: &Sample| (grid.number(row.rank), grid.number(row.value));
            let among = |to: &dyn Fn(&Sample) -> i64| {
                let row = |row: &Sample| Sample { rank: own(row).0, value: to(row), ..*row };
                let rows = samples.rows.iter().map(row).collect();
                let nranks = (grid.size, &scope.size);
                Samples { rows, rank: &scope.rank, nranks, ..samples.clone() }.linear()
            };
            if let Some(number) = among(&|row| row.value) {
                return Ok(number);
            }
            let member = |row: &Sample| grid.member(row.rank, own(row).1) == row.value;
            let number = samples.rows.iter().all(member).then(|| among(&|row| own(row).1));
            if let Some(number) = number.flatten() {
                return self.peer(&scope, number);
            }
        }
        // A few values fit some arithmetic by chance, which would say nothing to a reader.
        let tells = samples.rows.len() > 2 * (2 + loops.len());
        match samples.number().filter(|_| tells) {
            Some(number) => Ok(number),
            None => self.count(seen),
        }
    }

    /// Returns the numbers of the iterations of the enclosing loops, and the places of these loops in a way.
    fn loops_around(&self) -> (Vec<Number>, Vec<usize>) {
        let loops = self.around.iter().enumerate().filter_map(|(at, around)| match around {
            Around::Loop(number) => Some((number.clone(), at)),
            Around::Step(_) | Around::Stream(_) => None,
        });
        loops.unzip()
    }

    /// Returns a count or a condition, which could be arithmetic on the rank only by chance: a constant, or an entry of
    /// a table.
    pub(super) fn count(&mut self, seen: &[Vec<(LoopPath, i64)>]) -> LiftResult<Number> {
        let mut all = seen.iter().flatten().map(|(_, value)| *value);
        let Some(first) = all.next() else { return Ok(Number::int(0)) };
        if all.all(|value| value == first) {
            return Ok(Number::int(first));
        }
        let seen: Vec<Vec<(LoopPath, Vec<i64>)>> =
            each(seen, |way, v| vec![(way.clone(), vec![*v])]);
        let (table, indices) = self.table(&seen, &[0])?;
        Ok(entry((table, indices)))
    }

    /// Adds a table of the values with as few indices as possible, and returns it with its indices here.
    fn table(
        &mut self,
        seen: &[Vec<(LoopPath, Vec<i64>)>],
        nothing: &[i64],
    ) -> LiftResult<(usize, Vec<Number>)> {
        let (loops, kept) = self.loops_around();
        let mut rows = Vec::new();
        for (rank, own) in seen.iter().enumerate() {
            for (way, entry) in own.iter().filter(|(way, _)| self.leads_here(way)) {
                rows.push((kept.iter().map(|at| way[*at]).collect(), rank, entry.clone()));
            }
        }
        self.tables.fewest(&rows, &loops, nothing).ok_or(Unfit)
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
