//! What a checked algorithm declares and never uses. A name is used wherever it stands, be it in a branch that no
//! rank takes or in the declaration of something that is not used itself. Each word of a
//! `rust { }` escape is such a place.

mod messages;
#[cfg(test)]
mod tests;
mod units;

use super::hir::{self, Demand, Expr, ExprKind, Primitive, Stmt, StmtKind, Ty, VarId};
use crate::diagnostics::Diagnostic;
use crate::source::Span;

/// The warnings of one algorithm, in source order, by what its attributes say of them.
pub(super) fn warnings(algorithm: &hir::Algorithm) -> Vec<Diagnostic> {
    let mut usage = Usage::of(algorithm);
    let declared = std::mem::take(&mut usage.declared);
    let unused = declared.into_iter().filter(|(var, _)| !algorithm.var(*var).name.starts_with('_'));
    let mut warnings: Vec<_> = unused.filter_map(|(var, kind)| usage.warning(var, kind)).collect();
    warnings.sort_by_key(|warning| warning.primary.lo);
    algorithm.levels.apply(warnings)
}

/// How a variable is declared. That of a loop counts, whether or not its value is looked at.
#[derive(Clone, Copy)]
enum UnusedKind<'a> {
    /// Slots, and what they are like.
    Scratch(Option<&'a Expr>, &'a Expr),
    Param,
    /// Of a step of this name.
    StepParam(VarId),
    Let,
    View,
    Step,
    Fifo,
}

/// What is used, found in one walk over an algorithm.
struct Usage<'a> {
    algorithm: &'a hir::Algorithm,
    declared: Vec<(VarId, UnusedKind<'a>)>,
    used: Vec<bool>,
    /// Where a variable is first written, for as long as nothing else is done with it.
    written: Vec<Option<Span>>,
}

impl<'a> Usage<'a> {
    fn of(algorithm: &'a hir::Algorithm) -> Self {
        let vars = algorithm.vars.len();
        let mut usage = Self {
            algorithm,
            declared: Vec::new(),
            used: vec![false; vars],
            written: vec![None; vars],
        };
        for param in &algorithm.params {
            param.default.iter().for_each(|default| usage.expr(default));
            usage.declared.push((param.var, UnusedKind::Param));
        }
        let fifo = algorithm.vars.iter().position(|var| var.ty == Ty::Fifo);
        let fifo = fifo.map(|index| VarId(index as u32));
        usage.declared.extend(fifo.map(|fifo| (fifo, UnusedKind::Fifo)));
        hir::walk(&algorithm.body, &mut |stmt| usage.stmt(stmt, fifo));
        usage
    }

    fn stmt(&mut self, stmt: &'a Stmt, fifo: Option<VarId>) {
        self.operands(stmt);
        match &stmt.kind {
            StmtKind::Let(var, _) => {
                let region = matches!(self.algorithm.var(*var).ty, Ty::Region | Ty::Pieces);
                self.declared.push((*var, if region { UnusedKind::View } else { UnusedKind::Let }));
            }
            StmtKind::Scratch(var, count, like) => {
                self.declared.push((*var, UnusedKind::Scratch(count.as_ref(), like)));
            }
            StmtKind::Step(step) => {
                let params = step.params.iter().map(|param| (*param, UnusedKind::StepParam(step.name)));
                self.declared.extend(params.chain([(step.name, UnusedKind::Step)]));
            }
            StmtKind::Call(step, _) => self.used[step.0 as usize] = true,
            StmtKind::Primitive { .. } => {
                if let Some(fifo) = fifo {
                    self.used[fifo.0 as usize] = true;
                }
            }
            StmtKind::Demand(Demand::Budget(_, value)) => self.expr(value),
            _ => {}
        }
    }

    /// The expressions of a statement itself: what is written and not read is told from the rest.
    fn operands(&mut self, stmt: &'a Stmt) {
        let written: &[Expr] = match &stmt.kind {
            StmtKind::Copy(_, dsts) => dsts,
            StmtKind::Primitive { primitive, places, .. }
                if primitive.writes() && *primitive != Primitive::RecvReduce =>
            {
                &places[places.len() - 1..]
            }
            _ => &[],
        };
        for expr in stmt.exprs() {
            match &*expr.kind {
                ExprKind::On(peer, region) if written.iter().any(|w| std::ptr::eq(w, expr)) => {
                    self.expr(peer);
                    self.written(region, expr.span);
                }
                _ => self.expr(expr),
            }
        }
    }

    fn written(&mut self, region: &'a Expr, at: Span) {
        match &*region.kind {
            ExprKind::Var(var) => {
                self.written[var.0 as usize].get_or_insert(at);
            }
            ExprKind::Split(base, n) | ExprKind::Block(base, n) | ExprKind::Piece(base, n) => {
                self.written(base, at);
                self.expr(n);
            }
            ExprKind::Range(base, lo, hi) => {
                self.written(base, at);
                self.expr(lo);
                self.expr(hi);
            }
            _ => self.expr(region),
        }
    }

    fn expr(&mut self, expr: &Expr) {
        expr.walk(&mut |part| {
            if let ExprKind::Var(var) = &*part.kind {
                self.used[var.0 as usize] = true;
            }
        });
    }
}

impl hir::Algorithm {
    pub(super) fn var(&self, var: VarId) -> &hir::Var {
        &self.vars[var.0 as usize]
    }
}
