//! The values that a rank's walk looked up, for exports that keep the loops of a program: numbers that only tables or
//! objects can tell, the ranks of groups, and the operands of every move, each with the iterations of the loops
//! around it. Also the parts of the program that the walk reached.

use std::collections::HashMap;

use super::Walk;
use super::values::Value;
use crate::ids::RankId;
use crate::layout::builder::Builder;
use crate::layout::builder::fifo::Credit;
pub use crate::layout::builder::fifo::PassSteps;
use crate::program::ir::{Expr, Op, Program, Stmt, StmtKind, VarId};
use crate::schedule::{Buffer, Region};

/// A path to a statement: the iteration number of each loop around it, and the statement of each call of a step or of
/// another program.
pub type LoopPath = Vec<i64>;

/// Values by expression or statement, in the order of the walk, each with the path that led to it.
type Seen<K, V> = HashMap<*const K, Vec<(LoopPath, V)>>;

/// The operands of a move as ranks and regions: its sources, then its destinations.
pub type Operands = Vec<(RankId, Region)>;

/// The values that one rank looked up.
#[derive(Debug, Default)]
pub struct Trace {
    way: LoopPath,
    /// The calls on the path.
    calls: LoopPath,
    /// Parameters that are numbers.
    pub(super) params: HashMap<VarId, i64>,
    numbers: Seen<Expr, i64>,
    lists: Seen<Expr, Vec<i64>>,
    moves: Seen<Stmt, Operands>,
    groups: Seen<Stmt, Vec<i64>>,
    passes: Seen<Stmt, PassSteps>,
    owed: Seen<Program, Vec<(i64, i64)>>,
    scratch: Seen<Stmt, i64>,
    bounds: Seen<Stmt, [bool; 2]>,
    /// The arms of statements that the walk entered, each with the calls that led there.
    reached: HashMap<(*const Stmt, usize), Vec<LoopPath>>,
}

impl Trace {
    /// Returns the value of a parameter that is a number.
    pub fn param(&self, var: VarId) -> Option<i64> {
        self.params.get(&var).copied()
    }

    /// Returns the values of a number, with the path of each evaluation.
    pub fn numbers(&self, expr: &Expr) -> &[(LoopPath, i64)] {
        self.numbers.get(&std::ptr::from_ref(expr)).map_or(&[], Vec::as_slice)
    }

    /// Returns the lists that a loop ran over.
    pub fn lists(&self, expr: &Expr) -> &[(LoopPath, Vec<i64>)] {
        self.lists.get(&std::ptr::from_ref(expr)).map_or(&[], Vec::as_slice)
    }

    /// Returns the operands of a move. A copy of data onto itself is left out; of it only the source is returned.
    pub fn moves(&self, stmt: &Stmt) -> &[(LoopPath, Operands)] {
        self.moves.get(&std::ptr::from_ref(stmt)).map_or(&[], Vec::as_slice)
    }

    /// Returns the steps of a pass. Its moves are those of the slices: each has the number of its slice at the end of
    /// its path.
    pub fn passes(&self, stmt: &Stmt) -> &[(LoopPath, PassSteps)] {
        self.passes.get(&std::ptr::from_ref(stmt)).map_or(&[], Vec::as_slice)
    }

    /// Returns the receivers of this rank's links with their outstanding credits, which it waits for at the end of a
    /// program.
    pub fn owed_credits(&self, program: &Program) -> &[(LoopPath, Vec<(i64, i64)>)] {
        self.owed.get(&std::ptr::from_ref(program)).map_or(&[], Vec::as_slice)
    }

    /// Returns the ranks of a `within`, by their numbers in the whole run; none where this rank is not among them.
    pub fn groups(&self, stmt: &Stmt) -> &[(LoopPath, Vec<i64>)] {
        self.groups.get(&std::ptr::from_ref(stmt)).map_or(&[], Vec::as_slice)
    }

    /// Returns the number of the buffer that a statement declared.
    pub fn scratch(&self, stmt: &Stmt) -> &[(LoopPath, i64)] {
        self.scratch.get(&std::ptr::from_ref(stmt)).map_or(&[], Vec::as_slice)
    }

    /// Returns whether input and output of a called program are the rank's own blocks of a region.
    pub fn bounds(&self, stmt: &Stmt) -> &[(LoopPath, [bool; 2])] {
        self.bounds.get(&std::ptr::from_ref(stmt)).map_or(&[], Vec::as_slice)
    }

    /// Whether the walk entered an arm of a statement, on a path with these calls. The body of a loop is its arm 0;
    /// the last arm of an `if` is taken where no condition holds.
    pub fn reaches(&self, stmt: &Stmt, arm: usize, calls: &[i64]) -> bool {
        let key = (std::ptr::from_ref(stmt), arm);
        self.reached.get(&key).is_some_and(|all| all.iter().any(|known| known == calls))
    }
}

impl Walk<'_> {
    /// Enters an iteration of a loop.
    pub(super) fn enter(&mut self, number: i64, stmt: &Stmt) {
        if let StmtKind::For(var, ..) | StmtKind::Each(var, ..) | StmtKind::Parallel(var, ..) =
            stmt.kind
        {
            self.loops.push(var);
        }
        if let Some(trace) = &mut self.trace {
            trace.way.push(number);
        }
        self.trace_arm(stmt, 0);
    }

    /// Enters a step, or another program.
    pub(super) fn enter_call(&mut self, at: u32) {
        if let Some(trace) = &mut self.trace {
            trace.way.push(at.into());
            trace.calls.push(at.into());
        }
    }

    pub(super) fn leave_call(&mut self) {
        if let Some(trace) = &mut self.trace {
            trace.way.pop();
            trace.calls.pop();
        }
    }

    pub(super) fn trace_arm(&mut self, stmt: &Stmt, arm: usize) {
        if let Some(Trace { reached, calls, .. }) = &mut self.trace {
            let known = reached.entry((std::ptr::from_ref(stmt), arm)).or_default();
            if !known.contains(calls) {
                known.push(calls.clone());
            }
        }
    }

    pub(super) fn trace_group(&mut self, stmt: &Stmt, ranks: &[RankId]) {
        if let Some(trace) = &mut self.trace {
            let ranks = ranks.iter().map(|rank| rank.0.into()).collect();
            trace.groups.entry(stmt).or_default().push((trace.way.clone(), ranks));
        }
    }

    pub(super) fn trace_scratch(&mut self, stmt: &Stmt, value: &Value) {
        let region = match value {
            Value::Region(area) => area.region,
            Value::Pieces(pieces) => pieces.whole.region,
            _ => return,
        };
        if let (Some(trace), Buffer::Scratch(id)) = (&mut self.trace, region.buffer) {
            trace.scratch.entry(stmt).or_default().push((trace.way.clone(), id.0.into()));
        }
    }

    pub(super) fn trace_bounds(&mut self, stmt: &Stmt, blocks: [bool; 2]) {
        if let Some(trace) = &mut self.trace {
            trace.bounds.entry(stmt).or_default().push((trace.way.clone(), blocks));
        }
    }

    pub(super) fn leave(&mut self) {
        self.loops.pop();
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

    pub(super) fn trace_pass(&mut self, b: &Builder<'_>, stmt: &Stmt, ends: [Option<RankId>; 2]) {
        if let (Some(trace), Some(steps)) = (&mut self.trace, b.last_steps(ends)) {
            let moves = trace.moves.entry(stmt).or_default();
            for (slice, operands) in (0..).zip(b.last_moves(steps.slices)) {
                moves.push(([&trace.way[..], &[slice]].concat(), operands));
            }
            trace.passes.entry(stmt).or_default().push((trace.way.clone(), steps));
        }
    }

    pub(super) fn trace_owed(&mut self, b: &Builder<'_>) {
        if let Some(trace) = &mut self.trace {
            let credit = |owed: &Credit| (owed.peer.0.into(), owed.times as i64);
            let owed = b.owed().iter().map(credit).collect();
            let program = std::ptr::from_ref(self.program);
            trace.owed.entry(program).or_default().push((trace.way.clone(), owed));
        }
    }
}

impl Op {
    /// Whether the op's value is looked up, not computed by arithmetic on other numbers.
    pub fn is_looked_up(self) -> bool {
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
