//! What a rank's walk looked up, for exports that keep the loops of a program: the numbers that only tables or objects
//! can tell, and the operands of every move, each with the iterations of the loops around it.

use std::collections::HashMap;

use super::Walk;
use crate::ids::RankId;
use crate::program::ir::{Expr, Op, Stmt, VarId};
use crate::schedule::Region;
use crate::schedule::builder::Builder;

/// A way to a statement: the number of the iteration of each loop around it, and the statement of each step's call.
pub(crate) type Way = Vec<i64>;

/// What was looked up, by the expression or statement, in the order of the walk: each on the way that led there.
type Seen<K, V> = HashMap<*const K, Vec<(Way, V)>>;

/// The regions of a move, and whose they are: its sources, then its destinations.
pub(crate) type Operands = Vec<(RankId, Region)>;

/// What one rank looked up.
#[derive(Debug, Default)]
pub(crate) struct Trace {
    way: Way,
    /// Parameters that are numbers.
    pub(super) params: HashMap<VarId, i64>,
    numbers: Seen<Expr, i64>,
    lists: Seen<Expr, Vec<i64>>,
    moves: Seen<Stmt, Operands>,
}

impl Trace {
    /// The value of a parameter that is a number.
    pub(crate) fn param(&self, var: VarId) -> Option<i64> {
        self.params.get(&var).copied()
    }

    /// The values of a number, by the ways on which it was asked for.
    pub(crate) fn numbers(&self, expr: &Expr) -> &[(Way, i64)] {
        self.numbers.get(&std::ptr::from_ref(expr)).map_or(&[], Vec::as_slice)
    }

    /// The lists that a loop ran over.
    pub(crate) fn lists(&self, expr: &Expr) -> &[(Way, Vec<i64>)] {
        self.lists.get(&std::ptr::from_ref(expr)).map_or(&[], Vec::as_slice)
    }

    /// The operands of a move.
    pub(crate) fn moves(&self, stmt: &Stmt) -> &[(Way, Operands)] {
        self.moves.get(&std::ptr::from_ref(stmt)).map_or(&[], Vec::as_slice)
    }
}

impl Walk<'_> {
    /// Goes into a loop's iteration, or into a step.
    pub(super) fn enter(&mut self, number: i64) {
        if let Some(trace) = &mut self.trace {
            trace.way.push(number);
        }
    }

    pub(super) fn leave(&mut self) {
        if let Some(trace) = &mut self.trace {
            trace.way.pop();
        }
    }

    pub(super) fn trace_number(&mut self, expr: &Expr, value: i64) {
        if let Some(trace) = &mut self.trace
            && expr.op.is_looked_up()
        {
            trace.numbers.entry(expr).or_default().push((trace.way.clone(), value));
        }
    }

    pub(super) fn trace_list(&mut self, expr: &Expr, list: &[i64]) {
        if let Some(trace) = &mut self.trace {
            trace.lists.entry(expr).or_default().push((trace.way.clone(), list.to_vec()));
        }
    }

    pub(super) fn trace_move(&mut self, b: &Builder<'_>, stmt: &Stmt) {
        if let Some(trace) = &mut self.trace {
            trace.moves.entry(stmt).or_default().push((trace.way.clone(), b.last_operands()));
        }
    }
}

impl Op {
    /// Whether its value is no arithmetic on other numbers.
    pub(crate) fn is_looked_up(self) -> bool {
        !matches!(
            self,
            Self::Int(_)
                | Self::Var(_)
                | Self::Rank
                | Self::Nranks
                | Self::Local
                | Self::Neg
                | Self::Flip
                | Self::Not
                | Self::Binary(_)
                | Self::If
                | Self::Function(_)
                | Self::IsPowerOfTwo
                | Self::Peer
                | Self::RankOf
        )
    }
}
