//! Numbers: arithmetic stays arithmetic, known numbers are computed, and all others were looked up.

use super::{Lift, LiftResult};
use crate::loops::ir::{Number, executing};
use crate::loops::machine::Machine;
use roundelay_core::program::ir::{Expr, Kind, Op};

impl<'p> Lift<'p> {
    pub(super) fn number(&mut self, expr: &'p Expr) -> LiftResult<Number> {
        let args = &expr.args;
        let number = match expr.op {
            Op::Int(value) => Number::int(value),
            Op::Var(var) => match self.frame.aliases.get(&var) {
                Some(alias) => alias.clone(),
                None => Number::var(self.frame.numbers[&var]),
            },
            Op::Local => executing(),
            Op::Rank => self.frame.scope.rank.clone(),
            Op::Nranks => self.frame.scope.size.clone(),
            Op::Peer => {
                let number = self.number(&args[0])?;
                self.peer(&self.frame.scope.clone(), number)?
            }
            Op::RankOf if args[0].op == Op::Peer => self.number(&args[0].args[0])?,
            Op::RankOf => {
                let peer = self.number(&args[0])?;
                self.number_of(&self.frame.scope.clone(), peer)?
            }
            op if op.is_arithmetic() => {
                let args = args.iter().map(|arg| self.number(arg)).collect::<LiftResult<_>>()?;
                Number::operator(op, args)
            }
            _ => {
                let seen: Vec<_> = self.traces.iter().map(|trace| trace.numbers(expr)).collect();
                let seen = self.here(&seen);
                self.entry(&seen)?
            }
        };
        let known = |part: &Number| matches!(part.op, Op::Int(_));
        let folds = !matches!(number.op, Op::Entry(_)) && !number.args.is_empty();
        Ok(match self.constant(&number) {
            Some(value) if folds && number.args.iter().all(known) => Number::int(value),
            _ => number,
        })
    }

    /// Returns the value of a number that is the same at every rank and time.
    pub(super) fn constant(&self, number: &Number) -> Option<i64> {
        match number.op {
            Op::Int(value) => Some(value),
            Op::Nranks => Some(self.nranks.into()),
            Op::Var(var) => self.known.get(&var.index()).copied(),
            Op::Local | Op::Entry(_) => None,
            _ => {
                number.args.iter().all(|part| self.constant(part).is_some()).then_some(())?;
                let mut machine = Machine::new(&[], self.nranks, 0, self.vars.len());
                for (var, value) in &self.known {
                    machine.vars[*var] = *value;
                }
                machine.number(number).ok()
            }
        }
    }

    /// Returns a number of pieces that is the same at every rank and time.
    pub(super) fn many(&mut self, expr: &'p Expr) -> Option<i64> {
        let is_number = match expr.op {
            Op::Var(var) => self.frame.program.vars[var.0 as usize].kind == Kind::Number,
            Op::Int(_) | Op::Nranks | Op::Binary(_) | Op::Function(_) | Op::Len => true,
            _ => false,
        };
        let number = if is_number { self.number(expr).ok()? } else { return None };
        self.constant(&number).filter(|many| *many > 0)
    }

    /// Returns a list of weights that is the same at every rank and time.
    pub(super) fn weights(&self, expr: &Expr) -> Option<Vec<i64>> {
        let seen: Vec<_> = self.traces.iter().map(|trace| trace.lists(expr)).collect();
        let seen = self.here(&seen);
        let mut lists = seen.iter().flatten().map(|(_, list)| list);
        let first = lists.next()?;
        lists.all(|list| list == first).then(|| first.clone())
    }
}
