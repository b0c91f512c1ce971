//! Numbers: arithmetic stays arithmetic, known numbers are computed, and all others were looked up.

use super::{Lift, LiftResult};
use crate::loops::ir::{Number, binary};
use crate::loops::machine::Machine;
use roundelay_core::program::ir::{Expr, Kind, Op};

impl<'p> Lift<'p> {
    pub(super) fn number(&mut self, expr: &'p Expr) -> LiftResult<Number> {
        let args = &expr.args;
        let boxed = |number: Number| Box::new(number);
        let number = match expr.op {
            Op::Int(value) => Number::Const(value),
            Op::Var(var) => match self.frame.aliases.get(&var) {
                Some(alias) => alias.clone(),
                None => Number::Var(self.frame.numbers[&var]),
            },
            Op::Local => Number::Me,
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
            Op::Neg => Number::Neg(boxed(self.number(&args[0])?)),
            Op::Not => Number::Not(boxed(self.number(&args[0])?)),
            Op::Flip => Number::Flip(boxed(self.number(&args[0])?)),
            Op::Binary(op) => binary(op, self.number(&args[0])?, self.number(&args[1])?),
            Op::If => Number::Choice(Box::new([
                self.number(&args[0])?,
                self.number(&args[1])?,
                self.number(&args[2])?,
            ])),
            Op::Function(function) => {
                let args = args.iter().map(|arg| self.number(arg)).collect::<LiftResult<_>>()?;
                Number::Call(function, args)
            }
            Op::IsPowerOfTwo => Number::IsPowerOfTwo(boxed(self.number(&args[0])?)),
            _ => {
                let seen: Vec<_> = self.traces.iter().map(|trace| trace.numbers(expr)).collect();
                let seen = self.here(&seen);
                self.entry(&seen)?
            }
        };
        let known = |part: &&Number| matches!(part, Number::Const(_));
        let folds = !matches!(number, Number::Entry(..)) && !number.parts().is_empty();
        Ok(match self.constant(&number) {
            Some(value) if folds && number.parts().iter().all(known) => Number::Const(value),
            _ => number,
        })
    }

    /// Returns the value of a number that is the same at every rank and time.
    pub(super) fn constant(&self, number: &Number) -> Option<i64> {
        match number {
            Number::Const(value) => Some(*value),
            Number::Nranks => Some(self.nranks.into()),
            Number::Var(var) => self.known.get(var).copied(),
            Number::Me | Number::Entry(..) => None,
            other => {
                other.parts().iter().all(|part| self.constant(part).is_some()).then_some(())?;
                let mut machine = Machine::new(&[], self.nranks, 0, self.vars.len());
                for (var, value) in &self.known {
                    machine.vars[*var] = *value;
                }
                machine.number(other).ok()
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
